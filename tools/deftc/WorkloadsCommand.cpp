#include "runtime/tree/TreeFile.h"
#include "runtime/tree/TreeSummary.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/TreeInput.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using workload::Description;

namespace {

constexpr char kWorkloadsFooter[] = R"(Examples:
  deftc workloads
  deftc workloads few_shot
  deftc workloads few_shot:prompt=1000,branches=8 --step 20 -o tree.json
  deftc workloads levels nodes=1,4,64 tokens=1024,256,32 -o tree.json
  deftc workloads --workloads DIR               (also the recorded ones in DIR)
A workload is a tree and its changes, decode step by decode step: `deftc run SPEC
--workload NAME` runs its steps. Parameters follow the name, `NAME:key=value,key=value`,
or are separate words. The same seed makes the same tree. specs/TREES.md describes the files.)";

struct WorkloadsOptions {
  std::string name;
  std::vector<std::string> parameters;
  std::string records;
  std::string output;
  int step = 0; ///< 0: not given
  std::uint64_t seed = 0;
};

int listAll(Context &context, const std::vector<Description> &all) {
  std::size_t width = 0;
  for (const Description &description : all)
    width = std::max(width, description.name.size());
  for (const Description &description : all)
    context.out << std::left << std::setw(static_cast<int>(width + 2)) << description.name << description.line
                << '\n';
  return kExitOk;
}

/// Full name: the parameters that stand as words of their own go behind the name.
std::string fullName(const WorkloadsOptions &options) {
  std::string name = options.name;
  for (const std::string &parameter : options.parameters)
    name += (name.find(':') == std::string::npos ? ":" : ",") + parameter;
  return name;
}

int describe(Context &context, const workload::Workload &workload, const Description &description) {
  context.out << description.name << ": " << description.line << "\n\n";
  std::size_t nameWidth = 0, valueWidth = 0;
  for (const workload::Parameter &parameter : description.parameters) {
    nameWidth = std::max(nameWidth, parameter.name.size());
    valueWidth = std::max(valueWidth, parameter.defaultValue.size());
  }
  for (const workload::Parameter &parameter : description.parameters)
    context.out << "  " << std::left << std::setw(static_cast<int>(nameWidth + 2)) << parameter.name
                << std::setw(static_cast<int>(valueWidth + 2)) << parameter.defaultValue
                << parameter.description << '\n';
  const tree::TreeSummary summary = tree::summarize(workload.tree());
  context.out << "\nstep " << workload.step() << " of " << workload.steps() << ": " << summary.queries
              << " queries, " << summary.nodes << " nodes in " << summary.levels << " levels, "
              << summary.tokens << " tokens, each read by " << std::fixed << std::setprecision(1)
              << summary.sharing() << " queries on average\n";
  return kExitOk;
}

int runWorkloads(Context &context, const WorkloadsOptions &options) {
  if (options.name.empty()) {
    if (!options.output.empty())
      return reportError(context, {support::ErrorCode::Usage, "--output needs the name of a workload",
                                   "deftc workloads few_shot -o tree.json"});
    const auto all = workload::list(options.records);
    return all ? listAll(context, *all) : reportError(context, all.error());
  }
  if (auto read = context.files.readsFolder(options.records); !read)
    return reportError(context, read.error());
  if (auto writable = checkOutput(context, options.output); !writable)
    return reportError(context, writable.error());
  TreeOptions tree;
  tree.workload = fullName(options);
  tree.workloads = options.records;
  tree.seed = options.seed;
  tree.step = options.step;
  const auto workload = openWorkload(context, tree);
  if (!workload)
    return reportError(context, workload.error());
  if (!options.output.empty())
    return writeOutput(context, options.output, tree::formatTree(workload->tree()));

  const auto all = workload::list(options.records);
  if (!all)
    return reportError(context, all.error());
  const std::string name = options.name.substr(0, options.name.find(':'));
  const auto isNamed = [&](const Description &description) { return description.name == name; };
  return describe(context, *workload, *std::find_if(all->begin(), all->end(), isNamed));
}

} // namespace

void addWorkloadsCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "workloads", "List the workloads, describe one, or write the tree of one of its steps");
  auto options = std::make_shared<WorkloadsOptions>();
  command->add_option("NAME", options->name, "The workload")->type_name(kWorkloadName);
  command->add_option("PARAMETER", options->parameters, "Parameters of the workload, key=value each");
  command->add_option("--workloads", options->records, "A folder with recorded workloads");
  command->add_option("--step", options->step, "Step of the workload, from 1; default: 1")->check(atLeast(1));
  command->add_option("--seed", options->seed, "Seed of random choices")
      ->check(seed())
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Write the step's tree to this file; - prints it");
  command->footer(kWorkloadsFooter);
  context.onRun(command, [&context, options] { return runWorkloads(context, *options); });
}

} // namespace deft::cli
