#pragma once

#include "compiler/support/Result.h"

#include <memory>

namespace deft::exec {

/// Threads that help whoever calls run(). Any number of host threads may call at once; what they ask for
/// stands in one queue. After the first calls of a kind nothing is allocated.
///
/// The threads are Asio's: header-only, so that a binary needs no library at run time, and every
/// synchronisation is visible to the thread sanitizer. (oneTBB starts a step sooner, but it shares one set of
/// workers between all users in a process, and its library cannot be checked; OpenMP's spinning costs
/// milliseconds a step where other work wants the cores.)
class Team {
public:
  /// `helpers` threads, possibly none. An error where the system has no more.
  static support::Result<Team> create(int helpers);
  Team(Team &&) noexcept;
  Team &operator=(Team &&) noexcept;
  ~Team();

  int helpers() const;

  /// What the members of one call do. `slot` is 0 for the caller and differs between members.
  class Job {
  public:
    virtual void run(int slot) noexcept = 0;

  protected:
    ~Job() = default;
  };

  /// Runs `job` on the calling thread and on up to `helpers` of the team, each once; returns when all that
  /// began have ended. A helper that is still busy elsewhere when the caller is done does not take part, so a
  /// job must be complete when its member of slot 0 is.
  void run(int helpers, Job &job);

private:
  struct State;
  explicit Team(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace deft::exec
