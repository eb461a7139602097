#include "tools/deftc/common/Progress.h"

#include "compiler/support/Utf8.h"

#include <cmath>
#include <ostream>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

namespace deft::cli {

using namespace std::chrono_literals;

namespace {

/// Of the error stream; a usual width where it does not say.
std::size_t terminalColumns() {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

} // namespace

std::string fitted(const std::string &text, std::size_t columns) {
  constexpr std::string_view kMore = "...";
  if (support::countCodePoints(text) < columns)
    return text;
  std::size_t end = 0, kept = 0;
  for (; end < text.size() && kept + kMore.size() + 1 < columns; ++kept)
    for (++end; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80;)
      ++end; // the rest of a character
  return text.substr(0, end) + std::string(kMore);
}

Progress::Progress(Context &context, std::string what)
    : context_(context), what_(std::move(what)), next_(start_ + 1s) {}

Progress::~Progress() { wipe(); }

void Progress::wipe() {
  if (hasLine_ && context_.errIsTerminal)
    context_.err << "\r\033[K" << std::flush;
  hasLine_ = false;
}

void Progress::at(long long done, long long of) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now < next_ || done >= of)
    return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string text = what_ + ": " + std::to_string(done * 100 / of) + " %";
  if (done > 0)
    text +=
        ", " +
        std::to_string(std::llround(seconds * static_cast<double>(of - done) / static_cast<double>(done))) +
        " s left";
  show(text, now);
}

void Progress::say(const std::string &text) {
  const std::lock_guard lock(mutex_);
  if (const Clock::time_point now = Clock::now(); now >= next_)
    show(what_ + ": " + text, now);
}

void Progress::note(const std::string &line) {
  const std::lock_guard lock(mutex_);
  wipe();
  context_.err << line << '\n' << std::flush;
}

void Progress::show(const std::string &text, Clock::time_point now) {
  if (context_.isQuiet)
    return;
  if (context_.errIsTerminal) // a line that wraps could not be written over
    context_.err << '\r' << fitted(text, terminalColumns()) << "\033[K" << std::flush;
  else
    context_.err << text << '\n' << std::flush;
  hasLine_ = true;
  next_ = now + (context_.errIsTerminal ? 200ms : 10s);
}

Underway::Underway(Context &context, std::string what) : progress_(context, std::move(what)) {
  try {
    thread_ = std::thread([this] { keepSaying(); });
  } catch (const std::system_error &) {
    return; // the work goes on, in silence
  }
}

Underway::~Underway() {
  {
    const std::lock_guard lock(mutex_);
    isEnded_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

void Underway::keepSaying() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, 200ms, [this] { return isEnded_; })) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    progress_.say(std::to_string(std::llround(since.count())) + " s so far");
  }
}

} // namespace deft::cli
