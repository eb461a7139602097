#pragma once

#include <deft/attention.hpp>
#include <deft/c/peers.h>
#include <deft/gpu.hpp>
#include <deft/merge_states.hpp>
#include <deft/plan.hpp>
#include <deft/ranks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// Merges the results of one tree over several ranks (ranks.hpp): on the processors of one host, or on GPUs.
namespace deft {

struct PeersOptions {
  std::string name;           ///< of the group: letters, digits, `_`, `-` and `.`; unique at that time
  int count = 1;              ///< ranks
  int rank = 0;               ///< this one
  std::int64_t bytes = 0;     ///< of a rank's largest results, out and lse together
  double timeoutSeconds = 10; ///< a later rank is an error
};

/// The results of a rank's run: [queries][heads][dim] and [queries][heads], packed.
struct RankShape {
  std::int64_t queries = 0;
  int heads = 0, dim = 0;
  StateType type = StateType::F32;
};

/// The objects that ranks must have in common. Null ones are not compared.
struct Agreement {
  const Attention *attention = nullptr;
  const Plan *plan = nullptr;
  const GpuPlan *gpuPlan = nullptr;
  const Tree *tree = nullptr;
};

namespace detail {

inline deft_agreement agreementOf(const Agreement &on) {
  deft_agreement own{};
  own.size = sizeof own;
  own.attention = on.attention ? on.attention->handle() : nullptr;
  own.plan = on.plan ? on.plan->handle() : nullptr;
  own.gpu_plan = on.gpuPlan ? on.gpuPlan->handle() : nullptr;
  own.tree = on.tree ? on.tree->handle() : nullptr;
  return own;
}

/// A rank's own and merged results as tensors, for one call.
class RankStatesOfC {
public:
  RankStatesOfC(const RankShape &shape, const State &given, int headCount, const MergedState &merged)
      : all_{shape.queries, shape.heads, shape.dim}, some_{shape.queries, headCount, shape.dim},
        tensors_{tensor(given.out, all_, static_cast<deft_dtype>(shape.type), 3),
                 tensor(given.lse, all_, DEFT_F32, 2),
                 tensor(merged.out, some_, static_cast<deft_dtype>(shape.type), 3),
                 tensor(merged.lse, some_, DEFT_F32, 2)},
        own{&tensors_[0], &tensors_[1]}, to{&tensors_[2], merged.lse ? &tensors_[3] : nullptr} {}
  RankStatesOfC(const RankStatesOfC &) = delete;
  RankStatesOfC &operator=(const RankStatesOfC &) = delete;

private:
  static deft_tensor tensor(const void *data, const std::int64_t *sizes, deft_dtype dtype, int ndim) {
    deft_tensor made{};
    made.size = sizeof made;
    made.data = const_cast<void *>(data);
    made.shape = sizes;
    made.dtype = dtype;
    made.ndim = ndim;
    return made;
  }

  std::int64_t all_[3], some_[3];
  deft_tensor tensors_[4];

public:
  deft_state own, to;
};

} // namespace detail

/// A rank of the group. All ranks make the same calls, in the same order, each rank in one thread at a time.
/// A call returns when all ranks have made it, or with an error that names a rank that has ended, has given
/// up, or was too late. After an error the group is unusable: ranks must meet again.
class Peers {
public:
  static Result<Peers> meet(const PeersOptions &options) {
    deft_peers_options own{};
    own.size = sizeof own;
    own.name = options.name.c_str();
    own.count = options.count;
    own.rank = options.rank;
    own.bytes = options.bytes;
    own.timeout_seconds = options.timeoutSeconds;
    return detail::made<Peers, deft_peers>([&](auto to) { return deft_peers_meet(&own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Peers(deft_peers *handle) : handle_(handle) {}

  /// The error names a rank that differs, and the two values.
  Result<void> agree(const Agreement &on) {
    const deft_agreement own = detail::agreementOf(on);
    return detail::done(deft_peers_agree(handle_.get(), &own));
  }

  /// Gives this rank's results to the others, and merges `headCount` heads of all ranks, from `headBegin` on.
  /// `to` is [queries][headCount][dim] and [queries][headCount], and must not overlap `own`.
  Result<void> merge(const RankShape &shape, const State &own, int headBegin, int headCount,
                     const MergedState &to) {
    const detail::RankStatesOfC states(shape, own, headCount, to);
    return detail::done(deft_peers_merge(handle_.get(), &states.own, headBegin, headCount, &states.to));
  }

private:
  detail::Owned<deft_peers, deft_peers_destroy> handle_;
};

/// How results go from GPU to GPU.
enum class Transport : deft_transport {
  Auto = DEFT_TRANSPORT_AUTO,     ///< mapped if every pair of ranks can, else NCCL
  Mapped = DEFT_TRANSPORT_MAPPED, ///< each reads the others' memory
  Nccl = DEFT_TRANSPORT_NCCL,     ///< libnccl.so.2, loaded at run time
};

/// Names a group of GPUs that use NCCL.
using PeersId = std::array<std::byte, DEFT_PEERS_ID_BYTES>;

struct GpuPeersOptions {
  int count = 1, rank = 0;
  StateType type = StateType::BF16;
  int queries = 0; ///< most queries of a merge
  int heads = 0, dim = 0;
  double timeoutSeconds = 10; ///< a later rank is an error of check()
  /// For GpuPeers::make: the memory of each rank as this rank's GPU maps it, of GpuPeers::bytes() each, zeros
  /// at first.
  std::span<void *const> memories = {};
  /// Instead of `memories`, for ranks on any hosts, which use NCCL: the id that one rank made with
  /// GpuPeers::makeId() and sent to all others.
  const PeersId *id = nullptr;
  int headBegin = 0, headCount = 0;      ///< that this rank merges; NCCL sends no others; 0 and 0: all
  Transport transport = Transport::Auto; ///< of ranks that meet by a name
};

/// A rank's end of a group of GPUs. GPUs of one host map each other's memory and merge in one launch; GPUs of
/// any hosts use NCCL. A graph can capture merges. All ranks merge equally often, in the same order, each on
/// one stream.
class GpuPeers {
public:
  /// The size of a rank's memory.
  static Result<std::int64_t> bytes(const GpuPeersOptions &options) {
    const deft_gpu_peers_options own = optionsOf(options);
    return detail::filled<std::int64_t>([&](auto to) { return deft_gpu_peers_get_bytes(&own, to); });
  }
  /// Makes the id of a new group. One rank makes it, hands it to the others, and stays until all have met.
  static Result<PeersId> makeId() {
    return detail::filled<PeersId>([](auto to) { return deft_gpu_peers_make_id(to->data()); });
  }
  /// Makes a rank from `memories`, which you keep until the last merge has ended, or from an id.
  static Result<GpuPeers> make(const Gpu &gpu, const GpuPeersOptions &options) {
    const deft_gpu_peers_options own = optionsOf(options);
    return detail::made<GpuPeers, deft_gpu_peers>(
        [&](auto to) { return deft_gpu_peers_make(gpu.handle(), &own, to); });
  }
  /// The ranks of the group `name`, on one host, map each other's memory or use NCCL. Returns when all ranks
  /// have met.
  static Result<GpuPeers> meet(const Gpu &gpu, const GpuPeersOptions &options, const std::string &name) {
    const deft_gpu_peers_options own = optionsOf(options);
    return detail::made<GpuPeers, deft_gpu_peers>(
        [&](auto to) { return deft_gpu_peers_meet(gpu.handle(), &own, name.c_str(), to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuPeers(deft_gpu_peers *handle) : handle_(handle) {}

  /// The transport in use: mapped or NCCL.
  Result<Transport> transport() const {
    deft_transport found = DEFT_TRANSPORT_AUTO;
    if (auto asked = detail::done(deft_gpu_peers_get_transport(handle_.get(), &found)); !asked)
      return asked.error();
    return static_cast<Transport>(found);
  }
  /// Works like Peers::agree, for ranks that have met by a name or an id.
  Result<void> agree(const Agreement &on) const {
    const deft_agreement own = detail::agreementOf(on);
    return detail::done(deft_gpu_peers_agree(handle_.get(), &own));
  }
  /// Works like Peers::merge; `to` may be memory of `own`.
  Result<void> merge(const RankShape &shape, const State &own, int headBegin, int headCount,
                     const MergedState &to, GpuStream stream) const {
    const detail::RankStatesOfC states(shape, own, headCount, to);
    return detail::done(
        deft_gpu_peers_merge(handle_.get(), &states.own, headBegin, headCount, &states.to, stream));
  }
  /// Returns an error if a finished merge found a rank late.
  Result<void> check() const { return detail::done(deft_gpu_peers_check(handle_.get())); }

private:
  static deft_gpu_peers_options optionsOf(const GpuPeersOptions &of) {
    deft_gpu_peers_options own{};
    own.size = sizeof own;
    own.count = of.count;
    own.rank = of.rank;
    own.type = static_cast<deft_dtype>(of.type);
    own.queries = of.queries;
    own.heads = of.heads;
    own.head_dim = of.dim;
    own.timeout_seconds = of.timeoutSeconds;
    own.memories = static_cast<int>(of.memories.size()) == of.count ? of.memories.data() : nullptr;
    own.id = of.id ? of.id->data() : nullptr;
    own.head_begin = of.headBegin;
    own.head_count = of.headCount;
    own.transport = static_cast<deft_transport>(of.transport);
    return own;
  }

  detail::Owned<deft_gpu_peers, deft_gpu_peers_destroy> handle_;
};

} // namespace deft
