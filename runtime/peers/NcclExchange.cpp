#include "runtime/peers/NcclExchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// What a rank says of itself when the group is made.
struct Hello {
  std::uint64_t version;
  std::int32_t type, queries, heads, dim;
  std::int32_t headBegin, headCount;

  bool makesTheSameAs(const Hello &other) const {
    return type == other.type && queries == other.queries && heads == other.heads && dim == other.dim;
  }
};

/// What a rank says where ranks agree.
struct Said {
  Agreement agreement;
  std::int64_t holders;
};

template <typename Value> std::span<const std::byte> bytesOf(const Value &value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename Value> Value valueOf(const std::vector<std::byte> &bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// "rank 1", "ranks 1 and 3"
std::string namesOf(unsigned long long ranks) {
  std::vector<int> list;
  for (int rank = 0; rank < abi::PeerMemory::kMostRanks; ++rank)
    if ((ranks >> rank & 1) != 0)
      list.push_back(rank);
  std::string names = list.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < list.size(); ++i)
    names += (i == 0 ? "" : i + 1 < list.size() ? ", " : " and ") + std::to_string(list[i]);
  return names;
}

Error late(const std::string &ranks, unsigned long long run) {
  return {ErrorCode::Environment,
          ranks + " did not give " + (ranks.starts_with("ranks") ? "their" : "its") + " results of run " +
              std::to_string(run) + " in time",
          "it has ended, or needs more time: let all ranks meet again"};
}

} // namespace

NcclExchange::NcclExchange(exec::SliceKernels kernels, const std::shared_ptr<device::Device> &device,
                           const GpuGroup &group)
    : group_(group), kernels_(std::move(kernels)), messages_(device), state_(device), words_(device) {}

Result<std::unique_ptr<GpuExchange>> NcclExchange::create(std::shared_ptr<const device::Nccl> nccl,
                                                          const std::shared_ptr<device::Device> &device,
                                                          const GpuGroup &group, const device::nccl::Id &id,
                                                          double joinSeconds) {
  auto kernels = exec::SliceKernels::create(device, group.type);
  if (!kernels)
    return kernels.error();
  std::unique_ptr<NcclExchange> made(new NcclExchange(std::move(*kernels), device, group));
  auto joined =
      device::NcclGroup::join(std::move(nccl), device, id,
                              {.count = group.count, .rank = group.rank, .patienceSeconds = joinSeconds});
  if (!joined)
    return joined.error();
  made->nccl_ = std::move(*joined);
  if (auto compared = made->compare(); !compared)
    return compared.error();
  made->nccl_->setPatience(group.timeoutSeconds);
  if (auto reserved = made->reserve(); !reserved)
    return reserved.error();
  made->watch_ = std::thread([exchange = made.get()] { exchange->watch(); });
  return std::unique_ptr<GpuExchange>(std::move(made));
}

NcclExchange::~NcclExchange() {
  {
    const std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  stop_.notify_all();
  if (watch_.joinable())
    watch_.join();
}

/// It is also the first exchange of each pair, so that NCCL need not connect ranks in a captured one.
Result<void> NcclExchange::compare() {
  const Hello own{.version = group_.version,
                  .type = static_cast<std::int32_t>(group_.type),
                  .queries = group_.queries,
                  .heads = group_.heads,
                  .dim = group_.dim,
                  .headBegin = group_.headBegin,
                  .headCount = group_.headCount};
  const auto said = nccl_->gather(bytesOf(own));
  if (!said)
    return said.error();
  for (int rank = 0; rank < group_.count; ++rank) {
    const auto other = valueOf<Hello>((*said)[static_cast<std::size_t>(rank)]);
    const std::string named = "rank " + std::to_string(rank), self = "rank " + std::to_string(group_.rank);
    if (other.version != own.version)
      return Error{ErrorCode::Usage, named + " has another version of the library than " + self, ""};
    if (!other.makesTheSameAs(own))
      return Error{ErrorCode::Usage, named + " makes a group for other results than " + self,
                   "all ranks say the same of count, type, queries, heads and head_dim"};
    slices_.push_back({other.headBegin, other.headCount});
  }
  return {};
}

std::int64_t NcclExchange::messageBytes(int queries, int rank) const {
  const std::int64_t heads = slices_[static_cast<std::size_t>(rank)].count;
  return exec::SliceKernels::messageBytes(group_.type, queries * heads, group_.dim);
}

Result<void> NcclExchange::reserve() {
  const int own = group_.rank;
  std::vector<std::int64_t> ends; // of the messages that come, then of those that go
  std::int64_t bytes = 0;
  for (int rank = 0; rank < group_.count; ++rank)
    ends.push_back(bytes += messageBytes(group_.queries, own));
  for (int rank = 0; rank < group_.count; ++rank)
    ends.push_back(bytes += rank == own ? 0 : messageBytes(group_.queries, rank));
  if (auto made = messages_.reserve(static_cast<std::size_t>(bytes), "the messages of a rank"); !made)
    return made;
  if (auto made = state_.reserve(sizeof(abi::SlicesState), "the runs of a rank"); !made)
    return made;
  if (auto cleared = state_.fill(0); !cleared)
    return cleared;
  // A run's number is looked for in what has come, so nothing of before may look like one.
  if (auto cleared = messages_.fill(0); !cleared)
    return cleared;
  if (auto made = words_.reserve(sizeof(abi::SlicesWatch), "the watch of a rank"); !made)
    return made;
  auto *const memory = messages_.as<std::byte>();
  const auto count = static_cast<std::size_t>(group_.count);
  for (std::size_t rank = 0; rank < count; ++rank)
    received_.push_back(memory + (rank == 0 ? 0 : ends[rank - 1]));
  for (std::size_t rank = 0; rank < count; ++rank) // its own it packs to where the others' come
    sent_.push_back(static_cast<int>(rank) == own ? received_[rank] : memory + ends[count + rank - 1]);
  return {};
}

Result<void> NcclExchange::agree(const Agreement &own, const std::string &kind,
                                 std::span<const int> holders) {
  const std::lock_guard lock(mutex_);
  if (fault_)
    return *fault_;
  const Said said{own, static_cast<std::int64_t>(holders.size())};
  const auto all = nccl_->gather(bytesOf(said));
  if (!all)
    return all.error();
  bool areAlike = true;
  std::int64_t most = 0;
  for (const auto &bytes : *all) {
    const auto other = valueOf<Said>(bytes);
    areAlike = areAlike && !other.agreement.differenceFrom(own);
    most = std::max(most, other.holders);
  }
  if (areAlike)
    return {};
  // All ranks see that not all are alike, so all of them say what they hold.
  std::vector<int> padded(holders.begin(), holders.end());
  padded.resize(static_cast<std::size_t>(std::max<std::int64_t>(most, 1)), -1);
  const auto lists = nccl_->gather(std::as_bytes(std::span(padded)));
  if (!lists)
    return lists.error();
  const auto listOf = [&](std::size_t rank) {
    std::vector<int> list(padded.size());
    std::memcpy(list.data(), (*lists)[rank].data(), list.size() * sizeof(int));
    return list;
  };
  for (std::size_t rank = 0; rank < all->size(); ++rank)
    if (const char *const difference = valueOf<Said>((*all)[rank]).agreement.differenceFrom(own))
      return disagreement(difference, kind, group_.rank, padded, static_cast<int>(rank), listOf(rank));
  return {};
}

Result<void> NcclExchange::merge(const GpuMerge &merge, device::cu::Stream stream) {
  const std::lock_guard lock(mutex_);
  if (fault_)
    return *fault_;
  const int own = group_.rank;
  abi::SlicesArgs args{};
  args.count = group_.count;
  args.queries = merge.queries;
  args.dim = group_.dim;
  args.state = state_.as<abi::SlicesState>();
  args.watch = words_.onDevice<abi::SlicesWatch>();
  std::copy(slices_.begin(), slices_.end(), args.slices);
  args.own = merge.own;
  args.ownLse = merge.ownLse;
  args.heads = group_.heads;
  std::copy(sent_.begin(), sent_.end(), args.messages);
  if (auto packed = kernels_.pack(args, stream); !packed)
    return packed;
  std::vector<device::NcclGroup::Message> sent, received;
  for (int rank = 0; rank < group_.count; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == own)
      continue;
    sent.push_back({rank, sent_[at], static_cast<std::size_t>(messageBytes(merge.queries, rank))});
    received.push_back({rank, received_[at], static_cast<std::size_t>(messageBytes(merge.queries, own))});
  }
  if (auto exchanged = nccl_->exchange(sent, received, stream); !exchanged) {
    fault_ = exchanged.error();
    return exchanged;
  }
  std::copy(received_.begin(), received_.end(), args.messages);
  args.heads = group_.headCount;
  args.headBegin = merge.headBegin - group_.headBegin;
  args.headCount = merge.headCount;
  args.out = merge.out;
  args.lse = merge.lse;
  return kernels_.merge(args, stream);
}

void NcclExchange::watch() {
  constexpr double kLooks = 20; // in the time that a rank may be late
  constexpr double kSeldom = 0.05, kOften = 0.001;
  const std::chrono::duration<double> between(std::clamp(group_.timeoutSeconds / kLooks, kOften, kSeldom));
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, between, [&] { return isStopping_; }) && !fault_)
    if (auto found = findLate()) {
      fault_ = std::move(*found);
      nccl_->abort();
    }
}

/// Asks neither the device nor a stream: a program may be capturing.
std::optional<Error> NcclExchange::findLate() {
  if (auto lost = nccl_->fault(); !lost)
    return lost.error();
  auto &words = *words_.as<abi::SlicesWatch>();
  const unsigned long long ended = std::atomic_ref(words.ended).load();
  const unsigned long long begun = std::atomic_ref(words.begun).load();
  const auto now = std::chrono::steady_clock::now();
  if (begun <= ended || begun != seen_) {
    seen_ = begun;
    since_ = now;
    return {};
  }
  if (now - since_ < std::chrono::duration<double>(group_.timeoutSeconds))
    return {};
  return late("a rank", begun);
}

std::optional<Error> NcclExchange::missing() const {
  auto &words = *words_.as<abi::SlicesWatch>();
  const unsigned long long ranks = std::atomic_ref(words.missing).load(std::memory_order_acquire);
  if (ranks == 0)
    return {};
  return late(namesOf(ranks), words.missed);
}

std::optional<Error> NcclExchange::takeFault() {
  const std::lock_guard lock(mutex_);
  // Once the merge has ended, too, it is known who was late.
  if (auto found = missing()) {
    if (!fault_)
      nccl_->abort();
    fault_ = std::move(found);
  }
  return fault_;
}

} // namespace deft::peers
