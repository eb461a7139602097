#pragma once

#include "compiler/support/Result.h"
#include "tools/deftc/common/FilesInUse.h"

#include <functional>
#include <iosfwd>

namespace CLI {
class App;
} // namespace CLI

/// The frame of the command line. A subcommand is a file XCommand.cpp with a function `void
/// addXCommand(CLI::App &, Context &)`, and a row in the list of Commands.h.
namespace deft::cli {

enum ExitCode {
  kExitOk = 0,
  kExitDiagnostics = static_cast<int>(support::ErrorCode::Diagnostics),
  kExitUsage = static_cast<int>(support::ErrorCode::Usage),
  kExitEnvironment = static_cast<int>(support::ErrorCode::Environment),
  kExitInternal = static_cast<int>(support::ErrorCode::Internal),
  kExitSignal = 128, ///< plus the signal's number, as in shells
};

ExitCode exitCodeFor(support::ErrorCode code);

/// A subcommand's only access to the outside, so tests can pass string streams.
struct Context {
  std::ostream &out;
  std::ostream &err;
  bool outColour = false; ///< a terminal reads `out` and wants colours
  bool errColour = false;
  /// Set during the parsing of arguments; runs after all of them are valid.
  std::function<int()> action;
  bool outIsTerminal = false;
  bool errIsTerminal = false;
  FilesInUse files = {};      ///< files that the command opens
  std::istream *in = nullptr; ///< the input for `-`; null: the process's input
  bool isInputRead = false;   ///< by a `-`; a second one would find nothing left
  bool isQuiet = false;       ///< prints no progress
  std::string command = {};   ///< the command as a shell takes it: "deftc run 'my spec.deft'"

  /// Runs `run` if `subcommand` is given.
  void onRun(CLI::App *subcommand, std::function<int()> run);
};

/// Prints `error: message` and the hint to `context.err`, and returns the matching exit code. An error
/// without a message was reported already.
int reportError(Context &context, const support::Error &error);

/// Checks that writeOutput can probably write there, before a long computation.
support::Result<void> checkOutput(Context &context, const std::string &path);

/// Writes `bytes` to the file, or to `context.out` if `path` is empty or `-`; returns the exit code. Refuses
/// to overwrite a file that the command has read.
int writeOutput(Context &context, const std::string &path, std::string_view bytes);

/// Whether `descriptor` is a terminal that wants colours: NO_COLOR is unset or empty, and TERM is not `dumb`.
bool wantsColour(int descriptor);

/// Parses the arguments and runs the command; never throws. `argv` is main's.
int runDeftc(int argc, const char *const *argv, Context &context);

} // namespace deft::cli
