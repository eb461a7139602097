#include "runtime/capture/Capture.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/Log.h"
#include "compiler/support/Unexpected.h"
#include "runtime/capture/StepFile.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>

namespace deft::capture {

namespace fs = std::filesystem;

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr char kVariable[] = "DEFT_CAPTURE";

struct State {
  std::mutex mutex;
  std::atomic<bool> isOn = false;
  bool isOfVariable = false; ///< a person's asking, who has perhaps no listener
  Settings settings;
  Written written;
  int lastNumber = 0;

  State() {
    const char *asked = std::getenv(kVariable);
    if (!asked || !*asked)
      return;
    isOfVariable = true;
    const Result<Settings> given = settingsOf(asked);
    const Result<void> begun = given ? begin(*given) : Result<void>(given.error());
    if (!begun)
      tell(std::string(kVariable) + ": " + begun.error().message + "; nothing is captured");
  }

  Result<void> begin(Settings of) {
    if (auto writable = support::checkWritableFolder(of.folder); !writable)
      return writable;
    std::error_code failed;
    fs::create_directories(of.folder, failed);
    if (failed)
      return Error{ErrorCode::Environment, "cannot make the folder `" + of.folder + "`: " + failed.message(),
                   ""};
    of.readsDevice |= of.hasTensors;
    settings = std::move(of);
    written = {};
    isOn = true;
    return {};
  }

  /// Writes to the log, and to the error stream if the environment asked for the capture.
  void tell(const std::string &text) const {
    support::log({support::LogKind::Capture, text});
    if (isOfVariable)
      std::fprintf(stderr, "deft: %s\n", text.c_str());
  }

  void end(const std::string &why) {
    isOn = false;
    written.ended = why;
    tell("capturing has ended: " + why);
  }

  void endOf(const std::exception &failed) noexcept {
    isOn = false;
    try {
      const std::lock_guard lock(mutex);
      end(support::unexpected(failed).message);
    } catch (...) {
      return; // there is no memory for the words either
    }
  }
};

/// Never destroyed: threads of a program may still be at work when the process ends.
State &state() {
  static auto *const state = new State;
  return *state;
}

/// Of this process, of whose files nobody else has the name.
std::string nameOf(int number) {
  char name[64];
  std::snprintf(name, sizeof name, "step_%d_%05d", static_cast<int>(::getpid()), number);
  return name;
}

std::string limitText(const Settings &settings, const Written &written, std::int64_t more) {
  if (written.steps >= settings.mostSteps)
    return "the limit of " + std::to_string(settings.mostSteps) + " steps is reached";
  if (written.bytes + more > settings.mostBytes)
    return "the next step would make the files larger than the limit of " +
           std::to_string(settings.mostBytes) + " bytes";
  return {};
}

/// Files of a step that is not written as a whole.
void removeParts(const fs::path &folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

Result<std::int64_t> writeTensors(const fs::path &folder, const WriteTensors &tensors) {
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (failed)
    return Error{ErrorCode::Environment, "cannot make `" + folder.string() + "`: " + failed.message(), ""};
  auto bytes = tensors(folder.string());
  if (!bytes)
    removeParts(folder);
  return bytes;
}

} // namespace

Result<Settings> settingsOf(std::string_view variable) {
  Settings settings;
  const std::size_t colon = variable.rfind(':');
  const std::string_view option = colon == std::string_view::npos ? "" : variable.substr(colon + 1);
  settings.folder = variable.substr(0, colon);
  if (settings.folder.empty())
    return Error{ErrorCode::Usage, "no folder is named", "FOLDER, FOLDER:device or FOLDER:tensors"};
  settings.hasTensors = option == "tensors";
  settings.readsDevice = settings.hasTensors || option == "device";
  if (!option.empty() && !settings.readsDevice)
    return Error{ErrorCode::Usage, "`" + std::string(option) + "` is neither `device` nor `tensors`",
                 "end a folder's name that has a colon with another colon"};
  return settings;
}

Result<void> start(Settings settings) {
  State &own = state();
  const std::lock_guard lock(own.mutex);
  own.isOfVariable = false;
  return own.begin(std::move(settings));
}

void stop() {
  State &own = state();
  const std::lock_guard lock(own.mutex);
  own.isOn = false;
}

bool isOn() noexcept { return state().isOn.load(std::memory_order_relaxed); }

Settings settings() {
  State &own = state();
  const std::lock_guard lock(own.mutex);
  return own.settings;
}

Written written() {
  State &own = state();
  const std::lock_guard lock(own.mutex);
  return own.written;
}

bool isWanted(long long step) noexcept {
  return step > 0 && (step <= kFirstSteps || std::has_single_bit(static_cast<unsigned long long>(step)));
}

std::string write(Step step, const WriteTensors &tensors, std::int64_t tensorBytes) noexcept {
  State &own = state();
  try {
    const std::lock_guard lock(own.mutex);
    if (!own.isOn)
      return {};
    const Settings &settings = own.settings;
    const fs::path folder = settings.folder;
    std::string name;
    std::error_code none;
    do
      name = nameOf(++own.lastNumber);
    while (fs::exists(folder / (name + ".json"), none)); // of an earlier process of this number
    const bool hasTensors = tensors && settings.hasTensors;
    step.tensors = hasTensors ? name + ".tensors" : "";
    const std::string text = formatStep(step);
    const auto textBytes = static_cast<std::int64_t>(text.size());
    if (const std::string limit =
            limitText(settings, own.written, textBytes + (hasTensors ? tensorBytes : 0));
        !limit.empty()) {
      own.end(limit);
      return {};
    }
    std::int64_t bytes = textBytes;
    if (hasTensors) {
      const auto more = writeTensors(folder / step.tensors, tensors);
      if (!more) {
        own.end(more.error().message);
        return {};
      }
      bytes += *more;
    }
    std::string path = (folder / (name + ".json")).string();
    if (const auto done = support::writeFileAtomically(path, text); !done) {
      if (hasTensors)
        removeParts(folder / step.tensors);
      own.end(done.error().message);
      return {};
    }
    ++own.written.steps;
    own.written.bytes += bytes;
    support::log({support::LogKind::Capture, "a step of `" + step.attention + "` is in " + path});
    return path;
  } catch (const std::exception &failed) {
    own.endOf(failed);
  }
  return {};
}

void giveUp(const std::string &why) noexcept {
  State &own = state();
  try {
    const std::lock_guard lock(own.mutex);
    if (own.isOn)
      own.end(why);
  } catch (const std::exception &failed) {
    own.endOf(failed);
  }
}

} // namespace deft::capture
