#include "runtime/api/Checks.h"
#include "runtime/api/Dtypes.h"
#include "runtime/api/Gpu.h"
#include "runtime/api/RunTensors.h"
#include "runtime/exec/cuda/StateMerge.h"

#include <deft/c/merge_states.h>

using namespace deft;
using namespace deft::api;

static_assert(DEFT_MOST_STATES == abi::StatesArgs::kMost);
static_assert(static_cast<int>(exec::StateType::F32) == DEFT_F32);
static_assert(static_cast<int>(exec::StateType::F16) == DEFT_F16);
static_assert(static_cast<int>(exec::StateType::BF16) == DEFT_BF16);

struct deft_gpu_state_merge {
  deft_gpu gpu;
  deft_dtype dtype;
  exec::StateMerge merge;
};

Result<exec::StateType> deft::api::stateTypeOf(deft_dtype dtype, const std::string &field) {
  if (dtype == DEFT_F32 || dtype == DEFT_F16 || dtype == DEFT_BF16)
    return static_cast<exec::StateType>(dtype);
  return wrong(field, "is " + dtypeName(dtype) + ", it must be float32, float16 or bfloat16");
}

namespace {

/// What a merge reads or writes: rows without gaps.
struct Memory {
  const void *begin = nullptr;
  std::int64_t bytes = 0;

  bool overlaps(const Memory &other) const {
    const auto from = reinterpret_cast<std::uintptr_t>(begin),
               with = reinterpret_cast<std::uintptr_t>(other.begin);
    return from < with + static_cast<std::uintptr_t>(other.bytes) &&
           with < from + static_cast<std::uintptr_t>(bytes);
  }
};

/// A row is written behind all that is read of it, so what is written may be what is read, but not another
/// row's.
Result<void> checkApart(const abi::StatesArgs &args, exec::StateType type) {
  const std::int64_t outBytes = args.rows * args.dim * (type == exec::StateType::F32 ? 4 : 2);
  const std::int64_t lseBytes = args.lse ? args.rows * 4 : 0;
  const Memory out{args.out, outBytes}, lse{args.lse, lseBytes};
  const auto refuse = [](const std::string &written, const std::string &read) {
    return wrong("to." + written, "overlaps with " + read,
                 "it may be all of a state's own " + written + ", or has memory of its own");
  };
  for (int i = 0; i < args.count; ++i) {
    const Memory stateOut{args.outs[i], outBytes}, stateLse{args.lses[i], args.rows * 4};
    const std::string of = " of state " + std::to_string(i);
    if ((out.overlaps(stateOut) && out.begin != stateOut.begin) || out.overlaps(stateLse))
      return refuse("out", (out.overlaps(stateLse) ? "lse" : "out") + of);
    if ((lse.overlaps(stateLse) && lse.begin != stateLse.begin) || lse.overlaps(stateOut))
      return refuse("lse", (lse.overlaps(stateOut) ? "out" : "lse") + of);
  }
  if (out.overlaps(lse))
    return refuse("lse", "its out");
  return {};
}

Result<void> checkCount(std::size_t count) {
  if (count >= 1 && count <= DEFT_MOST_STATES)
    return {};
  return wrong("states",
               "are " + std::to_string(count) + ", a call merges 1 to " + std::to_string(DEFT_MOST_STATES));
}

Result<abi::StatesArgs> argsOf(const deft_state *states, std::size_t count, const deft_state *to,
                               deft_dtype dtype, const RunDevice &device) {
  const auto tensors = checkStates(states, count, to, dtype, device);
  if (!tensors)
    return tensors.error();
  constexpr std::int64_t kMostRows = std::int64_t{1} << 32;
  constexpr int kMostDim = 1 << 20;
  if (tensors->rows > kMostRows || tensors->dim < 1 || tensors->dim > kMostDim)
    return wrong("to.out", "has " + std::to_string(tensors->rows) + " rows of " +
                               std::to_string(tensors->dim) + " elements, there may be " +
                               std::to_string(kMostRows) + " of 1 to " + std::to_string(kMostDim));
  abi::StatesArgs args{};
  args.rows = tensors->rows;
  args.dim = tensors->dim;
  args.count = static_cast<int>(count);
  args.out = tensors->to.out;
  args.lse = tensors->to.lse;
  for (std::size_t i = 0; i < count; ++i) {
    args.outs[i] = tensors->states[i].out;
    args.lses[i] = tensors->states[i].lse;
  }
  return args;
}

/// The kernel reads 16 bytes at a time.
Result<void> checkPieces(const abi::StatesArgs &args, exec::StateType type) {
  if (const int piece = exec::StateMerge::piece(type); args.dim % piece != 0)
    return wrong("to.out",
                 "has a head_dim of " + std::to_string(args.dim) + ", which is not a multiple of " +
                     std::to_string(piece),
                 "a row on a GPU is a multiple of 16 bytes");
  const auto isAligned = [](const void *memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
  };
  for (int i = 0; i < args.count; ++i)
    if (!isAligned(args.outs[i]))
      return wrong("states[" + std::to_string(i) + "].out", "does not begin at a multiple of 16 bytes");
  if (!isAligned(args.out))
    return wrong("to.out", "does not begin at a multiple of 16 bytes");
  return {};
}

} // namespace

deft_status deft_merge_states(const deft_state *states, size_t count, const deft_state *to) {
  return call({{"states", states}, {"to", to}}, [&]() -> Result<void> {
    if (auto checked = checkCount(count); !checked)
      return checked;
    const auto dtype = stateDtype("states[0].out", states[0]);
    if (!dtype)
      return dtype.error();
    const auto type = stateTypeOf(*dtype, "states[0].out");
    if (!type)
      return type.error();
    const auto args = argsOf(states, count, to, *dtype, {});
    if (!args)
      return args.error();
    if (auto checked = checkApart(*args, *type); !checked)
      return checked;
    exec::mergeStates(*args, *type);
    return {};
  });
}

deft_status deft_gpu_state_merge_load(const deft_gpu *gpu, deft_dtype type, deft_gpu_state_merge **merge) {
  return make({{"gpu", gpu}}, merge, [&]() -> Result<std::unique_ptr<deft_gpu_state_merge>> {
    const auto own = stateTypeOf(type, "type");
    if (!own)
      return own.error();
    auto made = exec::StateMerge::create(gpu->device, *own);
    if (!made)
      return made.error();
    return std::make_unique<deft_gpu_state_merge>(*gpu, type, std::move(*made));
  });
}

void deft_gpu_state_merge_destroy(deft_gpu_state_merge *merge) { delete merge; }

deft_status deft_gpu_state_merge_run(const deft_gpu_state_merge *merge, const deft_state *states,
                                     size_t count, const deft_state *to, deft_gpu_stream stream) {
  return call({{"merge", merge}, {"states", states}, {"to", to}}, [&]() -> Result<void> {
    if (auto checked = checkCount(count); !checked)
      return checked;
    const RunDevice device{.isGpu = true, .gpu = merge->gpu.index()};
    const auto args = argsOf(states, count, to, merge->dtype, device);
    if (!args)
      return args.error();
    if (auto checked = checkPieces(*args, merge->merge.type()); !checked)
      return checked;
    if (auto checked = checkApart(*args, merge->merge.type()); !checked)
      return checked;
    return merge->merge.launch(*args, streamOf(stream));
  });
}
