#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace deft::cli {

/// One command of the tree of commands.
struct WalkedCommand {
  std::string path; ///< "deftc cache show"
  const CLI::App *app = nullptr;

  std::vector<const CLI::App *> below() const;         ///< its commands
  std::vector<const CLI::Option *> allOptions() const; ///< also those that stand in groups
  std::vector<std::string> subcommands() const;
  std::vector<std::string> options() const; ///< long and short names, with their dashes
};

/// All commands, each before those below it.
std::vector<WalkedCommand> walkCommands(const CLI::App &app);

/// The values that an option lists, as `{a,b}` in its help; empty: any.
std::vector<std::string> listedValues(const CLI::Option &option);

/// What an option's type is called where it takes names that ship.
inline constexpr const char *kSpecOrFile = "FILE|NAME"; ///< a spec, by its file or as it ships
inline constexpr const char *kSpecName = "SPEC";
inline constexpr const char *kWorkloadName = "WORKLOAD";

/// The names that an option takes, by its type; parameters of a workload are not among them.
struct OfferedNames {
  std::vector<std::string> names; ///< empty: it takes none
  bool areFilesToo = false;
};
OfferedNames offeredNames(const CLI::Option &option);

/// The first line of a description.
std::string firstLine(const std::string &text);

} // namespace deft::cli
