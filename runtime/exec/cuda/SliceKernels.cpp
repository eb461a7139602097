#include "runtime/exec/cuda/SliceKernels.h"

#include "runtime/exec/cuda/SmallKernel.h"
#include "runtime/exec/cuda/StateMerge.h"

#include <algorithm>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts

std::string entryOf(const std::string &step, StateType type) {
  return "deft_" + step + "_slices_" + elementSuffix(type);
}

std::string sourceOf(const std::string &step, StateType type, const std::string &comment) {
  const std::string exchange = std::string("deft::SlicesExchange<") + elementName(type) + ">";
  return "// " + entryOf(step, type) + ": " + comment + R"(
#include "deft/merge_slices.cuh"

static_assert()" +
         exchange + R"(::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__()" +
         exchange + "::kThreads)\n" + entryOf(step, type) +
         "(const __grid_constant__ deft::abi::SlicesArgs args) {\n  " + exchange + "::" + step +
         "(args);\n}\n";
}

int blocksFor(long long rows, int lanesOfRow, int most) {
  const long long rowsOfBlock = kThreads / lanesOfRow;
  return static_cast<int>(std::clamp<long long>((rows + rowsOfBlock - 1) / rowsOfBlock, 1, most));
}

} // namespace

std::string SliceKernels::packSource(StateType type) {
  return sourceOf("pack", type,
                  "makes of a rank's results a message for each rank that merges some of them.");
}

std::string SliceKernels::mergeSource(StateType type) {
  return sourceOf("merge", type, "makes one of the results that ranks have sent.");
}

Result<SliceKernels> SliceKernels::create(const std::shared_ptr<device::Device> &device, StateType type) {
  auto pack = loadSmallKernel(device, entryOf("pack", type), packSource(type), kThreads);
  if (!pack)
    return pack.error();
  auto merge = loadSmallKernel(device, entryOf("merge", type), mergeSource(type), kThreads);
  if (!merge)
    return merge.error();
  return SliceKernels(std::move(*pack), std::move(*merge), type, device->facts().multiprocessors);
}

std::int64_t SliceKernels::messageBytes(StateType type, std::int64_t rows, int dim) {
  constexpr std::int64_t kLine = 128;
  const std::int64_t bytes = rows * dim * bytesOf(type) + (rows + 1) / 2 * 8 + 8;
  return (bytes + kLine - 1) / kLine * kLine;
}

Result<void> SliceKernels::pack(abi::SlicesArgs args, device::cu::Stream stream) const {
  args.lanesOfRow = StateMerge::lanesOfRow(type_, args.dim);
  int heads = 0;
  for (int rank = 0; rank < args.count; ++rank)
    heads = std::max(heads, args.slices[rank].count);
  const long long rows = static_cast<long long>(args.queries) * heads;
  const int blocks = blocksFor(rows, args.lanesOfRow, std::max(1, mostBlocks_ / args.count));
  void *params[] = {&args};
  return pack_.launchDependent(static_cast<unsigned>(blocks * args.count), params, stream);
}

Result<void> SliceKernels::merge(abi::SlicesArgs args, device::cu::Stream stream) const {
  args.lanesOfRow = StateMerge::lanesOfRow(type_, args.dim);
  const long long rows = static_cast<long long>(args.queries) * args.headCount;
  void *params[] = {&args};
  return merge_.launch(static_cast<unsigned>(blocksFor(rows, args.lanesOfRow, mostBlocks_)), params, stream);
}

} // namespace deft::exec
