#include "runtime/api/Agreement.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Gpu.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Sized.h"
#include "runtime/exec/cuda/StateMerge.h"
#include "runtime/peers/GpuMeeting.h"
#include "runtime/peers/MappedExchange.h"
#include "runtime/peers/NcclExchange.h"

#include <deft/c/peers.h>

#include <cstring>
#include <memory>
#include <span>
#include <tuple>

using namespace deft;
using namespace deft::api;

static_assert(DEFT_MOST_RANKS == abi::PeerMemory::kMostRanks);
static_assert(DEFT_PEERS_ID_BYTES == device::nccl::kIdBytes);
static_assert(static_cast<int>(peers::Transport::Auto) == DEFT_TRANSPORT_AUTO);
static_assert(static_cast<int>(peers::Transport::Mapped) == DEFT_TRANSPORT_MAPPED);
static_assert(static_cast<int>(peers::Transport::Nccl) == DEFT_TRANSPORT_NCCL);

struct deft_gpu_peers {
  deft_gpu gpu;
  deft_dtype dtype;
  peers::GpuGroup group;
  std::unique_ptr<peers::GpuExchange> exchange;
};

namespace {

struct Options {
  deft_gpu_peers_options known;
  peers::GpuGroup group;
  peers::Transport transport;
};

Result<Options> optionsOf(const deft_gpu_peers_options *given) {
  const auto known = readSized("deft_gpu_peers_options", given);
  if (!known)
    return known.error();
  const std::string of = "deft_gpu_peers_options::";
  const auto type = stateTypeOf(known->type, of + "type");
  if (!type)
    return type.error();
  constexpr int kMost = 1 << 24;
  for (const auto &[name, value, least, most] :
       {std::tuple<const char *, long long, long long, long long>("count", known->count, 1, DEFT_MOST_RANKS),
        {"rank", known->rank, 0, known->count - 1},
        {"queries", known->queries, 0, kMost},
        {"heads", known->heads, 1, kMost},
        {"head_dim", known->head_dim, 1, kMost},
        {"head_begin", known->head_begin, 0, known->heads},
        {"head_count", known->head_count, 0, known->heads - known->head_begin},
        {"transport", known->transport, DEFT_TRANSPORT_AUTO, DEFT_TRANSPORT_NCCL}})
    if (auto checked = checkRange(of + name, value, least, most); !checked)
      return checked.error();
  if (const int piece = exec::StateMerge::piece(*type); known->head_dim % piece != 0)
    return wrong(of + "head_dim",
                 "is " + std::to_string(known->head_dim) + ", which is not a multiple of " +
                     std::to_string(piece),
                 "a row on a GPU is a multiple of 16 bytes");
  if (known->timeout_seconds < 0)
    return wrong(of + "timeout_seconds", "is " + std::to_string(known->timeout_seconds) + ", not above 0");
  const bool wantsAll = known->head_begin == 0 && known->head_count == 0;
  return Options{*known,
                 {.count = known->count,
                  .rank = known->rank,
                  .type = *type,
                  .queries = known->queries,
                  .heads = known->heads,
                  .dim = known->head_dim,
                  .headBegin = known->head_begin,
                  .headCount = wantsAll ? known->heads : known->head_count,
                  .timeoutSeconds = known->timeout_seconds > 0 ? known->timeout_seconds
                                                               : peers::PeersOptions{}.timeoutSeconds,
                  .version = peers::hashOf(deft_version())},
                 static_cast<peers::Transport>(known->transport)};
}

/// Over memory that the program has mapped.
Result<std::unique_ptr<peers::GpuExchange>> useMemories(const deft_gpu &gpu, const Options &options) {
  const std::span memories(options.known.memories, static_cast<std::size_t>(options.group.count));
  for (std::size_t rank = 0; rank < memories.size(); ++rank)
    if (!memories[rank] || reinterpret_cast<std::uintptr_t>(memories[rank]) % 16 != 0)
      return wrong("deft_gpu_peers_options::memories",
                   "of rank " + std::to_string(rank) +
                       (memories[rank] ? " does not begin at a multiple of 16 bytes" : " is null"),
                   "the GPUs map each other's memory first");
  return peers::MappedExchange::create(gpu.device, options.group, memories);
}

Result<std::unique_ptr<peers::GpuExchange>> useId(const deft_gpu &gpu, const Options &options) {
  auto nccl = device::Nccl::load();
  if (!nccl)
    return nccl.error();
  device::nccl::Id id;
  std::memcpy(id.bytes, options.known.id, sizeof id.bytes);
  return peers::NcclExchange::create(std::move(*nccl), gpu.device, options.group, id,
                                     options.group.timeoutSeconds);
}

using Made = Result<std::unique_ptr<deft_gpu_peers>>;

Made endOf(const deft_gpu &gpu, const Options &options,
           Result<std::unique_ptr<peers::GpuExchange>> exchange) {
  if (!exchange)
    return exchange.error();
  return std::unique_ptr<deft_gpu_peers>(
      new deft_gpu_peers{gpu, options.known.type, options.group, std::move(*exchange)});
}

Made makeEnd(const deft_gpu &gpu, const deft_gpu_peers_options *given) {
  const auto options = optionsOf(given);
  if (!options)
    return options.error();
  if (!options->known.memories && !options->known.id)
    return wrong("deft_gpu_peers_options::memories", "is null, and so is the id");
  if (options->known.memories && options->known.id)
    return wrong("deft_gpu_peers_options::memories", "is given beside an id");
  const auto fitting = options->known.id ? peers::Transport::Nccl : peers::Transport::Mapped;
  if (options->transport != peers::Transport::Auto && options->transport != fitting)
    return wrong("deft_gpu_peers_options::transport", options->known.id
                                                          ? "is mapped memory, and an id is for NCCL"
                                                          : "is NCCL, and memories are mapped");
  return endOf(gpu, *options, options->known.id ? useId(gpu, *options) : useMemories(gpu, *options));
}

Made meet(const deft_gpu &gpu, const deft_gpu_peers_options *given, const char *name) {
  const auto options = optionsOf(given);
  if (!options)
    return options.error();
  if (options->known.memories || options->known.id)
    return wrong(options->known.memories ? "deft_gpu_peers_options::memories" : "deft_gpu_peers_options::id",
                 "is not null", "ranks that meet make their own");
  return endOf(gpu, *options, peers::meet(gpu.device, options->group, name, options->transport));
}

Result<void> mergeOn(const deft_gpu_peers &peers, const deft_state *own, int headBegin, int headCount,
                     const deft_state *to, deft_gpu_stream stream) {
  const RunDevice device{.isGpu = true, .gpu = peers.gpu.index()};
  const auto given = checkState("own", own, peers.dtype, device);
  if (!given)
    return given.error();
  const auto wanted = checkStates(nullptr, 0, to, peers.dtype, device);
  if (!wanted)
    return wanted.error();
  const peers::GpuGroup &group = peers.group;
  if (given->heads != group.heads || given->dim != group.dim || given->queries > group.queries)
    return wrong("own", "is of shape [" + std::to_string(given->queries) + ", " +
                            std::to_string(given->heads) + ", " + std::to_string(given->dim) +
                            "], but the group was made for [" + std::to_string(group.queries) + ", " +
                            std::to_string(group.heads) + ", " + std::to_string(group.dim) + "] at most");
  if (auto checked = checkMergedHeads(*given, headBegin, headCount, *wanted); !checked)
    return checked;
  const int groupEnd = group.headBegin + group.headCount;
  if (headCount > 0 && (headBegin < group.headBegin || headBegin + headCount > groupEnd))
    return wrong("head_begin", "is " + std::to_string(headBegin) + " for " + std::to_string(headCount) +
                                   " heads, but this rank's end was made for " +
                                   std::to_string(group.headBegin) + " to " + std::to_string(groupEnd));
  for (const auto &[name, memory] : {std::pair("own.out", given->to.out), {"to.out", wanted->to.out}})
    if (reinterpret_cast<std::uintptr_t>(memory) % 16 != 0)
      return wrong(name, "does not begin at a multiple of 16 bytes");
  return peers.exchange->merge({.own = given->to.out,
                                .ownLse = given->to.lse,
                                .out = wanted->to.out,
                                .lse = wanted->to.lse,
                                .queries = static_cast<int>(given->queries),
                                .headBegin = headCount > 0 ? headBegin : group.headBegin,
                                .headCount = headCount},
                               streamOf(stream));
}

} // namespace

deft_status deft_gpu_peers_get_bytes(const deft_gpu_peers_options *options, int64_t *bytes) {
  return call({{"options", options}, {"bytes", bytes}}, [&]() -> Result<void> {
    const auto known = optionsOf(options);
    if (!known)
      return known.error();
    *bytes = exec::PeerMerge::memoryBytes(known->group.type, known->group.rows(), known->group.dim);
    return {};
  });
}

deft_status deft_gpu_peers_make_id(void *id) {
  return call({{"id", id}}, [&]() -> Result<void> {
    const auto nccl = device::Nccl::load();
    if (!nccl)
      return nccl.error();
    const auto made = (*nccl)->makeId();
    if (made)
      std::memcpy(id, made->bytes, sizeof made->bytes);
    return made ? Result<void>() : made.error();
  });
}

deft_status deft_gpu_peers_make(const deft_gpu *gpu, const deft_gpu_peers_options *options,
                                deft_gpu_peers **peers) {
  return make({{"gpu", gpu}, {"options", options}}, peers, [&] { return makeEnd(*gpu, options); });
}

deft_status deft_gpu_peers_meet(const deft_gpu *gpu, const deft_gpu_peers_options *options, const char *name,
                                deft_gpu_peers **peers) {
  return make({{"gpu", gpu}, {"options", options}, {"name", name}}, peers,
              [&] { return meet(*gpu, options, name); });
}

void deft_gpu_peers_destroy(deft_gpu_peers *peers) { delete peers; }

deft_status deft_gpu_peers_get_transport(const deft_gpu_peers *peers, deft_transport *transport) {
  return call({{"peers", peers}, {"transport", transport}}, [&]() -> Result<void> {
    *transport = static_cast<deft_transport>(peers->exchange->transport());
    return {};
  });
}

deft_status deft_gpu_peers_agree(const deft_gpu_peers *peers, const deft_agreement *own) {
  return call({{"peers", peers}, {"own", own}}, [&]() -> Result<void> {
    const auto known = agreementOf(own, peers->group.count, peers->group.rank);
    if (!known)
      return known.error();
    return peers->exchange->agree(known->hashes, known->kind, known->holders);
  });
}

deft_status deft_gpu_peers_merge(const deft_gpu_peers *peers, const deft_state *own, int32_t head_begin,
                                 int32_t head_count, const deft_state *to, deft_gpu_stream stream) {
  return call({{"peers", peers}, {"own", own}, {"to", to}},
              [&] { return mergeOn(*peers, own, head_begin, head_count, to, stream); });
}

deft_status deft_gpu_peers_check(const deft_gpu_peers *peers) {
  return call({{"peers", peers}}, [&]() -> Result<void> {
    if (const auto fault = peers->exchange->takeFault())
      return Error(*fault);
    return {};
  });
}
