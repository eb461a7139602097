#include "runtime/api/CheckOptions.h"
#include "runtime/api/Convert.h"
#include "runtime/api/GpuImpl.h"
#include "runtime/exec/cuda/StateMerge.h"

#include <deft/merge_states.hpp>

namespace deft {

using api::usage;

static_assert(kMostStates == abi::StatesArgs::kMost);

struct GpuStateMerge::Impl {
  Gpu gpu;
  exec::StateMerge merge;
};

namespace {

Result<exec::StateType> toInternal(StateType type) {
  if (auto checked = api::checkRange("StateShape::type", static_cast<long long>(type),
                                     static_cast<long long>(StateType::F32),
                                     static_cast<long long>(StateType::BF16), "cast no other to a StateType");
      !checked)
    return checked.error();
  return type == StateType::F32   ? exec::StateType::F32
         : type == StateType::F16 ? exec::StateType::F16
                                  : exec::StateType::BF16;
}

Result<abi::StatesArgs> argsOf(const StateShape &shape, std::span<const State> states,
                               const MergedState &to) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 32;
  constexpr int kMostDim = 1 << 20;
  if (auto checked = api::checkRange("StateShape::rows", shape.rows, 0, kMostRows); !checked)
    return checked.error();
  if (auto checked = api::checkRange("StateShape::dim", shape.dim, 1, kMostDim); !checked)
    return checked.error();
  if (states.empty() || states.size() > static_cast<std::size_t>(kMostStates))
    return usage(std::to_string(states.size()) + " states, not between 1 and " + std::to_string(kMostStates));
  abi::StatesArgs args{};
  args.rows = shape.rows;
  args.dim = shape.dim;
  args.count = static_cast<int>(states.size());
  args.out = to.out;
  args.lse = to.lse;
  for (std::size_t i = 0; i < states.size(); ++i) {
    args.outs[i] = states[i].out;
    args.lses[i] = states[i].lse;
    if (shape.rows > 0 && (!states[i].out || !states[i].lse))
      return usage(std::string(states[i].out ? "lse" : "out") + " of state " + std::to_string(i) +
                   " is null");
  }
  if (shape.rows > 0 && !to.out)
    return usage("MergedState::out is null");
  return args;
}

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
    return usage(written + " of the merged state overlaps with " + read,
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

/// The kernel reads 16 bytes at a time.
Result<void> checkPieces(const abi::StatesArgs &args, exec::StateType type) {
  if (const int piece = exec::StateMerge::piece(type); args.dim % piece != 0)
    return usage("dim = " + std::to_string(args.dim) + " is not a multiple of " + std::to_string(piece),
                 "a row on a GPU is a multiple of 16 bytes");
  const auto isCrooked = [](const void *memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % 16 != 0;
  };
  for (int i = 0; i < args.count; ++i)
    if (isCrooked(args.outs[i]))
      return usage("out of state " + std::to_string(i) + " does not begin at a multiple of 16 bytes");
  if (isCrooked(args.out))
    return usage("MergedState::out does not begin at a multiple of 16 bytes");
  return {};
}

} // namespace

Result<void> mergeStates(const StateShape &shape, std::span<const State> states, const MergedState &to) {
  return api::guarded([&]() -> Result<void> {
    const auto type = toInternal(shape.type);
    if (!type)
      return type.error();
    const auto args = argsOf(shape, states, to);
    if (!args)
      return args.error();
    if (auto checked = checkApart(*args, *type); !checked)
      return checked;
    exec::mergeStates(*args, *type);
    return {};
  });
}

GpuStateMerge::GpuStateMerge(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<GpuStateMerge> GpuStateMerge::load(const Gpu &gpu, StateType type) {
  return api::guarded([&]() -> Result<GpuStateMerge> {
    const auto own = toInternal(type);
    if (!own)
      return own.error();
    auto merge = exec::StateMerge::create(gpu.impl().device, *own);
    if (!merge)
      return api::toPublic(merge.error());
    return GpuStateMerge(std::make_shared<const Impl>(Impl{gpu, std::move(*merge)}));
  });
}

Result<void> GpuStateMerge::run(const StateShape &shape, std::span<const State> states, const MergedState &to,
                                GpuStream stream) const {
  return api::guarded([&]() -> Result<void> {
    const auto type = toInternal(shape.type);
    if (!type)
      return type.error();
    if (*type != impl_->merge.type())
      return usage("StateShape::type is another than the merge was loaded for");
    const auto args = argsOf(shape, states, to);
    if (!args)
      return args.error();
    if (auto checked = checkPieces(*args, *type); !checked)
      return checked;
    if (auto checked = checkApart(*args, *type); !checked)
      return checked;
    return api::toPublic(impl_->merge.launch(*args, static_cast<device::cu::Stream>(stream)));
  });
}

} // namespace deft
