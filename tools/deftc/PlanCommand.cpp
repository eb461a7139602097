#include "compiler/config/ConfigJson.h"
#include "compiler/config/DefaultConfig.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/Commands.h"
#include "tools/deftc/PlanReport.h"
#include "tools/deftc/RunInput.h"
#include "tuner/workload/Workload.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>
#include <sstream>

namespace deft::cli {

using support::Result;

namespace {

struct Options {
  std::string input, variant, tree, workload, workloads, partition, form = "text", output;
  std::uint64_t seed = 0;
  int step = 1, chunk = -1, blocks = 0;
};

/// Persistent blocks of a large GPU: two on each of 132 multiprocessors.
constexpr int kBlocks = 264;

struct Subject {
  std::string name;
  tree::KvTree tree;
  std::vector<std::string> nodeNames;
};

Result<Subject> openTree(const Options &options) {
  if (options.workload.empty()) {
    auto document = tree::readTreeDocument(options.tree);
    if (!document)
      return document.error();
    return Subject{std::filesystem::path(options.tree).filename().string(), std::move(document->tree),
                   std::move(document->names)};
  }
  auto workload = workload::make(options.workload, options.seed, options.workloads);
  if (!workload)
    return workload.error();
  if (options.step > 1)
    if (auto sought = workload->seek(options.step); !sought)
      return sought.error();
  const std::string step = workload->steps() > 1 ? ", step " + std::to_string(workload->step()) : "";
  return Subject{workload->name() + step, workload->tree(), {}};
}

int planCommand(Context &context, const Options &options) {
  const auto program = openProgram(context, options.input, options.variant);
  if (!program)
    return reportError(context, program.error());
  auto config = config::defaultConfig(program->variant());
  if (!config)
    return reportError(context, config.error());
  if (!options.partition.empty())
    config->partition = *config::partitionFromName(options.partition);
  if (options.chunk >= 0)
    config->chunkTokens = options.chunk;
  auto subject = openTree(options);
  if (!subject)
    return reportError(context, subject.error());
  auto report = reportPlan(std::move(subject->tree), plan::VariantFacts::of(program->variant()), *config,
                           options.blocks > 0 ? options.blocks : kBlocks);
  if (!report)
    return reportError(context, report.error());
  report->treeName = std::move(subject->name);
  report->nodeNames = std::move(subject->nodeNames);
  report->variantName = program->variant().name;

  std::ostringstream text;
  if (options.form == "json")
    text << toJson(*report).dump(1) << '\n';
  else if (options.form == "svg")
    text << drawPlan(*report);
  else
    printPlan(*report, text);
  return writeOutput(context, options.output, text.str());
}

} // namespace

void addPlanCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("plan", "Show how a tree is cut into work, as text, JSON or a picture");
  auto options = std::make_shared<Options>();
  command
      ->add_option("SPEC", options->input,
                   "A spec, the name of a shipped one, or a package; SPEC#NAME chooses")
      ->required();
  command->add_option("--variant", options->variant, "The attention, when the file defines several");
  CLI::Option *tree = command->add_option("--tree", options->tree, "A tree file (JSON)");
  CLI::Option *workload =
      command->add_option("--workload", options->workload, "NAME or NAME:KEY=VALUE,...; see deftc workloads");
  tree->excludes(workload);
  command->add_option("--workloads", options->workloads, "The folder of recorded workloads")
      ->check(CLI::ExistingDirectory);
  command->add_option("--step", options->step, "Of the workload, from 1")->check(CLI::PositiveNumber);
  command->add_option("--seed", options->seed, "Of the workload");
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(spec::Partition::Auto); ++i)
    names.push_back(config::partitionName(static_cast<spec::Partition>(i)));
  command->add_option("--partition", options->partition, "By default as the schedule says")
      ->check(CLI::IsMember(names));
  command->add_option("--chunk", options->chunk, "Most tokens of an item; 0 fills the machine")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--blocks", options->blocks,
                   "Blocks at a time (CPU: threads); " + std::to_string(kBlocks) + " by default")
      ->check(CLI::PositiveNumber);
  command->add_option("--as", options->form, "text, json or svg")
      ->check(CLI::IsMember({"text", "json", "svg"}));
  command->add_option("-o,--output", options->output, "Write it to this file");
  command->footer("Example:\n  deftc plan llama3_8b --workload few_shot --as svg -o plan.svg");
  context.onRun(command, [&context, options] {
    if (options->tree.empty() && options->workload.empty())
      return reportError(
          context, {support::ErrorCode::Usage, "no tree to plan", "give --tree FILE or --workload NAME"});
    return planCommand(context, *options);
  });
}

} // namespace deft::cli
