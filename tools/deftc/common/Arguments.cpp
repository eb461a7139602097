#include "tools/deftc/common/Arguments.h"

#include "compiler/support/NearestName.h"
#include "runtime/exec/cpu/Processors.h"
#include "tools/deftc/common/CommandWalk.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

template <typename Number> std::optional<Number> numberOf(const std::string &text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool isWhole = error == std::errc() && end == text.data() + text.size();
  return isWhole ? std::optional(value) : std::nullopt;
}

Error unknown(const std::string &what, const std::string &name, const std::vector<std::string> &known,
              const std::string &path) {
  const std::string nearest = support::didYouMean(name, known);
  return {ErrorCode::Usage, what, nearest.empty() ? "`" + path + " --help` lists them" : nearest};
}

Error unknownCommand(const std::string &name, const std::vector<std::string> &known,
                     const std::string &path) {
  return unknown("`" + path + "` has no command `" + name + "`", name, known, path);
}

Result<void> checkOption(const CLI::App &root, const CLI::App &app, const std::string &name,
                         const std::string &path) {
  if (app.get_option_no_throw(name) || (app.get_fallthrough() && root.get_option_no_throw(name)))
    return {};
  std::vector<std::string> known;
  for (const CLI::Option *option : WalkedCommand{path, &app}.allOptions())
    for (const std::string &one : option->get_lnames())
      known.push_back("--" + one);
  return unknown("`" + path + "` has no option `" + name + "`", name, known, path);
}

const CLI::App *commandOf(const CLI::App &app, const std::string &name, std::vector<std::string> &known) {
  const CLI::App *found = nullptr;
  for (const CLI::App *command : app.get_subcommands({})) {
    known.push_back(command->get_name());
    if (command->get_name() == name)
      found = command;
  }
  return found;
}

} // namespace

CLI::Validator atLeast(int least) {
  const auto check = [least](const std::string &text) -> std::string {
    const auto value = numberOf<int>(text);
    if (!value && !text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
      return "`" + text + "` is more than " + std::to_string(std::numeric_limits<int>::max());
    return value && *value >= least
               ? ""
               : "`" + text + "` is not a whole number of at least " + std::to_string(least);
  };
  return {check, least > 0 ? "POSITIVE" : "NONNEGATIVE"};
}

CLI::Validator between(int least, int most) {
  const auto check = [least, most](const std::string &text) -> std::string {
    const auto value = numberOf<int>(text);
    return value && *value >= least && *value <= most
               ? ""
               : "`" + text + "` is not a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most);
  };
  return {check, least > 0 ? "POSITIVE" : "NONNEGATIVE"};
}

CLI::Validator notNegative() {
  const auto check = [](const std::string &text) -> std::string {
    const auto value = numberOf<double>(text);
    return value && *value >= 0 ? "" : "`" + text + "` is not a number of at least 0";
  };
  return {check, "NONNEGATIVE"};
}

CLI::Validator seed() {
  const auto check = [](const std::string &text) -> std::string {
    return numberOf<std::uint64_t>(text) ? "" : "`" + text + "` is not a whole number of 64 bits";
  };
  return {check, "NONNEGATIVE"};
}

CLI::Validator threads() {
  constexpr int kMost = exec::kMostThreads;
  const auto check = [](const std::string &text) -> std::string {
    const auto value = numberOf<int>(text);
    return value && *value >= 1 && *value <= kMost
               ? ""
               : "`" + text + "` is not a number of threads from 1 to " + std::to_string(kMost);
  };
  return {check, "POSITIVE"};
}

CLI::Validator keptFile() {
  const auto check = [](const std::string &path) -> std::string {
    return path == "-" ? "`-` is standard output, but this needs a file" : "";
  };
  return {check, ""};
}

Result<void> checkNames(const CLI::App &app, const std::vector<std::string> &arguments) {
  const CLI::App *at = &app;
  std::string path = app.get_name();
  for (const std::string &word : arguments) {
    if (word == "--")
      break;
    if (word.starts_with("--")) {
      if (auto known = checkOption(app, *at, word.substr(0, word.find('=')), path); !known)
        return known;
    } else if (!word.starts_with("-") && at->get_require_subcommand_min() > 0) {
      std::vector<std::string> known;
      const CLI::App *next = commandOf(*at, word, known);
      if (!next)
        return unknownCommand(word, known, path);
      at = next;
      path += " " + next->get_name();
    }
  }
  return {};
}

std::string shellWord(const std::string &argument) {
  constexpr const char *kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:#@%+";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos)
    return argument;
  std::string word = "'";
  for (const char c : argument)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::vector<std::string> withHelpLast(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

} // namespace deft::cli
