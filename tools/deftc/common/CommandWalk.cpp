#include "tools/deftc/common/CommandWalk.h"

#include "specs/Embedded.h"
#include "tools/deftc/common/Words.h"
#include "tuner/workload/Workload.h"

#include <CLI/CLI.hpp>

namespace deft::cli {
namespace {

/// A group of options is a command without a name to the parser.
std::vector<const CLI::App *> parts(const CLI::App &app, bool areGroups) {
  return app.get_subcommands(
      [areGroups](const CLI::App *part) { return part->get_name().empty() == areGroups; });
}

void walk(const CLI::App &app, const std::string &path, std::vector<WalkedCommand> &commands) {
  commands.push_back({path, &app});
  for (const CLI::App *below : parts(app, /*areGroups=*/false))
    walk(*below, path + " " + below->get_name(), commands);
}

} // namespace

std::vector<const CLI::App *> WalkedCommand::below() const { return parts(*app, /*areGroups=*/false); }

std::vector<const CLI::Option *> WalkedCommand::allOptions() const {
  std::vector<const CLI::Option *> options = app->get_options();
  for (const CLI::App *group : parts(*app, /*areGroups=*/true))
    for (const CLI::Option *option : group->get_options())
      if (option != group->get_help_ptr()) // the command has it
        options.push_back(option);
  return options;
}

std::vector<std::string> WalkedCommand::subcommands() const {
  std::vector<std::string> names;
  for (const CLI::App *one : below())
    names.push_back(one->get_name());
  return names;
}

std::vector<std::string> WalkedCommand::options() const {
  std::vector<std::string> names;
  for (const CLI::Option *option : allOptions()) {
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

std::vector<WalkedCommand> walkCommands(const CLI::App &app) {
  std::vector<WalkedCommand> commands;
  walk(app, app.get_name(), commands);
  return commands;
}

std::vector<std::string> listedValues(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return {};
  return splitAtCommas(type.substr(begin + 1, end - begin - 1));
}

OfferedNames offeredNames(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  OfferedNames offered{{}, type == kSpecOrFile};
  if (type == kSpecOrFile || type == kSpecName)
    for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
      if (type == kSpecName || spec.name != "library") // which has no attention to run
        offered.names.emplace_back(spec.name);
  if (type == kWorkloadName)
    if (const auto all = workload::list())
      for (const workload::Description &one : *all)
        offered.names.push_back(one.name);
  return offered;
}

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

} // namespace deft::cli
