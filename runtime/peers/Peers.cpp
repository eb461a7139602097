#include "runtime/peers/Peers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::uint64_t kMagic = 0x32305352'54464544; // "DEFTRS02"
constexpr int kMostRanks = 64;
constexpr std::size_t kLine = 64;

enum class Kind : int { Agreement, Results, Words };

Error wrong(std::string message, std::string hint = "") {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

std::string named(int rank) { return "rank " + std::to_string(rank); }

bool isGone(int process) { return process > 0 && kill(process, 0) != 0 && errno == ESRCH; }

std::string seconds(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text + " s";
}

/// Gives way while it waits: at first at once, later for longer.
class Patience {
public:
  explicit Patience(double timeoutSeconds)
      : end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(timeoutSeconds))) {}

  bool isOver() const { return std::chrono::steady_clock::now() > end_; }
  void wait() {
    constexpr int kQuick = 2000;
    if (++waits_ < kQuick)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

private:
  std::chrono::steady_clock::time_point end_;
  int waits_ = 0;
};

} // namespace

/// What a rank says of one call.
struct Peers::Call {
  int kind, type;
  std::int64_t queries;
  int heads, dim;
  Agreement agreement;
  std::int64_t holders;
};

/// The beginning of a rank's memory; its two buffers follow.
struct alignas(kLine) Peers::Header {
  std::atomic<std::uint64_t> published; ///< calls
  std::atomic<std::uint64_t> magic;     ///< stored last
  std::int64_t bytes;
  std::atomic<std::uint64_t> lookedAt; ///< a bit for each rank that has found this one
  Call calls[2];
  int count, rank, process;
  std::atomic<int> hasMet;   ///< it has found all others
  std::atomic<int> isBroken; ///< it has given up
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

Peers::Header &Peers::header(int rank) const {
  return *reinterpret_cast<Header *>(segments_[static_cast<std::size_t>(rank)].memory());
}

Peers::Call &Peers::callOf(int rank) const { return header(rank).calls[calls_ % 2]; }

std::byte *Peers::buffer(int rank) const {
  return segments_[static_cast<std::size_t>(rank)].memory() + sizeof(Header) +
         static_cast<std::size_t>(options_.bytes) * (calls_ % 2);
}

std::string Peers::segmentName(int rank) const {
  return "/deft." + options_.name + "." + std::to_string(rank);
}

Result<Peers> Peers::meet(const PeersOptions &options) {
  if (options.count < 1 || options.count > kMostRanks)
    return wrong("a group of " + std::to_string(options.count) + " ranks, not 1 to " +
                 std::to_string(kMostRanks));
  if (options.rank < 0 || options.rank >= options.count)
    return wrong(named(options.rank) + " of a group of " + std::to_string(options.count) + " ranks",
                 "ranks are numbered from 0 to " + std::to_string(options.count - 1));
  constexpr std::size_t kLongestName = 200;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (options.name.empty() || options.name.size() > kLongestName ||
      !std::all_of(options.name.begin(), options.name.end(), fits))
    return wrong("`" + options.name + "` is no name of a group: it has letters, digits, `_`, `-` and `.`");
  if (options.bytes < 0 || options.bytes > std::int64_t{1} << 40)
    return wrong(std::to_string(options.bytes) + " bytes of results");
  if (!(options.timeoutSeconds > 0))
    return wrong("a rank may be late by " + seconds(options.timeoutSeconds) + ", which is not above 0");
  Peers peers(options);
  peers.options_.bytes =
      (options.bytes + std::int64_t{kLine} - 1) / std::int64_t{kLine} * std::int64_t{kLine};
  peers.segments_.resize(static_cast<std::size_t>(options.count));
  if (auto made = peers.makeOwn(); !made)
    return made.error();
  if (auto opened = peers.openOthers(); !opened)
    return opened.error();
  // Names are needed no more, so nothing is left behind, however the processes end.
  peers.segments_[static_cast<std::size_t>(options.rank)].forgetName();
  return peers;
}

Peers::~Peers() {
  if (!segments_.empty() && segments_[static_cast<std::size_t>(options_.rank)])
    header(options_.rank).isBroken.store(1);
}

Result<void> Peers::makeOwn() {
  const std::string name = segmentName(options_.rank);
  const std::size_t bytes = sizeof(Header) + 2 * static_cast<std::size_t>(options_.bytes);
  Segment &own = segments_[static_cast<std::size_t>(options_.rank)];
  Patience patience(options_.timeoutSeconds);
  while (!own) {
    auto made = Segment::make(name, bytes);
    if (!made)
      return made.error();
    own = std::move(*made);
    if (own)
      break;
    // One of that name is there: of a process that ended before it could forget it, or of a rank that lives.
    auto other = Segment::open(name, sizeof(Header));
    if (!other)
      return other.error();
    const auto *const header = *other ? reinterpret_cast<const Header *>(other->memory()) : nullptr;
    if (header && header->magic.load() == kMagic && !isGone(header->process))
      return wrong(named(options_.rank) + " of `" + options_.name + "` is there already, as process " +
                       std::to_string(header->process),
                   "each rank needs its own number, each group its own name");
    if ((header && header->magic.load() == kMagic) || patience.isOver())
      Segment::forget(name);
    patience.wait();
  }
  Header &header = *new (own.memory()) Header();
  header.count = options_.count;
  header.rank = options_.rank;
  header.process = static_cast<int>(getpid());
  header.bytes = options_.bytes;
  header.magic.store(kMagic, std::memory_order_release);
  return {};
}

Result<void> Peers::openOthers() {
  for (int rank = 0; rank < count(); ++rank) {
    if (rank == options_.rank)
      continue;
    Segment &other = segments_[static_cast<std::size_t>(rank)];
    const auto isThere = [&]() -> Result<bool> {
      if (other)
        return true;
      auto opened = Segment::open(segmentName(rank), sizeof(Header));
      if (!opened)
        return opened.error();
      if (!*opened)
        return false;
      auto &header = *reinterpret_cast<Header *>(opened->memory());
      if (header.magic.load(std::memory_order_acquire) != kMagic || isGone(header.process))
        return false; // not yet, or left behind by a process that is gone
      header.lookedAt.fetch_or(std::uint64_t{1} << options_.rank);
      if (header.count != count())
        return wrong(named(rank) + " of `" + options_.name + "` says that there are " +
                     std::to_string(header.count) + " ranks, " + named(options_.rank) + " says " +
                     std::to_string(count()));
      if (header.bytes != options_.bytes)
        return wrong(named(rank) + " of `" + options_.name + "` has room for results of " +
                     std::to_string(header.bytes) + " bytes, " + named(options_.rank) + " for " +
                     std::to_string(options_.bytes));
      other = std::move(*opened);
      return true;
    };
    if (auto found = waitFor(rank, "did not come", isThere); !found) {
      // Who found what is wrong leaves when the other one can see it, too.
      const auto hasLooked = [&] {
        return Result<bool>((header(options_.rank).lookedAt.load() >> rank & 1) != 0);
      };
      if (found.error().code == ErrorCode::Usage)
        (void)waitFor(rank, "did not look", hasLooked);
      return found;
    }
  }
  header(options_.rank).hasMet.store(1, std::memory_order_release);
  for (int rank = 0; rank < count(); ++rank)
    if (auto met =
            waitFor(rank, "did not find all others",
                    [&] { return Result<bool>(header(rank).hasMet.load(std::memory_order_acquire) != 0); });
        !met)
      return met;
  return {};
}

/// Until `isThere()`, or until the rank is late or gone.
template <class IsThere> Result<void> Peers::waitFor(int rank, const std::string &what, IsThere isThere) {
  constexpr int kLookAgain = 256;
  Patience patience(options_.timeoutSeconds);
  for (int turn = 0;; ++turn) {
    auto found = isThere();
    if (!found)
      return found.error();
    if (*found)
      return {};
    const bool isOver = patience.isOver();
    if ((turn % kLookAgain == kLookAgain - 1 || isOver) && segments_[static_cast<std::size_t>(rank)]) {
      const Header &other = header(rank);
      // It may have come just before it ended or gave up.
      if (const bool isDone = isGone(other.process); isDone || other.isBroken.load() != 0) {
        auto again = isThere();
        if (again && *again)
          return {};
        return Error{
            ErrorCode::Environment,
            named(rank) + " of `" + options_.name + "` " +
                (isDone ? "has ended, it was process " + std::to_string(other.process) : "has given up"),
            ""};
      }
    }
    if (isOver)
      return Error{ErrorCode::Environment,
                   named(rank) + " of `" + options_.name + "` " + what + " within " +
                       seconds(options_.timeoutSeconds),
                   "raise the timeout if ranks may differ by more"};
    patience.wait();
  }
}

/// After an error ranks may be in different calls: none goes on.
Error Peers::fail(Error error) {
  header(options_.rank).isBroken.store(1);
  return error;
}

Result<void> Peers::checkUsable() const {
  if (header(options_.rank).isBroken.load() == 0)
    return {};
  return wrong("a call of `" + options_.name + "` has failed before", "let all ranks meet again");
}

/// This rank's call is in its buffer: waits for everybody's.
Result<void> Peers::publish() {
  header(options_.rank).published.store(calls_, std::memory_order_release);
  for (int rank = 0; rank < count(); ++rank)
    if (auto came = waitFor(
            rank, "did not give its results",
            [&] { return Result<bool>(header(rank).published.load(std::memory_order_acquire) >= calls_); });
        !came)
      return fail(came.error());
  const Call &own = callOf(options_.rank);
  for (int rank = 0; rank < count(); ++rank)
    if (callOf(rank).kind != own.kind)
      return fail(wrong(named(rank) + " is in another call than " + named(options_.rank) +
                        ": one of them asks for agreement, the other one merges"));
  return {};
}

Result<void> Peers::agree(const Agreement &own, const std::string &kind, std::span<const int> holders) {
  if (auto usable = checkUsable(); !usable)
    return usable;
  ++calls_;
  const auto fits = static_cast<std::int64_t>(holders.size_bytes()) <= options_.bytes;
  callOf(options_.rank) = {.kind = static_cast<int>(Kind::Agreement),
                           .type = 0,
                           .queries = 0,
                           .heads = 0,
                           .dim = 0,
                           .agreement = own,
                           .holders = fits ? static_cast<std::int64_t>(holders.size()) : 0};
  if (fits && !holders.empty())
    std::memcpy(buffer(options_.rank), holders.data(), holders.size_bytes());
  if (auto published = publish(); !published)
    return published;
  for (int rank = 0; rank < count(); ++rank) {
    const char *const difference = callOf(rank).agreement.differenceFrom(own);
    if (!difference)
      continue;
    const auto listOf = [&](int of) {
      const auto *const list = reinterpret_cast<const int *>(buffer(of));
      return std::vector<int>(list, list + callOf(of).holders);
    };
    return fail(disagreement(difference, kind, options_.rank, listOf(options_.rank), rank, listOf(rank)));
  }
  return {};
}

Result<std::vector<std::vector<std::byte>>> Peers::gather(std::span<const std::byte> own) {
  if (auto usable = checkUsable(); !usable)
    return usable.error();
  if (static_cast<std::int64_t>(own.size()) > options_.bytes)
    return wrong(std::to_string(own.size()) + " bytes to gather, and the group was made for " +
                 std::to_string(options_.bytes));
  ++calls_;
  callOf(options_.rank) = {.kind = static_cast<int>(Kind::Words),
                           .type = 0,
                           .queries = static_cast<std::int64_t>(own.size()),
                           .heads = 0,
                           .dim = 0,
                           .agreement = {},
                           .holders = 0};
  std::copy(own.begin(), own.end(), buffer(options_.rank));
  if (auto published = publish(); !published)
    return published.error();
  std::vector<std::vector<std::byte>> said;
  for (int rank = 0; rank < count(); ++rank) {
    if (callOf(rank).queries != callOf(options_.rank).queries)
      return fail(wrong(named(rank) + " says something else than " + named(options_.rank)));
    said.emplace_back(buffer(rank), buffer(rank) + own.size());
  }
  return said;
}

Result<void> Peers::merge(const RankResults &own, const MergedHeads &to) {
  if (auto usable = checkUsable(); !usable)
    return usable;
  const std::int64_t rows = own.queries * own.heads;
  const std::int64_t outBytes = rows * own.dim * exec::bytesOf(own.type);
  const std::int64_t lseBytes = rows * static_cast<std::int64_t>(sizeof(float));
  if (outBytes + lseBytes > options_.bytes)
    return wrong("results of " + std::to_string(outBytes + lseBytes) + " bytes, and the group was made for " +
                 std::to_string(options_.bytes));
  if (to.begin < 0 || to.count < 0 || to.begin + to.count > own.heads)
    return wrong("heads " + std::to_string(to.begin) + " to " + std::to_string(to.begin + to.count) + " of " +
                 std::to_string(own.heads));
  ++calls_;
  Call &said = callOf(options_.rank);
  said = {.kind = static_cast<int>(Kind::Results),
          .type = static_cast<int>(own.type),
          .queries = own.queries,
          .heads = own.heads,
          .dim = own.dim,
          .agreement = {},
          .holders = 0};
  if (rows > 0) {
    std::memcpy(buffer(options_.rank), own.lse, static_cast<std::size_t>(lseBytes));
    std::memcpy(buffer(options_.rank) + lseBytes, own.out, static_cast<std::size_t>(outBytes));
  }
  if (auto published = publish(); !published)
    return published;
  const auto shapeOf = [&](int rank) {
    const Call &call = callOf(rank);
    return std::to_string(call.queries) + " queries of " + std::to_string(call.heads) + " heads and " +
           std::to_string(call.dim) + " columns";
  };
  for (int rank = 0; rank < count(); ++rank) {
    const Call &call = callOf(rank);
    if (call.queries != own.queries || call.heads != own.heads || call.dim != own.dim)
      return fail(wrong(named(rank) + " gives results of " + shapeOf(rank) + ", " + named(options_.rank) +
                        " of " + shapeOf(options_.rank)));
    if (call.type != said.type)
      return fail(wrong(named(rank) + " gives results of another element type than " + named(options_.rank)));
  }
  exec::PartsOfRows parts;
  for (int rank = 0; rank < count(); ++rank) {
    parts.lses.push_back(reinterpret_cast<const float *>(buffer(rank)));
    parts.outs.push_back(buffer(rank) + lseBytes);
  }
  parts.dim = own.dim;
  parts.queries = own.queries;
  parts.heads = own.heads;
  parts.headBegin = to.begin;
  parts.headCount = to.count;
  exec::mergeHeads(parts, own.type, to.out, to.lse);
  return {};
}

} // namespace deft::peers
