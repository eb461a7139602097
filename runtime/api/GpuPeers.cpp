#include "runtime/api/Checks.h"
#include "runtime/api/Gpu.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Sized.h"
#include "runtime/device/SharedMemory.h"
#include "runtime/exec/cuda/PeerMerge.h"
#include "runtime/exec/cuda/StateMerge.h"
#include "runtime/peers/HandleExchange.h"
#include "runtime/peers/Peers.h"

#include <deft/c/peers.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace deft;
using namespace deft::api;

static_assert(DEFT_MOST_RANKS == abi::PeerMemory::kMostRanks);

struct deft_gpu_peers {
  deft_gpu gpu;
  deft_dtype dtype;
  abi::PeersArgs args; ///< of every merge
  exec::PeerMerge merge;
  std::vector<std::optional<device::SharedMemory>> memories = {}; ///< of ranks that have met
};

namespace {

struct Options {
  deft_gpu_peers_options known;
  exec::StateType type;

  std::int64_t rows() const { return std::int64_t{known.queries} * known.heads; }
  std::int64_t memoryBytes() const { return exec::PeerMerge::memoryBytes(type, rows(), known.head_dim); }
  double patience() const {
    return known.timeout_seconds > 0 ? known.timeout_seconds : peers::PeersOptions{}.timeoutSeconds;
  }
};

Result<Options> optionsOf(const deft_gpu_peers_options *given) {
  const auto known = readSized("deft_gpu_peers_options", given);
  if (!known)
    return known.error();
  const auto type = stateTypeOf(known->type);
  if (!type)
    return type.error();
  constexpr int kMost = 1 << 24;
  const std::string of = "deft_gpu_peers_options::";
  for (const auto &[name, value, least, most] :
       {std::tuple<const char *, long long, long long, long long>("count", known->count, 1, DEFT_MOST_RANKS),
        {"rank", known->rank, 0, known->count - 1},
        {"queries", known->queries, 0, kMost},
        {"heads", known->heads, 1, kMost},
        {"head_dim", known->head_dim, 1, kMost}})
    if (auto checked = checkRange(of + name, value, least, most); !checked)
      return checked.error();
  if (const int piece = exec::StateMerge::piece(*type); known->head_dim % piece != 0)
    return wrong(of + "head_dim",
                 "is " + std::to_string(known->head_dim) + ", which is not a multiple of " +
                     std::to_string(piece),
                 "a row on a GPU is a multiple of 16 bytes");
  if (known->timeout_seconds < 0)
    return wrong(of + "timeout_seconds", "is " + std::to_string(known->timeout_seconds) + ", not above 0");
  return Options{*known, *type};
}

Result<std::unique_ptr<deft_gpu_peers>> makePeers(const deft_gpu &gpu, const Options &options,
                                                  void *const *memories) {
  const deft_gpu_peers_options &known = options.known;
  if (!memories)
    return wrong("deft_gpu_peers_options::memories", "is null");
  abi::PeersArgs args{};
  for (int rank = 0; rank < known.count; ++rank) {
    args.ranks[rank] = static_cast<abi::PeerMemory *>(memories[rank]);
    if (!args.ranks[rank] || reinterpret_cast<std::uintptr_t>(args.ranks[rank]) % 16 != 0)
      return wrong("deft_gpu_peers_options::memories",
                   "of rank " + std::to_string(rank) +
                       (args.ranks[rank] ? " does not begin at a multiple of 16 bytes" : " is null"),
                   "the GPUs map each other's memory first");
  }
  constexpr double kNanoseconds = 1e9;
  args.bufferBytes = exec::PeerMerge::bufferBytes(options.type, options.rows(), known.head_dim);
  args.count = known.count;
  args.rank = known.rank;
  args.heads = known.heads;
  args.dim = known.head_dim;
  args.mostNs = static_cast<unsigned long long>(options.patience() * kNanoseconds);
  auto merge = exec::PeerMerge::create(gpu.device, options.type);
  if (!merge)
    return merge.error();
  auto made = std::unique_ptr<deft_gpu_peers>(new deft_gpu_peers{gpu, known.type, args, std::move(*merge)});
  made->args.queries = known.queries;
  return made;
}

/// Each rank's memory as this GPU maps it.
using Memories = std::vector<std::optional<device::SharedMemory>>;

std::string memoryOf(int rank) { return "the results of rank " + std::to_string(rank); }

/// Makes this rank's own and hands it to all others.
Result<void> handOn(const peers::HandleExchange &exchange, const deft_gpu &gpu, const Options &options,
                    Memories &memories) {
  const int own = options.known.rank;
  const auto bytes = static_cast<std::size_t>(options.memoryBytes());
  auto made = device::SharedMemory::make(gpu.device, bytes, memoryOf(own));
  if (!made)
    return made.error();
  const auto handle = made->handle();
  if (!handle)
    return handle.error();
  const peers::FileHandle handed(*handle);
  memories[static_cast<std::size_t>(own)].emplace(std::move(*made));
  for (int rank = 0; rank < options.known.count; ++rank)
    if (rank != own)
      if (auto sent = exchange.send(rank, handed.number(), options.memoryBytes()); !sent)
        return sent;
  return {};
}

/// The others' memories, in whatever order they come.
Result<void> takeOthers(const peers::HandleExchange &exchange, const deft_gpu &gpu, const Options &options,
                        Memories &memories) {
  const int count = options.known.count;
  const auto bytes = static_cast<std::size_t>(options.memoryBytes());
  for (int missing = count - 1; missing > 0; --missing) {
    const auto came = exchange.receive(options.patience());
    if (!came)
      return came.error();
    if (came->rank < 0 || came->rank >= count || memories[static_cast<std::size_t>(came->rank)])
      return wrong("name", "has another group, whose rank " + std::to_string(came->rank) + " has come");
    if (came->bytes != options.memoryBytes())
      return wrong("deft_gpu_peers_options",
                   "makes a group for other results than that of rank " + std::to_string(came->rank),
                   "all ranks say the same of count, type, queries, heads and head_dim");
    auto opened = device::SharedMemory::open(gpu.device, came->handle.number(), bytes, memoryOf(came->rank));
    if (!opened)
      return opened.error();
    memories[static_cast<std::size_t>(came->rank)].emplace(std::move(*opened));
  }
  return {};
}

Result<Memories> exchangeMemories(const deft_gpu &gpu, const Options &options, const std::string &name) {
  // It is there before the ranks meet, so that all can send to it afterwards.
  const auto exchange = peers::HandleExchange::open(name, options.known.rank);
  if (!exchange)
    return exchange.error();
  auto group = peers::Peers::meet({.name = name,
                                   .count = options.known.count,
                                   .rank = options.known.rank,
                                   .timeoutSeconds = options.patience()});
  if (!group)
    return group.error();
  Memories memories(static_cast<std::size_t>(options.known.count));
  if (auto handed = handOn(*exchange, gpu, options, memories); !handed)
    return handed.error();
  if (auto taken = takeOthers(*exchange, gpu, options, memories); !taken)
    return taken.error();
  // A rank that could not map another's memory has left the group, and all others find that here.
  if (auto agreed = group->agree({}, "", {}); !agreed)
    return agreed.error();
  return memories;
}

Result<std::unique_ptr<deft_gpu_peers>> meet(const deft_gpu &gpu, const deft_gpu_peers_options *given,
                                             const char *name) {
  const auto options = optionsOf(given);
  if (!options)
    return options.error();
  if (options->known.memories)
    return wrong("deft_gpu_peers_options::memories", "is not null", "ranks that meet make their own");
  auto memories = exchangeMemories(gpu, *options, name);
  if (!memories)
    return memories.error();
  std::vector<void *> addresses;
  for (const auto &memory : *memories)
    addresses.push_back(memory->address());
  auto made = makePeers(gpu, *options, addresses.data());
  if (made)
    (*made)->memories = std::move(*memories);
  return made;
}

Result<void> mergeOn(const deft_gpu_peers &peers, const deft_state *own, int headBegin, int headCount,
                     const deft_state *to, deft_gpu_stream stream) {
  const RunPlace place{.isGpu = true, .gpu = peers.gpu.index()};
  const auto given = checkStates(own, 1, own, peers.dtype, place);
  if (!given)
    return given.error();
  const auto wanted = checkStates(nullptr, 0, to, peers.dtype, place);
  if (!wanted)
    return wanted.error();
  abi::PeersArgs args = peers.args;
  if (given->heads != args.heads || given->dim != args.dim || given->queries > args.queries)
    return wrong("own", "is of shape [" + std::to_string(given->queries) + ", " +
                            std::to_string(given->heads) + ", " + std::to_string(given->dim) +
                            "], but the group was made for [" + std::to_string(args.queries) + ", " +
                            std::to_string(args.heads) + ", " + std::to_string(args.dim) + "] at most");
  if (auto checked = checkMergedHeads(*given, headBegin, headCount, *wanted); !checked)
    return checked;
  for (const void *const memory : {given->states[0].out, wanted->to.out})
    if (reinterpret_cast<std::uintptr_t>(memory) % 16 != 0)
      return wrong("out", "does not begin at a multiple of 16 bytes");
  args.own = given->states[0].out;
  args.ownLse = given->states[0].lse;
  args.out = wanted->to.out;
  args.lse = wanted->to.lse;
  args.queries = static_cast<int>(given->queries);
  args.headBegin = headBegin;
  args.headCount = headCount;
  return peers.merge.launch(args, streamOf(stream));
}

} // namespace

deft_status deft_gpu_peers_get_bytes(const deft_gpu_peers_options *options, int64_t *bytes) {
  return call({{"options", options}, {"bytes", bytes}}, [&]() -> Result<void> {
    const auto known = optionsOf(options);
    if (!known)
      return known.error();
    *bytes = known->memoryBytes();
    return {};
  });
}

deft_status deft_gpu_peers_make(const deft_gpu *gpu, const deft_gpu_peers_options *options,
                                deft_gpu_peers **peers) {
  return make({{"gpu", gpu}, {"options", options}}, peers, [&]() -> Result<std::unique_ptr<deft_gpu_peers>> {
    const auto known = optionsOf(options);
    if (!known)
      return known.error();
    return makePeers(*gpu, *known, known->known.memories);
  });
}

deft_status deft_gpu_peers_meet(const deft_gpu *gpu, const deft_gpu_peers_options *options, const char *name,
                                deft_gpu_peers **peers) {
  return make({{"gpu", gpu}, {"options", options}, {"name", name}}, peers,
              [&] { return meet(*gpu, options, name); });
}

void deft_gpu_peers_destroy(deft_gpu_peers *peers) { delete peers; }

deft_status deft_gpu_peers_merge(const deft_gpu_peers *peers, const deft_state *own, int32_t head_begin,
                                 int32_t head_count, const deft_state *to, deft_gpu_stream stream) {
  return call({{"peers", peers}, {"own", own}, {"to", to}},
              [&] { return mergeOn(*peers, own, head_begin, head_count, to, stream); });
}

deft_status deft_gpu_peers_check(const deft_gpu_peers *peers) {
  return call({{"peers", peers}}, [&]() -> Result<void> {
    if (const auto fault = peers->merge.takeFault())
      return Error(*fault);
    return {};
  });
}
