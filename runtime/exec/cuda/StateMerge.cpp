#include "runtime/exec/cuda/StateMerge.h"

#include "runtime/exec/cuda/SmallKernel.h"

#include <algorithm>
#include <bit>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts

std::string entryOf(StateType type) { return std::string("deft_merge_states_") + elementSuffix(type); }

} // namespace

const char *elementName(StateType type) {
  return type == StateType::F32 ? "float" : type == StateType::F16 ? "deft::f16" : "deft::bf16";
}

const char *elementSuffix(StateType type) {
  return type == StateType::F32 ? "f32" : type == StateType::F16 ? "f16" : "bf16";
}

int StateMerge::lanesOfRow(StateType type, int dim) {
  const auto pieces = static_cast<unsigned>(std::max(dim / piece(type), 1));
  return static_cast<int>(std::min(std::bit_ceil(pieces), 32u));
}

std::string StateMerge::source(StateType type) {
  const std::string merge = std::string("deft::StatesMerge<") + elementName(type) + ">";
  return "// " + entryOf(type) + ": makes one of partial attentions of the same rows.\n" +
         R"(#include "deft/merge_states.cuh"

static_assert()" +
         merge + R"(::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__()" +
         merge + "::kThreads)\n" + entryOf(type) +
         "(const __grid_constant__ deft::abi::StatesArgs args) {\n  " + merge + "(args).merge();\n}\n";
}

Result<StateMerge> StateMerge::create(const std::shared_ptr<device::Device> &device, StateType type) {
  auto kernel = loadSmallKernel(device, entryOf(type), source(type), kThreads);
  if (!kernel)
    return kernel.error();
  return StateMerge(std::move(*kernel), type);
}

Result<void> StateMerge::launch(abi::StatesArgs args, device::cu::Stream stream) const {
  args.lanesOfRow = lanesOfRow(type_, args.dim);
  const long long rowsOfBlock = kThreads / args.lanesOfRow;
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>((args.rows + rowsOfBlock - 1) / rowsOfBlock), params, stream);
}

} // namespace deft::exec
