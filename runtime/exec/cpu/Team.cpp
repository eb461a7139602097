#include "runtime/exec/cpu/Team.h"

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace deft::exec {

namespace {

/// Memory for one posted handler of Asio.
using HandlerMemory = std::array<std::max_align_t, 8>;

/// One running call of run(). Late handlers still access it, so it outlives the call and is reused only after
/// the last of them has gone.
struct Call {
  std::mutex mutex;
  std::condition_variable left;
  Team::Job *job = nullptr;
  int nextSlot = 1;
  int inside = 0;  ///< helpers that are working
  int pending = 0; ///< handlers that were posted and have not ended
  bool open = false;
  bool taken = false;    ///< guarded by the team's mutex
  std::size_t posts = 0; ///< pieces of `memory` in use
  std::vector<HandlerMemory> memory;
};

/// Gives Asio the memory of a call, one piece after the other. The end of the call frees all pieces.
template <typename T> class HandlerAllocator {
public:
  using value_type = T;
  explicit HandlerAllocator(Call *call) : call_(call) {}
  template <typename U> HandlerAllocator(const HandlerAllocator<U> &other) : call_(other.call_) {}

  T *allocate(std::size_t count) {
    if (count * sizeof(T) > sizeof(HandlerMemory) || call_->posts == call_->memory.size())
      return static_cast<T *>(::operator new(count * sizeof(T)));
    return reinterpret_cast<T *>(&call_->memory[call_->posts++]);
  }
  void deallocate(T *pointer, std::size_t) {
    const std::less<const void *> before;
    if (before(pointer, call_->memory.data()) ||
        !before(pointer, call_->memory.data() + call_->memory.size()))
      ::operator delete(pointer);
  }
  bool operator==(const HandlerAllocator &) const = default;

private:
  template <typename U> friend class HandlerAllocator;
  Call *call_;
};

struct Handler {
  using allocator_type = HandlerAllocator<void>;
  allocator_type get_allocator() const noexcept { return allocator_type(call); }

  void operator()() const {
    int slot = 0;
    {
      const std::lock_guard lock(call->mutex);
      if (!call->open) {
        --call->pending;
        return;
      }
      slot = call->nextSlot++;
      ++call->inside;
    }
    call->job->run(slot);
    const std::lock_guard lock(call->mutex);
    --call->pending;
    if (--call->inside == 0)
      call->left.notify_one();
  }

  Call *call;
};

} // namespace

struct Team::State {
  explicit State(int count) : helpers(count) {
    if (count > 0)
      pool.emplace(static_cast<std::size_t>(count));
  }

  /// A call that is not in use and that no handler can still access.
  Call &take() {
    const std::lock_guard lock(mutex);
    for (const auto &call : calls) {
      if (call->taken)
        continue;
      const std::lock_guard callLock(call->mutex);
      if (call->pending == 0) {
        call->taken = true;
        return *call;
      }
    }
    calls.push_back(std::make_unique<Call>());
    calls.back()->memory.resize(static_cast<std::size_t>(helpers));
    calls.back()->taken = true;
    return *calls.back();
  }
  void giveBack(Call &call) {
    const std::lock_guard lock(mutex);
    call.taken = false;
  }

  const int helpers;
  std::mutex mutex;
  std::vector<std::unique_ptr<Call>> calls;
  std::optional<asio::thread_pool> pool; ///< last, so that its threads end before the calls are destroyed
};

Team::Team(std::unique_ptr<State> state) : state_(std::move(state)) {}
Team::Team(Team &&) noexcept = default;
Team &Team::operator=(Team &&) noexcept = default;
Team::~Team() = default;

support::Result<Team> Team::create(int helpers) {
  try {
    return Team(std::make_unique<State>(std::max(helpers, 0)));
  } catch (const std::system_error &error) {
    return support::Error{support::ErrorCode::Environment,
                          "cannot start " + std::to_string(helpers) + " threads: " + error.code().message(),
                          "use fewer threads"};
  }
}

int Team::helpers() const { return state_->helpers; }

void Team::run(int helpers, Job &job) {
  helpers = std::min(helpers, state_->helpers);
  if (helpers <= 0) {
    job.run(0);
    return;
  }
  Call &call = state_->take();
  {
    const std::lock_guard lock(call.mutex);
    call.job = &job;
    call.nextSlot = 1;
    call.posts = 0;
    call.pending = helpers;
    call.open = true;
  }
  for (int i = 0; i < helpers; ++i)
    asio::post(*state_->pool, Handler{&call});
  job.run(0);
  {
    std::unique_lock lock(call.mutex);
    call.open = false;
    call.left.wait(lock, [&] { return call.inside == 0; });
  }
  state_->giveBack(call);
}

} // namespace deft::exec
