#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace deft::cli {

/// One command in the tree of commands.
struct WalkedCommand {
  std::string path; ///< "deftc cache show"
  const CLI::App *app = nullptr;

  std::vector<const CLI::App *> below() const;         ///< its subcommands
  std::vector<const CLI::Option *> allOptions() const; ///< including options in groups
  std::vector<std::string> subcommands() const;
  std::vector<std::string> options() const; ///< long and short names, with their dashes
};

/// All commands; each comes before its subcommands.
std::vector<WalkedCommand> walkCommands(const CLI::App &app);

/// The values that an option accepts, from `{a,b}` in its help; empty: any.
std::vector<std::string> listedValues(const CLI::Option &option);

/// The type names of options that accept names of shipped files.
inline constexpr const char *kSpecOrFile = "FILE|NAME"; ///< a spec: a file, or the name of a shipped one
inline constexpr const char *kSpecName = "SPEC";
inline constexpr const char *kWorkloadName = "WORKLOAD";

/// The shipped names that an option accepts, by its type, without parameters of workloads.
struct OfferedNames {
  std::vector<std::string> names; ///< empty: it accepts none
  bool areFilesToo = false;
};
OfferedNames offeredNames(const CLI::Option &option);

/// The first line of a description.
std::string firstLine(const std::string &text);

} // namespace deft::cli
