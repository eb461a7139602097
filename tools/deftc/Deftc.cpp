#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/common/ParseErrors.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <exception>
#include <new>
#include <ostream>

namespace deft::cli {
namespace {

void addCommands(CLI::App &app, Context &context) {
#define DEFT_ADD_COMMAND(ID, NAME) add##ID##Command(app, context);
  DEFT_COMMANDS(DEFT_ADD_COMMAND)
#undef DEFT_ADD_COMMAND
}

/// What was printed must have arrived: on a full disk it has not. Another failure goes first.
int withOutputWritten(Context &context, int code) {
  if (!context.out.flush() && code == kExitOk)
    return reportError(context, {support::ErrorCode::Environment, "cannot write the output", {}});
  return code;
}

int internalError(Context &context, const std::string &what) {
  return reportError(context, {support::ErrorCode::Internal, what,
                               "this is a bug in deftc; please report it with the command and its input"});
}

} // namespace

int runDeftc(int argc, const char *const *argv, Context &context) try {
  CLI::App app("deftc compiles specs of tree-structured attention to CUDA and CPU kernels and runs them",
               "deftc");
  app.set_version_flag("-V,--version", "deftc " DEFT_VERSION);
  app.add_flag("-q,--quiet", context.isQuiet, "Do not show progress");
  app.fallthrough(); // --quiet may stand behind the command, too
  app.require_subcommand(1);
  app.footer("Example:\n  deftc check my.deft\n`deftc COMMAND --help` shows an example of each command.");
  addCommands(app, context);
  const std::vector<std::string> arguments = withHelpLast({argv + 1, argv + argc});
  context.command = "deftc";
  for (const std::string &argument : arguments)
    context.command += " " + shellWord(argument);
  if (auto known = checkNames(app, arguments); !known)
    return reportError(context, known.error());
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError &error) {
    // Help and the version arrive as exceptions, too.
    if (error.get_exit_code() != 0)
      return reportError(context, usageError(app, error));
    return withOutputWritten(context, app.exit(error, context.out, context.err));
  }
  return withOutputWritten(context, context.action());
} catch (const std::bad_alloc &) {
  return reportError(context, {support::ErrorCode::Environment, "there is not enough memory for this",
                               "a tree of fewer tokens, or a spec of fewer heads, needs less"});
} catch (const nlohmann::json::type_error &error) {
  constexpr int kNoUtf8 = 316;
  if (error.id != kNoUtf8)
    return internalError(context, error.what());
  return reportError(
      context, {support::ErrorCode::Usage, "a given name is not UTF-8 and cannot be written as JSON", ""});
} catch (const std::exception &error) {
  return internalError(context, error.what());
} catch (...) {
  return internalError(context, "an unknown exception");
}

} // namespace deft::cli
