#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// Whether steps are captured, where to, and how many: one setting of the process. The environment variable
/// DEFT_CAPTURE has it from the beginning.
namespace deft::capture {

struct Settings {
  std::string folder;
  bool readsDevice = false; ///< a captured step of a GPU waits for its stream and copies what only it knows
  bool hasTensors = false;  ///< q, K and V of the step's tokens, too; reads the device
  int mostSteps = kMostSteps;
  std::int64_t mostBytes = kMostBytes; ///< of all files together

  static constexpr int kMostSteps = 256;
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
};

/// `FOLDER`, `FOLDER:device` or `FOLDER:tensors`.
support::Result<Settings> settingsOf(std::string_view variable);

/// Captures from now on; the folder is made where it is not there. An error where nobody can write into it.
support::Result<void> start(Settings settings);
void stop();

/// All that an uncaptured step costs: one look at this.
bool isOn() noexcept;

/// Of what is on now; of what was on last where nothing is.
Settings settings();

struct Written {
  int steps = 0;
  std::int64_t bytes = 0;
  std::string ended; ///< why no more is written; empty: it goes on, or was never on
};
Written written();

/// Of a plan's trees, the first is 1: whether this one is written. The first kFirstSteps are, then those
/// whose numbers are powers of two.
bool isWanted(long long step) noexcept;
inline constexpr int kFirstSteps = 4;

/// Writes q.npy, k.npy and v.npy into a folder that is there, and says how many bytes they have.
using WriteTensors = std::function<support::Result<std::int64_t>(const std::string &folder)>;

/// Writes the step, and its tensors (about `tensorBytes`) if a function for them is given. The first failure
/// or limit ends capturing with one message and does not affect the step. Returns the file's path, or an
/// empty one.
std::string write(Step step, const WriteTensors &tensors, std::int64_t tensorBytes) noexcept;

/// Ends capturing, because a step could not be looked at.
void giveUp(const std::string &why) noexcept;

} // namespace deft::capture
