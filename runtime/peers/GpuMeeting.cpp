#include "runtime/peers/GpuMeeting.h"

#include "runtime/peers/HandleExchange.h"
#include "runtime/peers/MappedExchange.h"
#include "runtime/peers/NcclExchange.h"

#include <algorithm>
#include <cstring>

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// For lists of pages, too, which ranks compare later.
constexpr std::int64_t kBytes = 1 << 20;

std::string named(int rank) { return "rank " + std::to_string(rank); }

/// The ranks of a group while they agree on a way.
class Meeting {
public:
  Meeting(std::shared_ptr<device::Device> device, const GpuGroup &group, HandleExchange handles, Peers peers)
      : device_(std::move(device)), group_(group), handles_(std::move(handles)), peers_(std::move(peers)) {}

  Result<void> compare(Transport wanted);

  /// Each rank's memory, where all ranks could map all of it. None: some rank could not, and `obstacle()`
  /// says which and why; an error is that of a rank that is late or does not belong here.
  Result<std::optional<Memories>> map();
  const Error &obstacle() const { return *obstacle_; }

  Result<std::unique_ptr<GpuExchange>> useNccl(const std::string &library);

  Peers takePeers() { return std::move(peers_); }

private:
  /// What each rank says.
  template <typename Value> Result<std::vector<Value>> gather(const Value &own);
  /// Whether all ranks can: nothing went wrong with this one, nor with any other. Else obstacle() says more.
  Result<bool> canAll(const Result<void> &own, const std::string &what);
  Result<void> makeOwn(Memories &memories) const;
  Result<void> handOn(const Memories &memories) const;
  /// An error only where a rank is late or a stranger; `opened`: whether this GPU can map what came.
  Result<void> takeOthers(Memories &memories, Result<void> &opened) const;

  std::size_t bytes() const {
    return static_cast<std::size_t>(exec::PeerMerge::memoryBytes(group_.type, group_.rows(), group_.dim));
  }

  std::shared_ptr<device::Device> device_;
  GpuGroup group_;
  HandleExchange handles_;
  Peers peers_;
  std::optional<Error> obstacle_;
};

std::string memoryOf(int rank) { return "the results of " + named(rank); }

template <typename Value> Result<std::vector<Value>> Meeting::gather(const Value &own) {
  const auto said = peers_.gather(std::as_bytes(std::span(&own, 1)));
  if (!said)
    return said.error();
  std::vector<Value> values(said->size());
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    std::memcpy(&values[rank], (*said)[rank].data(), sizeof(Value));
  return values;
}

Result<void> Meeting::compare(Transport wanted) {
  struct Facts {
    std::int32_t type, queries, heads, dim, transport;
  };
  const Facts own{static_cast<std::int32_t>(group_.type), group_.queries, group_.heads, group_.dim,
                  static_cast<std::int32_t>(wanted)};
  const auto all = gather(own);
  if (!all)
    return all.error();
  for (int rank = 0; rank < group_.count; ++rank) {
    const Facts &other = (*all)[static_cast<std::size_t>(rank)];
    if (other.transport != own.transport)
      return Error{ErrorCode::Usage, named(rank) + " asks for another transport than " + named(group_.rank),
                   ""};
    if (std::memcmp(&other, &own, sizeof own) != 0)
      return Error{ErrorCode::Usage,
                   named(rank) + " makes a group for other results than " + named(group_.rank),
                   "all ranks say the same of count, type, queries, heads and head_dim"};
  }
  return {};
}

Result<bool> Meeting::canAll(const Result<void> &own, const std::string &what) {
  const auto all = gather(static_cast<std::int32_t>(own.ok()));
  if (!all)
    return all.error();
  for (int rank = 0; rank < group_.count && !obstacle_; ++rank)
    if ((*all)[static_cast<std::size_t>(rank)] == 0)
      obstacle_ = Error{ErrorCode::Environment, named(rank) + " cannot " + what, "its own error says why"};
  if (!own)
    obstacle_ = own.error();
  return !obstacle_;
}

Result<void> Meeting::makeOwn(Memories &memories) const {
  auto made = device::SharedMemory::make(device_, bytes(), memoryOf(group_.rank));
  if (!made)
    return made.error();
  memories[static_cast<std::size_t>(group_.rank)].emplace(std::move(*made));
  return {};
}

Result<void> Meeting::handOn(const Memories &memories) const {
  const auto handle = memories[static_cast<std::size_t>(group_.rank)]->handle();
  if (!handle)
    return handle.error();
  const FileHandle handed(*handle);
  for (int rank = 0; rank < group_.count; ++rank)
    if (rank != group_.rank)
      if (auto sent = handles_.send(rank, handed.number(), static_cast<std::int64_t>(bytes())); !sent)
        return sent;
  return {};
}

/// The others' memories, in whatever order they come.
Result<void> Meeting::takeOthers(Memories &memories, Result<void> &opened) const {
  for (int missing = group_.count - 1; missing > 0; --missing) {
    const auto came = handles_.receive(group_.timeoutSeconds);
    if (!came)
      return came.error();
    if (came->rank < 0 || came->rank >= group_.count || came->rank == group_.rank ||
        came->bytes != static_cast<std::int64_t>(bytes()))
      return Error{ErrorCode::Usage,
                   "another group has the same name: its " + named(came->rank) + " has come",
                   "each group has a name of its own"};
    auto memory = device::SharedMemory::open(device_, came->handle.number(), bytes(), memoryOf(came->rank));
    if (memory)
      memories[static_cast<std::size_t>(came->rank)].emplace(std::move(*memory));
    else
      opened = memory.error();
  }
  return {};
}

Result<std::optional<Memories>> Meeting::map() {
  Memories memories(static_cast<std::size_t>(group_.count));
  const auto haveAll = canAll(makeOwn(memories), "share memory of its GPU");
  if (!haveAll)
    return haveAll.error();
  if (!*haveAll)
    return std::optional<Memories>();
  if (auto handed = handOn(memories); !handed)
    return handed.error();
  Result<void> opened;
  if (auto taken = takeOthers(memories, opened); !taken)
    return taken.error();
  const auto areMapped = canAll(opened, "map the memory of all other GPUs");
  if (!areMapped)
    return areMapped.error();
  if (!*areMapped)
    return std::optional<Memories>();
  return std::optional<Memories>(std::move(memories));
}

Result<std::unique_ptr<GpuExchange>> Meeting::useNccl(const std::string &library) {
  struct Ready {
    std::int32_t isReady = 0;
    device::nccl::Id id = {}; ///< of rank 0
  } own;
  const auto load = [&]() -> Result<std::shared_ptr<const device::Nccl>> {
    auto nccl = device::Nccl::load(library);
    if (!nccl)
      return nccl;
    if (group_.rank == 0) {
      const auto id = (*nccl)->makeId();
      if (!id)
        return id.error();
      own.id = *id;
    }
    own.isReady = 1;
    return nccl;
  };
  auto nccl = load();
  const auto all = gather(own);
  if (!all)
    return all.error();
  if (!nccl)
    return nccl.error();
  for (int rank = 0; rank < group_.count; ++rank)
    if ((*all)[static_cast<std::size_t>(rank)].isReady == 0)
      return Error{ErrorCode::Environment, named(rank) + " has no NCCL that it can use",
                   "its own error says why"};
  // All are there, and NCCL takes seconds to begin, however patient merges are.
  constexpr double kSlowest = 60;
  return NcclExchange::create(std::move(*nccl), device_, group_, (*all)[0].id,
                              std::max(group_.timeoutSeconds, kSlowest));
}

} // namespace

Result<std::unique_ptr<GpuExchange>> meet(const std::shared_ptr<device::Device> &device,
                                          const GpuGroup &group, const std::string &name, Transport wanted,
                                          const std::string &library) {
  // It is there before the ranks meet, so that all can send to it afterwards.
  auto handles = HandleExchange::open(name, group.rank);
  if (!handles)
    return handles.error();
  auto peers = Peers::meet({.name = name,
                            .count = group.count,
                            .rank = group.rank,
                            .bytes = kBytes,
                            .timeoutSeconds = group.timeoutSeconds});
  if (!peers)
    return peers.error();
  Meeting meeting(device, group, std::move(*handles), std::move(*peers));
  if (auto compared = meeting.compare(wanted); !compared)
    return compared.error();
  if (wanted == Transport::Nccl)
    return meeting.useNccl(library);
  auto memories = meeting.map();
  if (!memories)
    return memories.error();
  if (*memories)
    return MappedExchange::create(device, group, std::move(**memories), meeting.takePeers());
  if (wanted == Transport::Mapped)
    return meeting.obstacle();
  auto made = meeting.useNccl(library);
  if (made)
    return made;
  Error failed = made.error();
  failed.hint += (failed.hint.empty() ? "" : "; ") + std::string("memory cannot be mapped: ") +
                 meeting.obstacle().message;
  return failed;
}

} // namespace deft::peers
