#include "tools/deftc/common/Context.h"

#include "compiler/support/AtomicFile.h"
#include "tools/deftc/common/Words.h"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <ostream>
#include <string_view>
#include <unistd.h>

namespace deft::cli {

void Context::onRun(CLI::App *subcommand, std::function<int()> run) {
  subcommand->callback([this, run = std::move(run)] { action = run; });
}

ExitCode exitCodeFor(support::ErrorCode code) { return static_cast<ExitCode>(code); }

int reportError(Context &context, const support::Error &error) {
  if (!error.message.empty()) {
    const char *kind = error.code == support::ErrorCode::Internal ? "internal error: " : "error: ";
    context.err << (context.errColour ? "\033[1;31m" : "") << kind << (context.errColour ? "\033[0m" : "")
                << printable(error.message) << '\n';
    if (!error.hint.empty())
      context.err << "  = hint: " << printable(error.hint) << '\n';
  }
  return exitCodeFor(error.code);
}

support::Result<void> checkOutput(Context &context, const std::string &path) {
  if (auto free = context.files.writes(path); !free)
    return free;
  return path.empty() || path == "-" ? support::Result<void>() : support::checkWritable(path);
}

int writeOutput(Context &context, const std::string &path, std::string_view bytes) {
  if (auto free = context.files.writes(path); !free)
    return reportError(context, free.error());
  if (!path.empty() && path != "-") {
    auto written = support::writeFileAtomically(path, bytes);
    return written.ok() ? kExitOk : reportError(context, written.error());
  }
  context.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!context.out)
    return reportError(context, {support::ErrorCode::Environment, "cannot write the output", {}});
  return kExitOk;
}

bool wantsColour(int descriptor) {
  const char *noColor = std::getenv("NO_COLOR");
  const char *terminal = std::getenv("TERM");
  return ::isatty(descriptor) && (!noColor || !*noColor) &&
         std::string_view(terminal ? terminal : "") != "dumb";
}

} // namespace deft::cli
