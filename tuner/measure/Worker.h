#pragma once

#include "tuner/measure/Message.h"

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>

namespace deft::measure {

/// The work of a worker, in its own process.
class Service {
public:
  virtual ~Service() = default;
  virtual support::Result<Message> handle(const Message &request) = 0;
};

/// Called in the new process, which may open devices. It must not rely on threads of the parent.
using ServiceMaker = std::function<support::Result<std::unique_ptr<Service>>()>;

/// A child process that answers requests one by one, so that a request that faults or hangs affects no other
/// process. It is forked from the caller, then shares nothing with it, ends with it and ignores Ctrl-C. The
/// caller must not have a CUDA context if the child is to open one.
class Worker {
public:
  static support::Result<Worker> start(const ServiceMaker &make);
  Worker(Worker &&other) noexcept;
  Worker &operator=(Worker &&other) noexcept;
  ~Worker(); ///< kills it

  /// False if the process is gone: receive() then has the reason.
  bool send(const Message &request);

  struct Answer {
    enum class State {
      Done,
      Refused, ///< the service returned an error, and continues
      Died,    ///< the process is gone
      TimedOut ///< it was killed
    } state = State::Done;
    Message message;
    support::Error error;   ///< for every state except Done
    bool wasKilled = false; ///< Died by SIGKILL: not its fault, but the system's, if memory is short
  };
  /// For the oldest request that was sent.
  Answer receive(double seconds);
  Answer ask(const Message &request, double seconds);

  /// Readable once there is an answer, or the process has ended.
  int descriptor() const { return descriptor_; }
  bool isAlive() const { return process_ > 0; }

private:
  Worker() = default;
  std::string bury(bool *wasKilled = nullptr); ///< waits for the process and returns how it ended
  void kill();

  pid_t process_ = -1;
  int descriptor_ = -1;
};

} // namespace deft::measure
