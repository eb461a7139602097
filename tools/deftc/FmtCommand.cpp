#include "compiler/spec/Format.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/Render.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/SpecInput.h"

#include <CLI/CLI.hpp>

#include <ostream>

namespace deft::cli {
namespace {

/// The text in its usual form; what is no token goes to the error stream.
support::Result<std::string> formatted(Context &context, const spec::ImportedFile &file) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  auto text = spec::formatSpec(sources, sources.add(file.name, file.text), sink);
  context.err << support::renderDiagnostics(sources, sink, {context.errColour});
  if (!text)
    return support::Error{support::ErrorCode::Diagnostics, {}, {}};
  return std::move(*text);
}

int formatOne(Context &context, const std::string &path, bool checkOnly) {
  const auto file = readSpecText(context, path);
  if (!file)
    return reportError(context, file.error());
  if (!checkOnly && path != "-" && file->name != path)
    return reportError(context, {support::ErrorCode::Usage, "`" + path + "` is a shipped spec and no file",
                                 "deftc specs " + path + " -o FILE writes one"});
  const auto text = formatted(context, *file);
  if (!text)
    return reportError(context, text.error());
  if (path == "-" && !checkOnly)
    return writeOutput(context, "-", *text);
  if (*text == file->text)
    return kExitOk;
  if (checkOnly) {
    context.out << path << '\n';
    return kExitDiagnostics;
  }
  const auto written = support::writeFileAtomically(path, *text);
  return written ? kExitOk : reportError(context, written.error());
}

int formatAll(Context &context, const std::vector<std::string> &paths, bool checkOnly) {
  int code = kExitOk;
  for (const std::string &path : paths)
    code = std::max(code, formatOne(context, path, checkOnly));
  return code;
}

} // namespace

void addFmtCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("fmt", "Format specs in place");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto checkOnly = std::make_shared<bool>(false);
  command->add_option("SPEC", *paths, "Files, or - for standard input, formatted to the output")->required();
  command->add_flag("--check", *checkOnly, "Write nothing; name the files that would change and exit with 1");
  command->footer("Example:\n  deftc fmt my.deft");
  context.onRun(command, [&context, paths, checkOnly] { return formatAll(context, *paths, *checkOnly); });
}

} // namespace deft::cli
