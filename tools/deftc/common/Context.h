#pragma once

#include "compiler/support/Result.h"
#include "tools/deftc/common/FilesInUse.h"

#include <functional>
#include <iosfwd>

namespace CLI {
class App;
} // namespace CLI

/// The frame of the command line. A subcommand has one file XCommand.cpp with one function
/// `void addXCommand(CLI::App &, Context &)`, and stands in the list of Commands.h.
namespace deft::cli {

enum ExitCode {
  kExitOk = 0,
  kExitDiagnostics = 1,
  kExitUsage = 2,
  kExitEnvironment = 3,
  kExitInternal = 70,
  kExitSignal = 128, ///< and the signal's number, as shells have it
};

ExitCode exitCodeFor(support::ErrorCode code);

/// What a subcommand may touch of the outside: tests hand in string streams.
struct Context {
  std::ostream &out;
  std::ostream &err;
  bool outColour = false; ///< a terminal reads `out` and the user does not refuse colours
  bool errColour = false;
  /// Set while arguments are parsed, run after all of them are known to be right.
  std::function<int()> action;
  bool outIsTerminal = false;
  bool errIsTerminal = false;
  FilesInUse files = {};      ///< of the command, told by what opens them
  std::istream *in = nullptr; ///< what `-` reads; null: the process's input
  bool isInputRead = false;   ///< by a `-`: for another one there is nothing left
  bool isQuiet = false;       ///< no lines that say how far work is
  std::string command = {};   ///< as a shell takes it: "deftc run 'my spec.deft'"

  /// Makes `run` the action when `subcommand` is given.
  void onRun(CLI::App *subcommand, std::function<int()> run);
};

/// Prints `error: message` and the hint to `context.err`; the exit code that fits. An error without a message
/// has been reported already.
int reportError(Context &context, const support::Error &error);

/// Whether writeOutput can be expected to work there, before long work for it.
support::Result<void> checkOutput(Context &context, const std::string &path);

/// Writes `bytes` to the file, or to `context.out` when `path` is empty or `-`; the exit code. A file that
/// the command has read is not written over.
int writeOutput(Context &context, const std::string &path, std::string_view bytes);

/// Whether `descriptor` is a terminal that wants colours: NO_COLOR is unset or empty, TERM is not `dumb`.
bool wantsColour(int descriptor);

/// Parses and runs; never throws. `argv` as main gets it.
int runDeftc(int argc, const char *const *argv, Context &context);

} // namespace deft::cli
