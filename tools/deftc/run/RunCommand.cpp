#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/run/RunDump.h"
#include "tools/deftc/run/RunSession.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {

using support::ErrorCode;

namespace {

constexpr char kRunFooter[] = R"(Examples:
  deftc run llama3_8b --tree tree.json --check
where tree.json holds a prompt with two branches:
  {"format": "deftc-tree", "version": 1,
   "nodes": [{"parent": -1, "tokens": 200}, {"parent": 0, "tokens": 7},
             {"parent": 0, "tokens": 9}],
   "queries": [{"node": 1}, {"node": 2}]}

  deftc run llama3_8b --workload few_shot --steps 20 --partition node --check
`deftc workloads` lists the workloads and their parameters.

  deftc run my.deft --tree tree.json --dump out
writes q.npy, k.npy, v.npy, out.npy, lse.npy (float32; a token's place in k and v is that of
its node in tree.json), tree.json and spec.json, so that any program can check the result. An
attention that selects also has selected.npy and sparse_out.npy. You can run such a folder again,
no matter which program wrote it:
  deftc run my.deft --inputs out)";

int runCommand(Context &context, const RunOptions &options) {
  if (const auto writable = checkOutput(context, options.json); !writable)
    return reportError(context, writable.error());
  if (const auto dumped = checkDump(context, options.dump); !dumped)
    return reportError(context, dumped.error());
  if (const auto read = readsConfigs(context, options.config); !read)
    return reportError(context, read.error());
  const auto report = runSession(context, options);
  if (!report)
    return reportError(context, report.error());
  if (options.json != "-")
    printReport(*report, context.out);
  if (!options.json.empty())
    if (const int code = writeOutput(context, options.json, toJson(*report).dump(2) + "\n"); code != kExitOk)
      return code;
  if (report->check && report->check->rows > 0 && report->check->blindRows == report->check->rows)
    context.err << "warning: no row sees a token, so the check proves nothing: the mask hides all tokens, or "
                   "paths are empty\n";
  if (report->check && !report->check->passed())
    return reportError(context, {ErrorCode::Diagnostics,
                                 "the check failed: " + reference::explainFailure(*report->check), ""});
  if (report->selected && !report->selected->passed())
    return reportError(
        context, {ErrorCode::Diagnostics, "the check failed: " + explainFailure(*report->selected), ""});
  return kExitOk;
}

void addWhat(CLI::App &command, RunOptions &options) {
  addProgramOptions(command, options.input, options.variant);
  auto *what = command.add_option_group("tree", "What it runs on");
  CLI::Option *tree = what->add_option("--tree", options.tree, "A tree file (JSON)");
  what->add_option("--workload", options.workload, "A workload of `deftc workloads`")
      ->type_name(kWorkloadName);
  what->add_option("--inputs", options.inputs,
                   "A folder from --dump: tree, q, k, v and parameters; float32, little-endian");
  what->require_option(1);
  command.add_option("--workloads", options.recordsFolder, "A folder of recorded workloads")->excludes(tree);
  command.add_option("--steps", options.steps, "Number of workload steps")->check(atLeast(1));
  command.add_option("--seed", options.seed, "Seed of the workload, the inputs and the page order")
      ->check(seed());
  command
      .add_option("--param", options.params,
                  "NAME=VALUE, for an array the same value for every head, or NAME=FILE.npy")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void addHow(CLI::App &command, RunOptions &options) {
  command.add_option("--backend", options.backend, "Device; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option_function<std::string>(
          "--partition",
          [&](const std::string &name) { options.partition = config::partitionFromName(name); },
          "Partition; default: from the spec or the config")
      ->check(CLI::IsMember(spec::partitionNames()));
  command
      .add_option("--chunk", options.chunk, "Most tokens of an item; 0: as many blocks as the machine runs")
      ->check(atLeast(0));
  addConfigOption(command, options.config);
  addUntunedFlag(command, options.untuned);
  command.add_option("--pages", options.pages, "Page order in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}));
  command.add_option("--threads", options.threads, "CPU threads; default: all")->check(threads());
  command
      .add_option("--budget", options.budget,
                  "Sparse layers: tokens of a list, one of the spec's budgets; default: the first")
      ->check(atLeast(1));
  command.add_option("--repeat", options.repeat, "Timed runs of each step")->check(atLeast(1));
}

void addOutputs(CLI::App &command, RunOptions &options) {
  command
      .add_flag(
          "--check", options.check,
          "Compare each row with a float64 evaluation, then run counting inputs (keys of 0, a different "
          "value for each token), which detect tokens that are skipped or read twice; exit with 1 if wrong. "
          "On large trees check a sample for at most 30 s; --check=all checks everything")
      ->check(CLI::Validator(
          [](const std::string &given) {
            return given == "all" || given == "true" ? std::string() : "`" + given + "` is not `all`";
          },
          ""));
  command.add_option("--json", options.json, "Write the report to this file, - for the output");
  command.add_option("--dump", options.dump, "Write inputs and outputs of the last step into this folder");
}

} // namespace

void addRunCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("run", "Run a spec or a package on a tree or a workload, with random inputs");
  auto options = std::make_shared<RunOptions>();
  addWhat(*command, *options);
  addHow(*command, *options);
  addOutputs(*command, *options);
  command->footer(kRunFooter);
  context.onRun(command, [&context, options] { return runCommand(context, *options); });
}

} // namespace deft::cli
