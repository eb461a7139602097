#include "tuner/measure/Worker.h"

#include "compiler/support/Log.h"
#include "compiler/support/Unexpected.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace deft::measure {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

void closeAllBut(int descriptor) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, 3U, static_cast<unsigned>(descriptor) - 1U, 0U) == 0 || descriptor == 3)
    if (::syscall(SYS_close_range, static_cast<unsigned>(descriptor) + 1U, ~0U, 0U) == 0)
      return;
#endif
  for (int other = 3; other < 1024; ++other)
    if (other != descriptor)
      ::close(other);
}

/// Detaches from the terminal and closes the parent's files, so that its locks and pipes end with it. The
/// parent handles signals to the process group, and kills its child then.
void detach(int descriptor, pid_t parent) {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) // the parent ended before prctl
    ::_exit(0);
#endif
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ::signal(signal, SIG_IGN);
  const int null = ::open("/dev/null", O_RDWR);
  for (int standard = 0; null >= 0 && standard < 3; ++standard)
    ::dup2(null, standard);
  closeAllBut(descriptor);
}

Message refusal(const Error &error) {
  return {{{"error", error.message}, {"hint", error.hint}, {"code", static_cast<int>(error.code)}}, {}};
}

[[noreturn]] void serve(int descriptor, const ServiceMaker &make) {
  Result<std::unique_ptr<Service>> service = Error{};
  try {
    service = make();
  } catch (const std::exception &error) {
    service = support::unexpected(error);
  }
  Message request;
  while (receiveMessage(descriptor, -1, request) == Receive::Got) {
    Result<Message> answer = Error{};
    try {
      answer = service ? (*service)->handle(request) : Result<Message>(service.error());
    } catch (const std::exception &error) {
      answer = support::unexpected(error);
    }
    if (!sendMessage(descriptor, answer ? *answer : refusal(answer.error())))
      break;
  }
  ::_exit(0); // no destructors: they belong to the parent
}

std::string describeEnd(int status) {
  if (WIFSIGNALED(status)) {
    const char *name = ::strsignal(WTERMSIG(status));
    return "signal " + std::to_string(WTERMSIG(status)) + (name ? std::string(", ") + name : "");
  }
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

} // namespace

Result<Worker> Worker::start(const ServiceMaker &make) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{ErrorCode::Environment,
                 std::string("cannot make a pipe to a child process: ") + std::strerror(errno), ""};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const std::string why = std::strerror(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    return Error{ErrorCode::Environment, "cannot start a child process: " + why, ""};
  }
  if (child == 0) {
    support::silenceLog();
    detach(ends[1], parent);
    serve(ends[1], make);
  }
  ::close(ends[1]);
  Worker worker;
  worker.process_ = child;
  worker.descriptor_ = ends[0];
  return worker;
}

Worker::Worker(Worker &&other) noexcept
    : process_(std::exchange(other.process_, -1)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Worker &Worker::operator=(Worker &&other) noexcept {
  std::swap(process_, other.process_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Worker::~Worker() { kill(); }

void Worker::kill() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    (void)bury();
  }
  if (descriptor_ >= 0)
    ::close(std::exchange(descriptor_, -1));
}

std::string Worker::bury(bool *wasKilled) {
  int status = 0;
  pid_t gone = -1;
  do
    gone = ::waitpid(process_, &status, 0);
  while (gone < 0 && errno == EINTR);
  process_ = -1;
  if (wasKilled)
    *wasKilled = gone >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return gone < 0 ? "it was gone already" : describeEnd(status);
}

bool Worker::send(const Message &request) { return descriptor_ >= 0 && sendMessage(descriptor_, request); }

Worker::Answer Worker::receive(double seconds) {
  Answer answer;
  if (process_ <= 0) {
    answer.state = Answer::State::Died;
    answer.error = {ErrorCode::Internal, "the child process has ended before", ""};
    return answer;
  }
  switch (receiveMessage(descriptor_, seconds, answer.message)) {
  case Receive::Got:
    if (answer.message.head.is_object() && answer.message.head.contains("error")) {
      answer.state = Answer::State::Refused;
      const nlohmann::json &head = answer.message.head;
      answer.error = {static_cast<ErrorCode>(head.value("code", static_cast<int>(ErrorCode::Internal))),
                      head.value("error", ""), head.value("hint", "")};
    }
    return answer;
  case Receive::Closed:
    answer.state = Answer::State::Died;
    ::kill(process_, SIGKILL); // it may still run without its end of the pipe
    answer.error = {ErrorCode::Internal, "the child process died: " + bury(&answer.wasKilled), ""};
    return answer;
  case Receive::TimedOut:
    answer.state = Answer::State::TimedOut;
    kill();
    answer.error = {ErrorCode::Internal, "no answer within " + std::to_string(std::lround(seconds)) + " s",
                    ""};
    return answer;
  }
  return answer;
}

Worker::Answer Worker::ask(const Message &request, double seconds) {
  (void)send(request); // receive() reports a failure as well
  return receive(seconds);
}

} // namespace deft::measure
