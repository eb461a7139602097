#include "tools/deftc/common/ParseErrors.h"

#include "compiler/support/NearestName.h"
#include "tools/deftc/common/Words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

namespace deft::cli {

using support::Error;
using support::ErrorCode;

namespace {

/// `deftc cache show`: as far as the words of the command line led.
std::string commandPath(const CLI::App &app) {
  std::string path = app.get_name();
  for (const CLI::App *at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

bool removeSuffix(std::string &text, const std::string &suffix) {
  if (!text.ends_with(suffix))
    return false;
  text.resize(text.size() - suffix.size());
  return true;
}

bool removePrefix(std::string &text, const std::string &prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.erase(0, prefix.size());
  return true;
}

Error missing(std::string text, const std::string &path, const std::string &help) {
  std::string given; // of several options that exclude each other
  if (const std::size_t also = text.find(" is required and "); also != std::string::npos) {
    given = text.substr(also + std::string(" is required and ").size());
    text.resize(also);
    removeSuffix(given, " were given");
  } else {
    removeSuffix(text, " is required");
  }
  if (text == "A subcommand")
    return {ErrorCode::Usage, "`" + path + "` needs a command", help};
  if (removePrefix(text, "Exactly 1 option from [") && removeSuffix(text, "]"))
    return {ErrorCode::Usage,
            "`" + path + "` needs one of " + joined(splitAtCommas(text)) +
                (given.empty() ? "" : ", and " + given + " were given"),
            help};
  if (removePrefix(text, "At least 1 option from [") && removeSuffix(text, "]"))
    return {ErrorCode::Usage, "`" + path + "` needs at least one of " + joined(splitAtCommas(text)), help};
  return {ErrorCode::Usage, "`" + path + "` needs " + text, help};
}

/// CLI11 says `--as: jsn not in {a,b}`.
Error notOneOf(const std::string &text, const std::string &help) {
  const std::size_t colon = text.find(": "), list = text.find(" not in {");
  if (colon == std::string::npos || list == std::string::npos || list < colon || !text.ends_with("}"))
    return {ErrorCode::Usage, text, help};
  const std::string option = text.substr(0, colon), value = text.substr(colon + 2, list - colon - 2);
  const std::size_t begin = list + std::string(" not in {").size();
  const std::vector<std::string> known = splitAtCommas(text.substr(begin, text.size() - 1 - begin));
  const bool isCuda = value == "gpu" && std::ranges::find(known, "cuda") != known.end(); // `cpu` is nearer
  const std::string nearest = isCuda ? "did you mean `cuda`?" : support::didYouMean(value, known);
  return {ErrorCode::Usage, option + " cannot be `" + value + "`",
          nearest.empty() ? "it is one of " + joined(known) : nearest};
}

} // namespace

Error usageError(const CLI::App &app, const CLI::ParseError &error) {
  const std::string path = commandPath(app), help = "see `" + path + " --help`";
  std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError *>(&error))
    return missing(std::move(text), path, help);
  if (dynamic_cast<const CLI::ValidationError *>(&error))
    return notOneOf(text, help);
  if (dynamic_cast<const CLI::ExtrasError *>(&error)) {
    const std::size_t colon = text.rfind(": ");
    return {ErrorCode::Usage,
            "`" + path + "` takes no `" + (colon == std::string::npos ? text : text.substr(colon + 2)) + "`",
            help};
  }
  if (!text.empty() && text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  removeSuffix(text, ".");
  return {ErrorCode::Usage, text, help};
}

} // namespace deft::cli
