#include "runtime/device/NcclApi.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <nccl.h>
#include <type_traits>

/// The hand-made declarations against NVIDIA's.
namespace deft::device {
namespace {

static_assert(nccl::kSuccess == ncclSuccess);
static_assert(nccl::kInProgress == ncclInProgress);
static_assert(nccl::kBytes == ncclUint8);
static_assert(sizeof(nccl::Id) == sizeof(ncclUniqueId));
static_assert(nccl::kOldest == NCCL_VERSION(2, 14, 0));
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));

/// The same number of parameters of the same sizes, in the same order.
template <typename A, typename B> struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B> struct SameShape<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return sizeof(R) == sizeof(S) &&
             ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
    else
      return false;
  }();
};

TEST(NcclApiTest, DeclarationsHaveTheShapeOfTheHeader) {
  const nccl::Config ours;
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ours.magic, theirs.magic);
#define DEFT_SAME(member, name)                                                                              \
  EXPECT_TRUE((SameShape<decltype(nccl::Api::member), decltype(&name)>::value)) << #name
  DEFT_SAME(getVersion, ncclGetVersion);
  DEFT_SAME(getUniqueId, ncclGetUniqueId);
  DEFT_SAME(commInitRankConfig, ncclCommInitRankConfig);
  DEFT_SAME(commFinalize, ncclCommFinalize);
  DEFT_SAME(commDestroy, ncclCommDestroy);
  DEFT_SAME(commAbort, ncclCommAbort);
  DEFT_SAME(commGetAsyncError, ncclCommGetAsyncError);
  DEFT_SAME(getErrorString, ncclGetErrorString);
  DEFT_SAME(getLastError, ncclGetLastError);
  DEFT_SAME(groupStart, ncclGroupStart);
  DEFT_SAME(groupEnd, ncclGroupEnd);
  DEFT_SAME(send, ncclSend);
  DEFT_SAME(recv, ncclRecv);
#undef DEFT_SAME
}

} // namespace
} // namespace deft::device
