#include "runtime/exec/cuda/PeerMerge.h"

#include "runtime/exec/cuda/SmallKernel.h"
#include "runtime/exec/cuda/StateMerge.h"

#include <algorithm>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts

std::string entryOf(StateType type) { return std::string("deft_merge_peers_") + elementSuffix(type); }

} // namespace

std::string PeerMerge::source(StateType type) {
  const std::string merge = std::string("deft::PeersMerge<") + elementName(type) + ">";
  return "// " + entryOf(type) + ": makes one of the results that ranks have over parts of the tokens.\n" +
         R"(#include "deft/merge_peers.cuh"

static_assert()" +
         merge + R"(::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__()" +
         merge + "::kThreads)\n" + entryOf(type) +
         "(const __grid_constant__ deft::abi::PeersArgs args) {\n  " + merge + "::run(args);\n}\n";
}

Result<PeerMerge> PeerMerge::create(const std::shared_ptr<device::Device> &device, StateType type) {
  auto kernel = loadSmallKernel(device, entryOf(type), source(type), kThreads);
  if (!kernel)
    return kernel.error();
  auto mark = DeviceMark::create(device, "the mark of ranks that are late");
  if (!mark)
    return mark.error();
  // One for each multiprocessor: blocks wait for each other, so none may wait for room.
  return PeerMerge(std::move(*kernel), std::move(*mark), type, device->facts().multiprocessors);
}

std::int64_t PeerMerge::bufferBytes(StateType type, std::int64_t rows, int dim) {
  constexpr std::int64_t kLine = 128;
  const std::int64_t bytes = rows * dim * bytesOf(type) + rows * static_cast<std::int64_t>(sizeof(float));
  return (bytes + kLine - 1) / kLine * kLine;
}

Result<void> PeerMerge::launch(abi::PeersArgs args, device::cu::Stream stream) const {
  args.lanesOfRow = StateMerge::lanesOfRow(type_, args.dim);
  args.late = mark_.onDevice();
  const long long rowsOfBlock = kThreads / args.lanesOfRow;
  const long long rows = static_cast<long long>(args.queries) * args.heads;
  const long long blocks = std::clamp<long long>((rows + rowsOfBlock - 1) / rowsOfBlock, 1, mostBlocks_);
  void *params[] = {&args};
  return kernel_.launchDependent(static_cast<unsigned>(blocks), params, stream);
}

std::optional<support::Error> PeerMerge::takeFault() const {
  const auto late = mark_.takeNoted();
  if (!late)
    return {};
  return support::Error{support::ErrorCode::Environment,
                        "rank " + std::to_string(late->which) + " did not give its results of run " +
                            std::to_string(late->value) + " in time",
                        "it has ended, or needs more time: make the merges of all ranks again"};
}

} // namespace deft::exec
