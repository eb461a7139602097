#include "tests/support/FakeNccl.h"

#include "runtime/device/NcclApi.h"
#include "tests/support/FakeCuda.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cu = deft::device::cu;
namespace nccl = deft::device::nccl;

namespace {

constexpr int kRanks = 4;
constexpr std::size_t kRoom = std::size_t{256} << 10;
constexpr nccl::Result kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5;

/// From one rank to another: a message at a time.
struct Channel {
  std::atomic<unsigned long long> sent, taken;
  std::size_t bytes;
  char data[kRoom];
};

/// Zeros at first.
struct Shared {
  std::atomic<int> joined;
  Channel channels[kRanks][kRanks];
};

struct Group {
  std::string name;
  Shared *shared = nullptr;
  int ranks = 0, rank = 0;
  std::atomic<bool> isAborted = false, isFinalizing = false;
  std::atomic<nccl::Result> state = nccl::kInProgress;
  std::string lastError;
  std::thread worker;

  ~Group() {
    if (shared)
      munmap(shared, sizeof(Shared));
  }
  void end() {
    isAborted = true;
    if (worker.joinable())
      worker.join();
    shm_unlink(name.c_str());
  }
};
using Groups = std::map<nccl::Comm, std::shared_ptr<Group>>;

std::mutex mutex;
std::atomic<nccl::Result> asyncError = nccl::kSuccess;

Groups &groups() {
  static Groups groups;
  return groups;
}

std::shared_ptr<Group> find(nccl::Comm comm) {
  const std::lock_guard lock(mutex);
  const auto found = groups().find(comm);
  return found == groups().end() ? nullptr : found->second;
}

std::shared_ptr<Group> remove(nccl::Comm comm) {
  const std::lock_guard lock(mutex);
  const auto found = groups().find(comm);
  if (found == groups().end())
    return nullptr;
  auto group = found->second;
  groups().erase(found);
  return group;
}

/// Beside the list of groups and the caller, what is captured has it.
bool isInGraph(const std::shared_ptr<Group> &group) { return group.use_count() > 2; }

struct Operation {
  bool isSend;
  void *memory;
  std::size_t bytes;
  int peer;
  std::shared_ptr<Group> group;
  const void *stream;
};
thread_local int depth = 0;
thread_local std::vector<Operation> operations;

/// Whether it is done; a receiver whose message has another length is an error.
bool tryOnce(const Operation &operation, nccl::Result &failed) {
  Group &group = *operation.group;
  Channel &channel = operation.isSend ? group.shared->channels[group.rank][operation.peer]
                                      : group.shared->channels[operation.peer][group.rank];
  if (operation.isSend) {
    if (channel.taken.load() != channel.sent.load())
      return false;
    channel.bytes = operation.bytes;
    std::memcpy(channel.data, operation.memory, operation.bytes);
    ++channel.sent;
    return true;
  }
  if (channel.sent.load() == channel.taken.load())
    return false;
  if (channel.bytes != operation.bytes)
    failed = kInvalidUsage;
  else
    std::memcpy(operation.memory, channel.data, operation.bytes);
  ++channel.taken;
  return true;
}

/// What the device does.
nccl::Result exchange(std::vector<Operation> open) {
  nccl::Result failed = nccl::kSuccess;
  while (!open.empty() && failed == nccl::kSuccess) {
    if (open.front().group->isAborted)
      return nccl::kSuccess;
    std::erase_if(open, [&](const Operation &one) { return tryOnce(one, failed); });
    std::this_thread::yield();
  }
  return failed;
}

nccl::Result add(bool isSend, const void *memory, std::size_t bytes, int type, int peer, nccl::Comm comm,
                 cu::Stream stream) {
  const auto group = find(comm);
  if (!group || depth == 0 || type != nccl::kBytes || peer < 0 || peer >= group->ranks || bytes > kRoom)
    return kInvalidArgument;
  operations.push_back({isSend, const_cast<void *>(memory), bytes, peer, group, stream});
  return nccl::kInProgress;
}

} // namespace

namespace deft::fake_nccl {

void setAsyncError(int error) { asyncError = error; }

int openGroups() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(groups().size());
}

} // namespace deft::fake_nccl

extern "C" {

nccl::Result ncclGetVersion(int *version) {
  const char *const said = std::getenv("DEFT_FAKE_NCCL_VERSION");
  *version = said ? std::atoi(said) : 22809;
  return nccl::kSuccess;
}
nccl::Result ncclGetUniqueId(nccl::Id *id) {
  static std::atomic<int> made = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, sizeof id->bytes, "/deft_fake_nccl.%d.%d", static_cast<int>(getpid()), ++made);
  return nccl::kSuccess;
}
nccl::Result ncclCommInitRankConfig(nccl::Comm *comm, int ranks, nccl::Id id, int rank,
                                    nccl::Config *config) {
  *comm = nullptr;
  if (config->magic != nccl::Config().magic || config->blocking != 0 || ranks < 1 || ranks > kRanks ||
      rank < 0 || rank >= ranks || id.bytes[0] != '/')
    return kInvalidArgument;
  auto group = std::make_shared<Group>();
  group->name = id.bytes;
  group->ranks = ranks;
  group->rank = rank;
  const int file = shm_open(id.bytes, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
    return kSystemError;
  void *const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return kSystemError;
  group->shared = static_cast<Shared *>(memory);
  ++group->shared->joined;
  group->worker = std::thread([group = group.get()] {
    while (!group->isAborted && group->shared->joined < group->ranks)
      std::this_thread::yield();
    group->state = nccl::kSuccess;
  });
  *comm = reinterpret_cast<nccl::Comm>(group.get());
  const std::lock_guard lock(mutex);
  groups()[*comm] = std::move(group);
  return nccl::kInProgress;
}
nccl::Result ncclCommFinalize(nccl::Comm comm) {
  const auto group = find(comm);
  if (!group)
    return kInvalidArgument;
  group->isFinalizing = true;
  return nccl::kInProgress;
}
/// It waits for graphs, as NVIDIA's does.
nccl::Result ncclCommAbort(nccl::Comm comm) {
  const auto group = find(comm);
  if (!group)
    return kInvalidArgument;
  group->end();
  while (isInGraph(group))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  remove(comm);
  return nccl::kSuccess;
}
nccl::Result ncclCommDestroy(nccl::Comm comm) { return ncclCommAbort(comm); }
nccl::Result ncclCommGetAsyncError(nccl::Comm comm, nccl::Result *result) {
  const auto group = find(comm);
  if (!group)
    return kInvalidArgument;
  *result = group->state;
  if (group->isFinalizing && isInGraph(group))
    *result = nccl::kInProgress;
  if (*result == nccl::kSuccess)
    *result = asyncError;
  return nccl::kSuccess;
}
const char *ncclGetErrorString(nccl::Result result) {
  return result == kInvalidUsage      ? "invalid usage"
         : result == kInvalidArgument ? "invalid argument"
                                      : "remote process exited or there was a network error";
}
const char *ncclGetLastError(nccl::Comm comm) {
  const auto group = comm ? find(comm) : nullptr;
  return group ? group->lastError.c_str() : "";
}
nccl::Result ncclGroupStart() {
  ++depth;
  return nccl::kSuccess;
}
nccl::Result ncclGroupEnd() {
  if (depth == 0)
    return kInvalidUsage;
  if (--depth > 0 || operations.empty())
    return nccl::kSuccess;
  const auto open = std::exchange(operations, {});
  const auto group = open.front().group;
  if (group->worker.joinable())
    group->worker.join();
  group->state = nccl::kInProgress;
  // The thread is the group's, which ends it before it goes.
  group->worker = std::thread([open, group = group.get()] {
    deft::fake_cuda::enqueue(open.front().stream, [open, group] {
      if (exchange(open) != nccl::kSuccess) {
        group->lastError = "a message is of another length than its receiver said";
        group->state = kInvalidUsage;
      }
    });
    nccl::Result running = nccl::kInProgress;
    group->state.compare_exchange_strong(running, nccl::kSuccess);
  });
  return nccl::kInProgress;
}
nccl::Result ncclSend(const void *from, std::size_t count, int type, int peer, nccl::Comm comm,
                      cu::Stream stream) {
  return add(true, from, count, type, peer, comm, stream);
}
nccl::Result ncclRecv(void *to, std::size_t count, int type, int peer, nccl::Comm comm, cu::Stream stream) {
  return add(false, to, count, type, peer, comm, stream);
}

} // extern "C"
