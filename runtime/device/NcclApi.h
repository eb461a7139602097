#pragma once

#include "runtime/device/DriverApi.h"

/// The little of NCCL that is used here, declared by hand, as DriverApi.h declares the driver. Names and
/// values are those of nccl.h; where that file is at hand a test compares them.
namespace deft::device::nccl {

using Result = int;
struct CommTag;
using Comm = CommTag *;

constexpr Result kSuccess = 0;
constexpr Result kInProgress = 7;
constexpr int kBytes = 1; ///< ncclUint8
constexpr int kIdBytes = 128;

/// The first version whose calls need not wait for other ranks.
constexpr int kOldest = 21400;

struct Id {
  char bytes[kIdBytes];
};

/// As that version has it: later ones read `version` and take defaults for what they have beside.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldest;
  int blocking = 0;
};

/// One line a function: result, member, symbol in the library, parameters.
#define DEFT_NCCL_FUNCTIONS(X)                                                                               \
  X(Result, getVersion, "ncclGetVersion", (int *version))                                                    \
  X(Result, getUniqueId, "ncclGetUniqueId", (Id * id))                                                       \
  X(Result, commInitRankConfig, "ncclCommInitRankConfig",                                                    \
    (Comm * comm, int ranks, Id id, int rank, Config *config))                                               \
  X(Result, commFinalize, "ncclCommFinalize", (Comm comm))                                                   \
  X(Result, commDestroy, "ncclCommDestroy", (Comm comm))                                                     \
  X(Result, commAbort, "ncclCommAbort", (Comm comm))                                                         \
  X(Result, commGetAsyncError, "ncclCommGetAsyncError", (Comm comm, Result * result))                        \
  X(const char *, getErrorString, "ncclGetErrorString", (Result result))                                     \
  X(const char *, getLastError, "ncclGetLastError", (Comm comm))                                             \
  X(Result, groupStart, "ncclGroupStart", ())                                                                \
  X(Result, groupEnd, "ncclGroupEnd", ())                                                                    \
  X(Result, send, "ncclSend",                                                                                \
    (const void *from, std::size_t count, int type, int peer, Comm comm, cu::Stream stream))                 \
  X(Result, recv, "ncclRecv", (void *to, std::size_t count, int type, int peer, Comm comm, cu::Stream stream))

/// The functions of a loaded library.
struct Api {
// A declarator takes no parentheses around its parameters. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define DEFT_DECLARE(result, member, symbol, parameters) result(*member) parameters = nullptr;
  DEFT_NCCL_FUNCTIONS(DEFT_DECLARE)
#undef DEFT_DECLARE
};

} // namespace deft::device::nccl
