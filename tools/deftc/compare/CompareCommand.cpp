#include "compiler/spec/Names.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/compare/CompareSession.h"
#include "tools/deftc/compare/CompareText.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {
namespace {

constexpr char kCompareFooter[] = R"(Examples:
  deftc compare llama3_8b --workload few_shot
      (all partitions, with the tuned config, if any, and the untuned one)
  deftc compare llama3_8b mine.json theirs.json --check
      (the same on your own trees: tree files may stand anywhere)
  deftc compare my.deft other.deft tree.json --partition auto,node
      (two specs side by side; packages likewise)
Rows of one tree are timed in turn, round by round. `--config FILE` replaces tuned configs.)";

int compareCommand(Context &context, const CompareOptions &options) {
  if (const auto writable = checkOutput(context, options.json); !writable)
    return reportError(context, writable.error());
  if (const auto read = readsConfigs(context, options.config); !read)
    return reportError(context, read.error());
  const auto report = compareSession(context, options);
  if (!report)
    return reportError(context, report.error());
  if (options.json != "-")
    printCompare(*report, context.out);
  if (!options.json.empty())
    if (const int code = writeOutput(context, options.json, toJson(*report).dump(2) + "\n"); code != kExitOk)
      return code;
  if (!report->isRight())
    return reportError(context, {support::ErrorCode::Diagnostics, "the check of a row failed", ""});
  return kExitOk;
}

} // namespace

void addCompareCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "compare", "Time all partitions, tuned and untuned, of your trees; specs and packages side by side");
  auto options = std::make_shared<CompareOptions>();
  command
      ->add_option("INPUT", options->inputs,
                   "Specs, names of shipped ones, packages, SPEC#NAME; and tree files")
      ->type_name(kSpecOrFile)
      ->required();
  addTreeOptions(*command, options->tree);
  command->add_option("--partition", options->partitions, "Compare only these partitions with the chosen one")
      ->delimiter(',')
      ->check(CLI::IsMember(spec::partitionNames()));
  command->add_option("--backend", options->backend, "Device; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  addConfigOption(*command, options->config);
  command
      ->add_option("--param", options->params,
                   "NAME=VALUE, as for `deftc run`, for each spec with a parameter of that name")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--pages", options->pages, "Page order in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}));
  command->add_option("--threads", options->threads, "CPU threads; default: all")->check(threads());
  command
      ->add_option("--rounds", options->rounds,
                   "Rounds of timing; default: as many as fit into 20 s, 3 to 15")
      ->check(atLeast(1));
  command->add_flag("--check", options->isChecked,
                    "Compare a sample of each row's queries with a float64 evaluation; exit 1 when wrong");
  command->add_option("--json", options->json, "Write the report to this file, - for the output");
  command->footer(kCompareFooter);
  context.onRun(command, [&context, options] { return compareCommand(context, *options); });
}

} // namespace deft::cli
