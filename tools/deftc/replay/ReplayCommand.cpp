#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "runtime/device/Device.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/plan/report/PlanPage.h"
#include "runtime/plan/report/PlanReport.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Words.h"
#include "tools/deftc/plan/PlanText.h"
#include "tools/deftc/replay/ReplayProgram.h"
#include "tools/deftc/replay/ReplayStep.h"
#include "tools/deftc/run/RunSession.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <ostream>
#include <span>

namespace deft::cli {

using support::ErrorCode;
using support::Result;

namespace {

struct ReplayOptions {
  std::string path, program, output, html;
  std::string check = "true"; ///< "all": everything; "none"
  bool isRandom = false, choosesConfig = false;
  RunOptions run;
};

/// Whether this machine has a device of the captured kind: then the captured config comes first.
bool isConfigWanted(const ReplayOptions &options, const capture::Step &step, const std::string &backend) {
  const bool isCpu = step.device.kind == config::DeviceKind::Cpu;
  return options.run.config.empty() && !options.run.untuned && !options.choosesConfig &&
         isCpu == (backend == "cpu");
}

/// Which backend the run will have, before it is opened.
Result<std::string> backendOf(const ReplayOptions &options) {
  if (!options.run.backend.empty())
    return options.run.backend;
  return std::string(device::Device::open() ? "cuda" : "cpu");
}

Result<RunReport> run(Context &context, ReplayOptions &options, const ReplayStep &replay) {
  auto params = paramsOf(context, replay, options.run.params);
  if (!params)
    return params.error();
  const auto backend = backendOf(options);
  if (!backend)
    return backend.error();
  RunOptions &own = options.run;
  own.backend = *backend;
  own.inputs = replay.tensors;
  own.pages = replay.place.isAsCaptured ? "as captured" : "in-order";
  own.check = options.check == "none" ? "" : options.check;
  own.isInvariant = replay.step.plan.isInvariant;
  own.mayChangeConfig = own.config.empty();
  if (replay.step.run && replay.variant().select && own.budget == 0)
    own.budget = replay.step.run->budget;
  GivenStep step{replay.path, replay.tree, replay.place.cache, std::move(*params), {}};
  if (isConfigWanted(options, replay.step, *backend))
    step.config = replay.step.config;
  return runGiven(context, own, replay.program, std::move(step));
}

Result<plan::PlanReport> planOf(const ReplayStep &replay, const RunReport &report,
                                const std::vector<exec::ParamValue> &params) {
  const bool isCpu = report.backend == "cpu";
  const auto kind = isCpu ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
  const auto facts = plan::VariantFacts::of(replay.variant(), kind, exec::reachOf(replay.variant(), params));
  auto planned =
      plan::reportPlan(replay.tree, facts, report.config, isCpu ? report.config.cost : report.kernelPrices,
                       report.blocks, {.isInvariant = replay.step.plan.isInvariant});
  if (!planned)
    return planned.error();
  planned->treeName = replay.path;
  planned->variantName = replay.variant().name;
  planned->machineName = "this one, " + report.device;
  return planned;
}

/// The page of the plan, with the times that are known.
std::string pageOf(const ReplayStep &replay, const RunReport &report, const plan::PlanReport &planned) {
  plan::PagePlan shown{&planned, rulingText(report.ruling), "replayed", {}};
  shown.facts.push_back({"measured", rounded(report.times.medianUs, 1) + " us",
                         "median of " + std::to_string(report.times.repeats)});
  if (replay.step.runUs)
    shown.facts.push_back(
        {"captured run", rounded(*replay.step.runUs, 1) + " us", replay.step.device.text()});
  return plan::planPage(std::span(&shown, 1));
}

/// The captured config, where it was to be used and was not.
std::string rejectedText(const RunReport &report) {
  for (const config_cache::Rejected &rejected : report.ruling.rejected)
    if (!rejected.entry)
      return "the captured config cannot be used here: " + rejected.reason;
  return {};
}

int writeProgram(Context &context, const ReplayOptions &options, const ReplayStep &replay) {
  const auto params = paramsOf(context, replay, options.run.params);
  if (!params)
    return reportError(context, params.error());
  const auto text = options.program == "cpp" ? cppProgram(replay, *params) : pythonProgram(replay, *params);
  if (!text)
    return reportError(context, text.error());
  return writeOutput(context, options.output, *text);
}

int replayCommand(Context &context, ReplayOptions &options) {
  for (const std::string &path : {options.output, options.run.json, options.html})
    if (const auto writable = checkOutput(context, path); !writable)
      return reportError(context, writable.error());
  if (options.program.empty() && !options.output.empty())
    return reportError(context, {ErrorCode::Usage, "-o names a file for a program, but --program is missing",
                                 "--program cpp or --program python"});
  if (const auto read = readsConfigs(context, options.run.config); !read)
    return reportError(context, read.error());
  const auto replay = openStep(context, options.path, options.isRandom);
  if (!replay)
    return reportError(context, replay.error());
  if (!options.program.empty())
    return writeProgram(context, options, *replay);
  const auto report = run(context, options, *replay);
  if (!report)
    return reportError(context, report.error());
  const auto params = paramsOf(context, *replay, options.run.params);
  const auto planned = planOf(*replay, *report, *params);
  if (!planned)
    return reportError(context, planned.error());
  if (!options.html.empty())
    if (const int code = writeOutput(context, options.html, pageOf(*replay, *report, *planned));
        code != kExitOk)
      return code;
  if (options.run.json != "-" && options.html != "-") {
    context.out << stepText(*replay) << '\n';
    printReport(*report, context.out);
    context.out << '\n';
    printPlan(*planned, rulingText(report->ruling), context.out);
  }
  if (const std::string rejected = rejectedText(*report); !rejected.empty())
    context.err << "warning: " << printable(rejected) << '\n';
  if (!options.run.json.empty()) {
    nlohmann::json all = {{"format", "deftc-replay"},
                          {"version", 1},
                          {"run", toJson(*report)},
                          {"plan", toJson(*planned)},
                          {"differences", differencesOf(*replay)}};
    if (const int code = writeOutput(context, options.run.json, all.dump(2) + "\n"); code != kExitOk)
      return code;
  }
  if (report->check && !report->check->passed())
    return reportError(context, {ErrorCode::Diagnostics,
                                 "the check failed: " + reference::explainFailure(*report->check), ""});
  if (report->selected && !report->selected->passed())
    return reportError(
        context, {ErrorCode::Diagnostics, "the check failed: " + explainFailure(*report->selected), ""});
  return kExitOk;
}

void addRunOptions(CLI::App &command, ReplayOptions &options) {
  RunOptions &run = options.run;
  command.add_option("--backend", run.backend, "Device; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--check", options.check, "`all` checks everything, `none` nothing; default: a sample")
      ->check(CLI::IsMember({"all", "none"}));
  command.add_option("--repeat", run.repeat, "Timed runs")->check(atLeast(1));
  command.add_option("--threads", run.threads, "CPU threads; default: all")->check(threads());
  command.add_option("--seed", run.seed, "Seed of random values")->check(seed());
  command.add_flag("--random", options.isRandom, "Random values, even if tensors were captured");
  command.add_option("--param", run.params, "NAME=VALUE or NAME=FILE.npy, in place of captured values")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option_function<std::string>(
          "--partition", [&](const std::string &name) { run.partition = config::partitionFromName(name); },
          "Partition, in place of the config's")
      ->check(CLI::IsMember(spec::partitionNames()));
  command.add_option("--chunk", run.chunk, "Most tokens of an item; 0 fills the machine")->check(atLeast(0));
  addConfigOption(command, run.config);
  addUntunedFlag(command, run.untuned);
  command
      .add_flag("--choose", options.choosesConfig,
                "The config that `deftc run` would choose here; by default the captured one, on a device of "
                "its kind")
      ->excludes("--config")
      ->excludes("--untuned");
}

} // namespace

void addReplayCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "replay", "Run a captured step again: check it, time it, show its plan, make a program of it");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("FILE", options->path, "A step written by DEFT_CAPTURE=FOLDER or deft.capture()")
      ->required();
  addRunOptions(*command, *options);
  command->add_option("--json", options->run.json, "Write the report to this file, - for the output");
  command->add_option("--html", options->html, "Write the plan as a page for a browser to this file");
  command
      ->add_option("--program", options->program,
                   "Write a program of the step in place of running it: `cpp` or `python`")
      ->check(CLI::IsMember({"cpp", "python"}));
  command->add_option("-o,--output", options->output, "Write the program to this file");
  command->footer("Examples:\n  deftc replay steps/step_4711_00001.json\n"
                  "  deftc replay steps/step_4711_00001.json --program python -o step.py\n"
                  "`DEFT_CAPTURE=steps my_program` writes such files.");
  context.onRun(command, [&context, options] { return replayCommand(context, *options); });
}

} // namespace deft::cli
