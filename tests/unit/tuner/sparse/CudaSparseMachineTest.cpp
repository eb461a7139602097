// On the tests' driver, whose kernels compute on the host, and always take as long.
#include "tuner/sparse/CudaSparseMachine.h"

#include "runtime/exec/Selection.h"
#include "tests/support/FakeCuda.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

namespace deft::sparse {
namespace {

constexpr int kBudget = 40;

package::Kernel kernelOf(const std::string &entry) {
  return {.entry = entry, .cubin = "fake", .threads = 128, .resources = {}};
}

config::PhaseConfig tileOf(int tokens) {
  return {.name = "sparse", .tileQ = 16, .tileKv = tokens, .stages = 2, .warps = 4};
}

/// An attention that selects, and its kernels.
class SelectingKernels : public exec::FakeGpu {
public:
  SelectingKernels() {
    variant.select.emplace().budget.values = {kBudget};
    fake_cuda::setVariant(
        {6, 2, 16, variant.cache.pageSize, true, 0.25f, variant.worthGroups(), variant.lists()});
    package::SelectingKernels &selecting = set.selecting.emplace();
    selecting.attend.push_back(kernelOf("deft_small_narrow_selecting"));
    selecting.select = kernelOf("deft_small_select");
    selecting.sparse = kernelOf("deft_small_sparse");
    selecting.sparsePhase = tileOf(16);
  }

  support::Result<std::unique_ptr<CudaSparseMachine>> machine(const std::vector<SparseKernel> &others,
                                                              std::vector<std::string> &notes) const {
    return CudaSparseMachine::open(device, variant, {}, set, others, {{kBudget, 1}, {kBudget, 3}}, {}, notes);
  }
};

int launchesOf(const std::string &kernel) {
  int launches = 0;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    launches += call.name == "cuLaunchKernel" && call.kernel == kernel;
  return launches;
}

TEST(CudaSparseMachineTest, EveryTileAndCutIsTimedOnTheListsThatAreOpen) {
  const SelectingKernels gpu;
  std::vector<std::string> notes;
  auto machine = gpu.machine({{tileOf(32), kernelOf("deft_small_sparse")}}, notes);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_THAT(notes, testing::IsEmpty());
  ASSERT_EQ((*machine)->tiles().size(), 2u);
  EXPECT_EQ((*machine)->tiles()[1].tileKv, 32);
  for (const Lists &lists : {Lists{kBudget, 3}, Lists{kBudget, 1}}) {
    ASSERT_TRUE((*machine)->open(lists).ok());
    EXPECT_THAT(*(*machine)->cuts(0), testing::UnorderedElementsAre(16, 32, 48));
    EXPECT_THAT(*(*machine)->cuts(1), testing::UnorderedElementsAre(32, 64));
    for (std::size_t tile = 0; tile < 2; ++tile) {
      const std::vector<int> cuts = *(*machine)->cuts(tile);
      for (const int tokens : cuts) {
        (void)fake_cuda::takeCalls();
        const auto us = (*machine)->time(tile, tokens);
        ASSERT_TRUE(us) << us.error().message;
        EXPECT_GT(*us, 0);
        EXPECT_EQ(launchesOf("deft_small_sparse"), 1); // into a graph
        ASSERT_TRUE((*machine)->time(tile, tokens).ok());
        EXPECT_EQ(launchesOf("deft_small_select"), 0); // its lists are there
      }
    }
  }
  EXPECT_FALSE((*machine)->open({kBudget, 2}).ok());
}

TEST(CudaSparseMachineTest, ATileWhoseKernelIsWrongIsLeftOutAndToldOf) {
  const SelectingKernels gpu;
  std::vector<std::string> notes;
  // A kernel that reads no lists, in the place of one that does.
  auto machine = gpu.machine(
      {{tileOf(32), kernelOf("deft_small_narrow")}, {tileOf(64), kernelOf("deft_small_sparse")}}, notes);
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_EQ((*machine)->tiles().size(), 2u);
  EXPECT_EQ((*machine)->tiles()[1].tileKv, 64);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("tile 32x2x4 is left out: ")));
}

} // namespace
} // namespace deft::sparse
