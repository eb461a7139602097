#include "tools/deftc/shell/ManPage.h"

#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Words.h"
#include "tools/deftc/shell/Conventions.h"

#include <CLI/CLI.hpp>

#include <span>
#include <vector>

namespace deft::cli {
namespace {

/// Text whose marks man would read: dashes, backslashes, a dot or a quote at the beginning of a line.
std::string escaped(const std::string &text) {
  std::string result;
  bool isLineStart = true;
  for (const char c : text) {
    if (isLineStart && (c == '.' || c == '\''))
      result += "\\&";
    if (c == '\\' || c == '-')
      result += '\\';
    result += c == '\\' ? 'e' : c;
    isLineStart = c == '\n';
  }
  return result;
}

std::string namesOf(const CLI::Option &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    names.push_back("--" + name);
  if (names.empty())
    names.push_back(option.get_single_name());
  return joined(names);
}

/// With the values that it lists. A description of several lines has a line of its own for each.
std::string described(const CLI::Option &option) {
  std::string text = escaped(option.get_description());
  if (text.find('\n') != std::string::npos) {
    for (std::size_t end = 0; (end = text.find('\n', end)) != std::string::npos; end += 5)
      text.replace(end, 1, "\n.br\n");
    return text;
  }
  const auto values = listedValues(option);
  return values.empty() ? text : text + escaped(": " + joined(values));
}

std::string commandText(const WalkedCommand &command) {
  std::string text = ".SS " + escaped(command.path) + "\n" + escaped(command.app->get_description()) + ".\n";
  for (const CLI::Option *option : command.allOptions()) {
    if (option->get_single_name() == "help")
      continue;
    text += ".TP\n.B " + escaped(namesOf(*option)) + "\n" + described(*option) + "\n";
  }
  if (const std::string footer = command.app->get_footer(); !footer.empty())
    text += ".PP\n.nf\n" + escaped(footer) + "\n.fi\n";
  return text;
}

std::string rowsText(std::span<const Convention> rows) {
  std::string text;
  for (const auto &[name, what] : rows)
    text += ".TP\n.B " + escaped(name) + "\n" + escaped(what) + "\n";
  return text;
}

} // namespace

std::string manPage(const CLI::App &app, const std::string &version) {
  std::string text = ".TH DEFTC 1 \"\" \"deftc " + escaped(version) + "\"\n.SH NAME\n" +
                     "deftc \\- compiler, runtime and autotuner for tree\\-structured attention\n" +
                     ".SH SYNOPSIS\n.B deftc\n.I command\n[options]\n.SH DESCRIPTION\n" +
                     escaped(app.get_description()) + ".\n.SH COMMANDS\n";
  for (const WalkedCommand &command : walkCommands(app))
    if (command.app != &app)
      text += commandText(command);
  return text + ".SH EXIT STATUS\n" + rowsText(kExitCodes) + ".SH ENVIRONMENT\n" + rowsText(kEnvironment);
}

} // namespace deft::cli
