#include "runtime/device/NcclGroup.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace deft::device {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string textOf(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text + " s";
}

/// Until `isDone()`, at first without sleep. False: it was not in time.
template <class IsDone> bool awaitUntil(Clock::time_point end, IsDone isDone) {
  constexpr int kQuick = 1000;
  for (int turn = 0; !isDone(); ++turn) {
    if (Clock::now() > end)
      return isDone();
    if (turn < kQuick)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

} // namespace

NcclGroup::NcclGroup(std::shared_ptr<const Nccl> nccl, std::shared_ptr<Device> device, const Options &options)
    : nccl_(std::move(nccl)), device_(std::move(device)), options_(options), mark_(device_), said_(device_),
      heard_(device_) {}

Result<std::unique_ptr<NcclGroup>> NcclGroup::join(std::shared_ptr<const Nccl> nccl,
                                                   const std::shared_ptr<Device> &device, const nccl::Id &id,
                                                   const Options &options) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(std::move(nccl), device, options));
  const Device::Current current(*device);
  if (auto made = device->driver().check("cannot make a stream for NCCL",
                                         device->api().streamCreate(&group->stream_, cu::kStreamNonBlocking));
      !made)
    return made.error();
  if (auto made = group->mark_.create(); !made)
    return made.error();
  nccl::Config config;
  const nccl::Result begun =
      group->nccl_->api().commInitRankConfig(&group->comm_, options.count, id, options.rank, &config);
  if (auto joined = group->settle("cannot join a group of " + std::to_string(options.count) + " ranks",
                                  "not all " + std::to_string(options.count) + " ranks came", begun);
      !joined)
    return joined.error();
  return group;
}

NcclGroup::~NcclGroup() {
  const Device::Current current(*device_);
  if (comm_) {
    // What was sent last may still be on its way to a rank that is slower.
    constexpr double kFarewellSeconds = 2;
    nccl::Result state = nccl_->api().commFinalize(comm_);
    const bool isOver = awaitUntil(in(std::min(options_.patienceSeconds, kFarewellSeconds)), [&] {
      return nccl_->api().commGetAsyncError(comm_, &state) != nccl::kSuccess || state != nccl::kInProgress;
    });
    // A graph that holds an exchange keeps NCCL from ending, in a thread for which an abort would wait: the
    // group is left to that thread.
    if (isOver && state == nccl::kSuccess)
      (void)nccl_->api().commDestroy(comm_);
    else if (isOver)
      abort();
  }
  if (stream_)
    (void)device_->api().streamDestroy(stream_);
}

/// It ends what is under way at once, and then waits until no graph holds an exchange any more: in a thread
/// for which nobody waits.
void NcclGroup::abort() {
  if (comm_)
    std::thread([nccl = nccl_, device = device_, comm = comm_] {
      const Device::Current current(*device);
      (void)nccl->api().commAbort(comm);
    }).detach();
  comm_ = nullptr;
}

Error NcclGroup::late(const std::string &what) {
  abort();
  return {
      ErrorCode::Environment, what + " within " + textOf(options_.patienceSeconds),
      "a rank has ended, needs more time, or cannot be reached: NCCL_DEBUG=INFO in the environment prints "
      "more"};
}

/// Calls give a number at once, and go on in threads of NCCL's.
Result<void> NcclGroup::settle(const std::string &whatFailed, const std::string &whatIsLate,
                               nccl::Result result) {
  const bool isSettled = awaitUntil(in(options_.patienceSeconds), [&] {
    if (result == nccl::kInProgress)
      if (const auto asked = nccl_->api().commGetAsyncError(comm_, &result); asked != nccl::kSuccess)
        result = asked;
    return result != nccl::kInProgress;
  });
  if (!isSettled)
    return late(whatIsLate);
  if (result == nccl::kSuccess)
    return {};
  Error failed = nccl_->error(whatFailed, result, comm_);
  abort();
  return failed;
}

Result<void> NcclGroup::exchange(std::span<const Message> sent, std::span<const Message> received,
                                 cu::Stream stream) {
  if (!comm_)
    return Error{ErrorCode::Environment, "the group of ranks has ended", "let all ranks meet again"};
  const Device::Current current(*device_);
  const nccl::Api &api = nccl_->api();
  // An operation that is refused ends the group's call, too, and that is what says so.
  nccl::Result refused = api.groupStart();
  const auto note = [&](nccl::Result result) {
    if (refused == nccl::kSuccess && result != nccl::kInProgress)
      refused = result;
  };
  for (const Message &message : sent)
    note(api.send(message.memory, message.bytes, nccl::kBytes, message.rank, comm_, stream));
  for (const Message &message : received)
    note(api.recv(message.memory, message.bytes, nccl::kBytes, message.rank, comm_, stream));
  const nccl::Result ended = api.groupEnd();
  return settle("cannot exchange results", "the ranks did not begin an exchange",
                refused != nccl::kSuccess ? refused : ended);
}

Result<void> NcclGroup::awaitStream(const std::string &whatIsLate) {
  if (auto recorded = mark_.record(stream_, "an exchange"); !recorded)
    return recorded;
  Result<void> found;
  const bool isOver = awaitUntil(in(options_.patienceSeconds), [&] {
    found = fault();
    return !found || mark_.isReached();
  });
  if (!found) {
    abort();
    return found;
  }
  if (!isOver)
    return late(whatIsLate);
  return {};
}

Result<std::vector<std::vector<std::byte>>> NcclGroup::gather(std::span<const std::byte> own) {
  const auto count = static_cast<std::size_t>(options_.count);
  if (auto uploaded = said_.upload(own.data(), own.size(), "what a rank says"); !uploaded)
    return uploaded.error();
  if (auto reserved = heard_.reserve(count * own.size(), "what ranks say"); !reserved)
    return reserved.error();
  std::vector<Message> sent, received;
  for (int rank = 0; rank < options_.count; ++rank)
    if (rank != options_.rank) {
      sent.push_back({rank, said_.as<std::byte>(), own.size()});
      received.push_back(
          {rank, heard_.as<std::byte>() + static_cast<std::size_t>(rank) * own.size(), own.size()});
    }
  if (auto exchanged = exchange(sent, received, stream_); !exchanged)
    return exchanged.error();
  if (auto came = awaitStream("not all ranks said what they have"); !came)
    return came.error();
  std::vector<std::byte> all(count * own.size());
  if (auto downloaded = heard_.download(all.data(), all.size()); !downloaded)
    return downloaded.error();
  std::vector<std::vector<std::byte>> said;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * own.size());
    said.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
  }
  said[static_cast<std::size_t>(options_.rank)].assign(own.begin(), own.end());
  return said;
}

Result<void> NcclGroup::fault() const {
  if (!comm_)
    return {};
  nccl::Result state = nccl::kSuccess;
  const nccl::Result asked = nccl_->api().commGetAsyncError(comm_, &state);
  if (asked == nccl::kSuccess && (state == nccl::kSuccess || state == nccl::kInProgress))
    return {};
  return nccl_->error("has lost a rank", asked == nccl::kSuccess ? state : asked, comm_);
}

} // namespace deft::device
