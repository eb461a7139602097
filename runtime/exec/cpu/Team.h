#pragma once

#include "compiler/support/Result.h"

#include <memory>

namespace deft::exec {

/// Threads that help the caller of run(). Any number of host threads may call it at once; one queue holds
/// their requests. After the first calls of a kind it allocates nothing.
///
/// The threads are Asio's, which is header-only: binaries need no library at run time, and the thread
/// sanitizer sees every synchronisation. (oneTBB starts a step sooner, but all users in a process share its
/// workers, and the sanitizer cannot see into its library. OpenMP spins, which costs milliseconds a step if
/// other work needs the cores.)
class Team {
public:
  /// Starts `helpers` threads, possibly none. An error if the system cannot start so many.
  static support::Result<Team> create(int helpers);
  Team(Team &&) noexcept;
  Team &operator=(Team &&) noexcept;
  ~Team();

  int helpers() const;

  /// The work of the members of one call. `slot` is 0 for the caller and different for each member.
  class Job {
  public:
    virtual void run(int slot) noexcept = 0;

  protected:
    ~Job() = default;
  };

  /// Runs `job` on the calling thread and on up to `helpers` threads of the team, once on each; returns when
  /// all that started have ended. A helper that is still busy when the caller's part ends does not take part,
  /// so the job must be complete when its member with slot 0 returns.
  void run(int helpers, Job &job);

private:
  struct State;
  explicit Team(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace deft::exec
