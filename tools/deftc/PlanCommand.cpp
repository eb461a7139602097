#include "compiler/config/ConfigJson.h"
#include "compiler/config/DefaultConfig.h"
#include "compiler/spec/Names.h"
#include "compiler/target/Target.h"
#include "runtime/jit/CpuConfig.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/Commands.h"
#include "tools/deftc/PlanReport.h"
#include "tools/deftc/RunInput.h"
#include "tuner/workload/Workload.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <thread>

namespace deft::cli {

using support::Result;

namespace {

struct Options {
  std::string input, variant, tree, workload, workloads, partition, form = "text", output, backend = "cuda",
                                                                    arch;
  std::uint64_t seed = 0;
  int step = 1, chunk = -1, blocks = 0;
};

/// What a large GPU runs at a time: two blocks on each of 132 multiprocessors, or one of the sm90 family.
constexpr int kMultiprocessors = 132;
constexpr int kBlocks = 2 * kMultiprocessors;

struct Machine {
  config::Config config;
  int blocks = 0;
};

/// The config that the machine's plans are made with, and how many blocks it runs at a time.
Result<Machine> chooseMachine(const spec::Variant &variant, const Options &options) {
  if (options.backend == "cpu") {
    const int threads = options.blocks > 0
                            ? options.blocks
                            : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    auto config = jit::cpuConfig(variant, threads);
    if (!config)
      return config.error();
    return Machine{std::move(*config), threads};
  }
  const target::Target *target = options.arch.empty() ? nullptr : target::findTarget(options.arch);
  if (!options.arch.empty() && !target)
    return support::Error{support::ErrorCode::Usage, "unknown architecture `" + options.arch + "`",
                          "deftc knows " + target::targetNames()};
  auto config = target ? config::defaultConfig(variant, *target) : config::defaultConfig(variant);
  if (!config)
    return config.error();
  const bool isSm90 = config->phases.front().family == config::Family::Sm90;
  const int blocks = options.blocks > 0 ? options.blocks : isSm90 ? kMultiprocessors : kBlocks;
  return Machine{std::move(*config), blocks};
}

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
  auto machine = chooseMachine(program->variant(), options);
  if (!machine)
    return reportError(context, machine.error());
  config::Config &config = machine->config;
  if (!options.partition.empty())
    config.partition = *config::partitionFromName(options.partition);
  if (options.chunk >= 0)
    config.chunkTokens = options.chunk;
  auto subject = openTree(options);
  if (!subject)
    return reportError(context, subject.error());
  auto report = reportPlan(std::move(subject->tree), plan::VariantFacts::of(program->variant()), config,
                           machine->blocks);
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
  command->add_option("--partition", options->partition, "By default as the schedule says")
      ->check(CLI::IsMember(spec::partitionNames()));
  command->add_option("--chunk", options->chunk, "Most tokens of an item; 0 fills the machine")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--blocks", options->blocks,
                   "Blocks at a time; by default those of a GPU of " + std::to_string(kMultiprocessors) +
                       " multiprocessors, or this machine's threads")
      ->check(CLI::PositiveNumber);
  command->add_option("--backend", options->backend, "Whose plan; cuda by default")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--arch", options->arch,
                      "The GPU architecture, like sm_90a; by default what is legal on all of them");
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
