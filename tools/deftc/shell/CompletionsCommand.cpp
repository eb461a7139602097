#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/shell/Completions.h"
#include "tools/deftc/shell/ManPage.h"

#include <CLI/CLI.hpp>

namespace deft::cli {
namespace {

int write(Context &context, const CLI::App &app, const std::string &kind, const std::string &output) {
  const std::string text = kind == "bash"   ? bashCompletions(app)
                           : kind == "zsh"  ? zshCompletions(app)
                           : kind == "fish" ? fishCompletions(app)
                                            : manPage(app, DEFT_VERSION);
  return writeOutput(context, output, text);
}

} // namespace

void addCompletionsCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("completions", "Print completions of deftc for a shell, or its manual page");
  auto kind = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  command->add_option("KIND", *kind, "What for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command->add_option("-o,--output", *output, "Write it to this file");
  command->footer("Examples:\n  deftc completions bash -o ~/.local/share/bash-completion/completions/deftc\n"
                  "  deftc completions zsh > ~/.zfunc/_deftc\n"
                  "  deftc completions fish > ~/.config/fish/completions/deftc.fish\n"
                  "  deftc completions man | man -l -\n"
                  "`cmake --install` installs all of them.");
  context.onRun(command, [&context, &app, kind, output] { return write(context, app, *kind, *output); });
}

} // namespace deft::cli
