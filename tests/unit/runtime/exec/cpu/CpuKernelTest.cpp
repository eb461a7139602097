#include "runtime/exec/cpu/CpuKernel.h"

#include "tests/support/ScalarKernel.h"

#include <gtest/gtest.h>

#include <functional>

namespace deft::exec {
namespace {

using Scalar = test::ScalarKernel<4, 2, 16>;

TEST(CpuKernelTest, AKernelIsOfItsVariantAlone) {
  EXPECT_EQ(differenceOf(*Scalar::kernel(), Scalar::variant()), "");
  const std::pair<const char *, std::function<void(spec::Variant &)>> changes[] = {
      {"its query_heads is 4, not 8", [](auto &v) { v.queryHeads = 8; }},
      {"its kv_heads is 2, not 4", [](auto &v) { v.kvHeads = 4; }},
      {"its dim of q and k is 16, not 32", [](auto &v) { v.tensors.k.dim = 32; }},
      {"its dim of v is 16, not 32", [](auto &v) { v.tensors.v.dim = 32; }},
      {"its dtype of q is 1, not 0", [](auto &v) { v.tensors.q.dtype = spec::DType::F16; }},
      {"its dtype of k is 1, not 2", [](auto &v) { v.tensors.k.dtype = spec::DType::F8E4M3; }},
      {"its dtype of v is 1, not 0", [](auto &v) { v.tensors.v.dtype = spec::DType::F16; }},
      {"its output dtype is 1, not 0", [](auto &v) { v.tensors.out.dtype = spec::DType::F16; }},
      {"its normalize is 0, not 1", [](auto &v) { v.normalize = spec::Normalize::Sigmoid; }},
      {"its keeping of scores is 0, not 1", [](auto &v) { v.select.emplace(); }},
      {"its number of parameters is 0, not 1", [](auto &v) { v.params.emplace_back(); }},
  };
  for (const auto &[difference, change] : changes) {
    spec::Variant variant = Scalar::variant();
    change(variant);
    EXPECT_EQ(differenceOf(*Scalar::kernel(), variant), difference);
  }
}

TEST(CpuKernelTest, ATableOfAnotherVersionIsSeenFirst) {
  abi::CpuKernel table = *Scalar::kernel();
  table.queryHeads = 77;
  ++table.tableBytes;
  EXPECT_EQ(differenceOf(table, Scalar::variant()).find("its table size is "), 0U);
  table.version += 1;
  EXPECT_EQ(differenceOf(table, Scalar::variant()).find("its version is "), 0U);
}

} // namespace
} // namespace deft::exec
