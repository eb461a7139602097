#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// Whether steps are captured, to which folder, and how many: one setting for the process. The environment
/// variable DEFT_CAPTURE sets it from the start.
namespace deft::capture {

struct Settings {
  std::string folder;
  bool readsDevice = false; ///< a captured step of a GPU waits for its stream and copies the GPU's values
  bool hasTensors = false;  ///< also captures q, K and V of the step's tokens; reads the device
  int mostSteps = kMostSteps;
  std::int64_t mostBytes = kMostBytes; ///< of all files together

  static constexpr int kMostSteps = 256;
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
};

/// `FOLDER`, `FOLDER:device` or `FOLDER:tensors`.
support::Result<Settings> settingsOf(std::string_view variable);

/// Captures from now on; creates the folder if it does not exist. An error if it is not writable.
support::Result<void> start(Settings settings);
void stop();

/// The only cost of a step that is not captured.
bool isOn() noexcept;

/// The current settings, or the last ones if capturing is off.
Settings settings();

struct Written {
  int steps = 0;
  std::int64_t bytes = 0;
  std::string ended; ///< why capturing ended; empty: it continues, or was never on
};
Written written();

/// Whether to write a plan's tree with this number, counted from 1: the first kFirstSteps, then those with a
/// power of two.
bool isWanted(long long step) noexcept;
inline constexpr int kFirstSteps = 4;

/// Writes q.npy, k.npy and v.npy into an existing folder, and returns their size in bytes.
using WriteTensors = std::function<support::Result<std::int64_t>(const std::string &folder)>;

/// Writes the step, and its tensors (about `tensorBytes`) if a function for them is given. The first failure
/// or limit ends capturing with one message and does not affect the step. Returns the file's path, or an
/// empty one.
std::string write(Step step, const WriteTensors &tensors, std::int64_t tensorBytes) noexcept;

/// Ends capturing, because a step could not be examined.
void giveUp(const std::string &why) noexcept;

} // namespace deft::capture
