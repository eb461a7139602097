#include "tools/deftc/shell/Completions.h"

#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Words.h"

#include <CLI/CLI.hpp>

namespace deft::cli {
namespace {

/// A word between single quotes, for all three shells.
std::string shellQuoted(const std::string &text) {
  std::string result = "'";
  for (const char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// In zsh's descriptions a colon and brackets have a meaning.
std::string escapedForZsh(const std::string &text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']')
      result += '\\';
    result += c;
  }
  return result;
}

/// What is offered in an option's place: the values that it lists, or names that ship.
std::vector<std::string> valuesOf(const CLI::Option &option) {
  const auto listed = listedValues(option);
  return listed.empty() ? offeredNames(option).names : listed;
}

/// What a command takes without an option: names that ship, and whether files go as well.
OfferedNames placesOf(const WalkedCommand &command) {
  OfferedNames all;
  for (const CLI::Option *option : command.allOptions())
    if (option->get_positional()) {
      const OfferedNames offered = offeredNames(*option);
      all.names.insert(all.names.end(), offered.names.begin(), offered.names.end());
      all.areFilesToo |= offered.areFilesToo;
    }
  return all;
}

/// What zsh offers in a place of a command: `MESSAGE:ACTION`.
std::string zshPlaces(const OfferedNames &places) {
  if (places.names.empty())
    return "file:_files";
  const std::string names = "(" + joined(places.names, " ") + ")";
  return places.areFilesToo
             ? "spec or file:{_alternative \"specs:shipped spec:" + names + "\" \"files:file:_files\"}"
             : "name:" + names;
}

} // namespace

std::string bashCompletions(const CLI::App &app) {
  std::string text =
      "# Completions of deftc for bash. Made by: deftc completions bash\n"
      "_deftc() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path=deftc i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$path ${COMP_WORDS[i]}\" in\n";
  std::string paths, words, values;
  for (const WalkedCommand &command : walkCommands(app)) {
    if (command.app != &app)
      paths += (paths.empty() ? "" : " | ") + shellQuoted(command.path);
    const OfferedNames places = placesOf(command);
    words += "    " + shellQuoted(command.path) + ") known='" +
             joined(command.subcommands().empty() ? command.options() : command.subcommands(), " ") + "'" +
             (places.names.empty() ? "" : " names='" + joined(places.names, " ") + "'") +
             (places.areFilesToo ? " files=1" : "") + " ;;\n";
    for (const CLI::Option *option : command.allOptions())
      if (const auto listed = valuesOf(*option); !listed.empty())
        for (const std::string &name : option->get_lnames())
          values += "    " + shellQuoted(command.path + " --" + name) + ") known='" + joined(listed, " ") +
                    "' ;;\n";
  }
  text += "      " + paths +
          ") path=\"$path ${COMP_WORDS[i]}\" ;;\n"
          "    esac\n"
          "  done\n"
          "  local known='' names='' files=''\n"
          "  case \"$path $before\" in\n" +
          values +
          "  esac\n"
          "  if [[ -n $known ]]; then\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$word\")\n"
          "    return\n"
          "  fi\n"
          "  case \"$path\" in\n" +
          words +
          "  esac\n"
          "  if [[ -n $names && $word != -* ]]; then\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\"; [[ -z $files ]] || compgen -f -- "
          "\"$word\")\n"
          "    return\n"
          "  fi\n"
          "  mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$word\")\n"
          "  [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "}\n"
          "complete -o filenames -F _deftc deftc\n";
  return text;
}

std::string zshCompletions(const CLI::App &app) {
  std::string text = "#compdef deftc\n# Completions of deftc for zsh. Made by: deftc completions zsh\n"
                     "_deftc() {\n"
                     "  local path=deftc word i\n"
                     "  for ((i = 2; i < CURRENT; i++)); do\n"
                     "    case \"$path ${words[i]}\" in\n";
  std::string paths, cases;
  for (const WalkedCommand &command : walkCommands(app)) {
    if (command.app != &app)
      paths += (paths.empty() ? "" : " | ") + shellQuoted(command.path);
    cases += "    " + shellQuoted(command.path) + ")\n";
    if (const auto below = command.below(); !below.empty()) {
      cases += "      local -a commands=(";
      for (const CLI::App *one : below)
        cases += " " + shellQuoted(one->get_name() + ":" + escapedForZsh(firstLine(one->get_description())));
      cases += " )\n      _describe command commands ;;\n";
      continue;
    }
    cases += "      _arguments -S";
    for (const CLI::Option *option : command.allOptions())
      for (const std::string &name : option->get_lnames()) {
        const auto listed = valuesOf(*option);
        std::string one = "--" + name + "[" + escapedForZsh(firstLine(option->get_description())) + "]";
        if (option->get_expected_max() > 0)
          one += listed.empty() ? ":value:_files" : ":value:(" + joined(listed, " ") + ")";
        cases += " " + shellQuoted(one);
      }
    cases += " " + shellQuoted("*:" + zshPlaces(placesOf(command))) + " ;;\n";
  }
  return text + "      " + paths +
         ") path=\"$path ${words[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_deftc \"$@\"\n";
}

std::string fishCompletions(const CLI::App &app) {
  std::string text = "# Completions of deftc for fish. Made by: deftc completions fish\n";
  for (const WalkedCommand &command : walkCommands(app)) {
    // The commands that must have been given, and behind them more conditions.
    std::string condition, more;
    for (std::size_t begin = command.path.find(' '); begin != std::string::npos;) {
      const std::size_t end = command.path.find(' ', begin + 1);
      condition += more + "__fish_seen_subcommand_from " +
                   command.path.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
      more = "; and ";
      begin = end;
    }
    for (const CLI::App *below : command.below()) {
      std::string first = condition + more;
      first += "not __fish_seen_subcommand_from " + joined(command.subcommands(), " ");
      text += "complete -c deftc -f -n " + shellQuoted(first) + " -a " + below->get_name() + " -d " +
              shellQuoted(firstLine(below->get_description())) + "\n";
    }
    if (const OfferedNames places = placesOf(command); !places.names.empty())
      text += std::string("complete -c deftc") + (places.areFilesToo ? "" : " -f") + " -n " +
              shellQuoted(condition) + " -a " + shellQuoted(joined(places.names, " ")) + "\n";
    for (const CLI::Option *option : command.allOptions())
      for (const std::string &name : option->get_lnames()) {
        text += "complete -c deftc";
        if (!condition.empty())
          text += " -n " + shellQuoted(condition);
        text += " -l " + name + " -d " + shellQuoted(firstLine(option->get_description()));
        if (const auto listed = valuesOf(*option); !listed.empty())
          text += " -x -a " + shellQuoted(joined(listed, " "));
        else if (option->get_expected_max() > 0)
          text += " -r";
        text += "\n";
      }
  }
  return text;
}

} // namespace deft::cli
