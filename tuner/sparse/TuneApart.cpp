#include "tuner/sparse/TuneApart.h"

#include "compiler/support/Unexpected.h"
#include "tuner/measure/Worker.h"
#include "tuner/sparse/ReportJson.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace deft::sparse {

using measure::Message;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;
using Clock = std::chrono::steady_clock;

namespace {

/// In the child: one thread tunes, and requests ask for its progress.
class Service : public measure::Service {
public:
  Service(const program::Program &program, const std::vector<exec::ParamValue> &params,
          const TuneOptions &options) {
    thread_ = std::thread([&program, &params, &options, this] {
      Listener listener;
      listener.progress = [this](const Status &status) {
        const std::lock_guard lock(mutex_);
        status_ = status;
      };
      listener.isCancelled = [this] { return isCancelled_.load(); };
      Result<TuneReport> report = Error{};
      try {
        report = tune(program, params, options, listener);
      } catch (const std::exception &error) {
        report = support::unexpected(error);
      }
      const std::lock_guard lock(mutex_);
      report_ = std::move(report);
    });
  }
  ~Service() override { thread_.join(); }
  Service(const Service &) = delete;
  Service &operator=(const Service &) = delete;

  Result<Message> handle(const Message &request) override {
    if (request.head.value("cancel", false))
      isCancelled_ = true;
    const std::lock_guard lock(mutex_);
    if (report_ && !*report_)
      return report_->error();
    if (report_)
      return Message{{{"report", toJson(**report_)}}, {}};
    return Message{{{"text", status_.text}, {"done", status_.done}, {"left", status_.left}}, {}};
  }

private:
  std::atomic<bool> isCancelled_ = false;
  std::mutex mutex_;
  Status status_;
  std::optional<Result<TuneReport>> report_; ///< none: still running
  std::thread thread_;
};

Error ended(const std::string &how) {
  return {ErrorCode::Environment, "the tuning of sparse layers ended: " + how, ""};
}

} // namespace

Result<TuneReport> tuneApart(const program::Program &program, const std::vector<exec::ParamValue> &params,
                             const TuneOptions &options, const Listener &listener) {
  if (auto checked = checkSelects(program.variant()); !checked)
    return checked.error();
  auto worker = measure::Worker::start([&]() -> Result<std::unique_ptr<measure::Service>> {
    return std::unique_ptr<measure::Service>(std::make_unique<Service>(program, params, options));
  });
  if (!worker)
    return worker.error();
  constexpr double kAnswerSeconds = 60;                 ///< for a thread without other work
  constexpr auto kCancelTime = std::chrono::minutes(1); ///< a layer takes microseconds
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::optional<Clock::time_point> cancelled;
  std::string lastText;
  for (;; std::this_thread::sleep_for(kPause)) {
    if (!cancelled && listener.isCancelled && listener.isCancelled())
      cancelled = Clock::now();
    auto answer = worker->ask({{{"cancel", cancelled.has_value()}}, {}}, kAnswerSeconds);
    using State = measure::Worker::Answer::State;
    if (answer.state == State::Refused)
      return answer.error;
    if (answer.state != State::Done)
      return ended(answer.error.message);
    const json &head = answer.message.head;
    if (head.contains("report"))
      return tuneReportFromJson(head["report"]);
    if (cancelled && Clock::now() - *cancelled > kCancelTime)
      return ended("it was cancelled, and the GPU did not answer for a minute");
    const Status status{head.value("text", ""), head.value("done", 0), head.value("left", 0)};
    if (listener.progress && status.text != lastText)
      listener.progress(status);
    lastText = status.text;
  }
}

} // namespace deft::sparse
