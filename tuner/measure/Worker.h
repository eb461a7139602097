#pragma once

#include "tuner/measure/Message.h"

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>

namespace deft::measure {

/// What a worker does, in a process of its own.
class Service {
public:
  virtual ~Service() = default;
  virtual support::Result<Message> handle(const Message &request) = 0;
};

/// Called in the new process, where devices may be opened. It must not count on threads of the parent.
using ServiceMaker = std::function<support::Result<std::unique_ptr<Service>>()>;

/// A child process that answers requests one after the other, so that one that faults or hangs takes nothing
/// down with it. It is forked from the caller, shares nothing with it afterwards, ends with it, and does not
/// listen to Ctrl-C. The caller must not have a CUDA context where the child is to open one.
class Worker {
public:
  static support::Result<Worker> start(const ServiceMaker &make);
  Worker(Worker &&other) noexcept;
  Worker &operator=(Worker &&other) noexcept;
  ~Worker(); ///< kills it

  /// False where it is gone: receive() then says why.
  bool send(const Message &request);

  struct Answer {
    enum class State {
      Done,
      Refused, ///< the service gave an error, and goes on
      Died,    ///< the process is gone
      TimedOut ///< it was killed
    } state = State::Done;
    Message message;
    support::Error error;   ///< of all but Done
    bool wasKilled = false; ///< Died by SIGKILL, which is no fault: the system's, when memory is short
  };
  /// Of the oldest request that was sent.
  Answer receive(double seconds);
  Answer ask(const Message &request, double seconds);

  /// Readable when an answer, or the end, is there.
  int descriptor() const { return descriptor_; }
  bool isAlive() const { return process_ > 0; }

private:
  Worker() = default;
  std::string bury(bool *wasKilled = nullptr); ///< waits for the process, and says how it ended
  void kill();

  pid_t process_ = -1;
  int descriptor_ = -1;
};

} // namespace deft::measure
