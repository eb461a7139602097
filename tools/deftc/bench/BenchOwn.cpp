#include "tools/deftc/bench/BenchOwn.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/device/Device.h"
#include "runtime/exec/cpu/Processors.h"
#include "tools/deftc/bench/BenchKernels.h"
#include "tools/deftc/bench/BenchReport.h"
#include "tools/deftc/bench/OwnRows.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/TreeInput.h"
#include "tools/deftc/run/RunSession.h"
#include "tuner/bench/GeometricMean.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace deft::cli {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct OwnOptions {
  KernelBenchFlags flags;
  std::vector<std::string> workloads, trees;
  std::string backend;
  int threads = 0; ///< of the CPU; 0: all
};

/// A row on a processor.
struct CpuRow {
  std::string name;
  RunReport run;
  double scatteredUs = 0; ///< with the same pages out of order; 0: not asked for

  double us() const { return run.times.medianUs; }
  /// What a plain read of the tokens that the plan reads takes; 0: not measured.
  double readUs() const { return run.readBandwidth > 0 ? run.readBytes() / run.readBandwidth * 1e6 : 0; }
};

constexpr int kWidth = 10;

std::string ratio(double value, double reference) {
  return value > 0 && reference > 0 ? rounded(value / reference, 2) : "-";
}

/// The table of one call.
struct CpuTable {
  const KernelBenchFlags &flags;
  int threads = 0;
  int nameWidth = 0; ///< of the first column

  std::string head() const {
    std::ostringstream text;
    text << "own on a processor, " << counted(threads, "thread", "threads") << ", median of " << flags.repeats
         << " runs one after the other\n"
         << std::left << std::setw(nameWidth) << "tree" << std::right;
    for (const char *column : {"us", "read us", "/read"})
      text << std::setw(kWidth) << column;
    if (!flags.quick)
      text << std::setw(kWidth) << "scatter";
    for (const char *column : {"items", "partials", "plan us"})
      text << std::setw(kWidth) << column;
    text << "  partition\n";
    return text.str();
  }

  std::string line(const CpuRow &row) const {
    const RunReport &run = row.run;
    std::ostringstream text;
    text << std::left << std::setw(nameWidth) << row.name << std::right << std::setw(kWidth)
         << rounded(row.us(), 1) << std::setw(kWidth) << rounded(row.readUs(), 1) << std::setw(kWidth)
         << ratio(row.us(), row.readUs());
    if (!flags.quick)
      text << std::setw(kWidth) << ratio(row.scatteredUs, row.us());
    text << std::setw(kWidth) << run.plan.items << std::setw(kWidth) << run.plan.partialSlots
         << std::setw(kWidth) << rounded(run.steps.back().planUs, 1) << "  "
         << config::partitionName(run.partition);
    if (run.ruling.rule() != config_cache::Rule::Heuristic)
      text << ", " << config_cache::ruleName(run.ruling.rule());
    if (run.isBoundByProducts)
      text << ", compute-bound";
    if (!run.check->passed())
      text << "  WRONG: " << reference::explainFailure(*run.check);
    return text.str() + "\n";
  }
};

CpuTable tableOf(const OwnOptions &options, const OwnRows &own) {
  CpuTable table{options.flags, options.threads > 0 ? options.threads : exec::usableProcessors()};
  for (const bench::KernelRow &row : own.rows())
    table.nameWidth = std::max(table.nameWidth, static_cast<int>(row.name.size()));
  return table;
}

json toJson(const CpuRow &row) {
  json object = {{"name", row.name},
                 {"us", row.us()},
                 {"read_us", row.readUs()},
                 {"right", row.run.check->passed()},
                 {"run", toJson(row.run)}};
  if (row.scatteredUs > 0)
    object["scattered_us"] = row.scatteredUs;
  return object;
}

/// As `deftc run` would run it, with what benches may be told.
RunOptions runOptions(const OwnOptions &options, const bench::KernelRow &row,
                      const OwnRows::Subject &subject) {
  RunOptions run;
  run.input = subject.spec;
  run.params = subject.params;
  run.tree = row.treeFile;
  run.workload = row.workload;
  run.recordsFolder = options.flags.workloads;
  run.backend = "cpu";
  run.config = options.flags.config;
  run.untuned = options.flags.untuned;
  if (!options.flags.partition.empty())
    run.partition = config::partitionFromName(options.flags.partition);
  run.chunk = options.flags.chunk;
  run.repeat = options.flags.repeats;
  run.seed = options.flags.seed;
  run.threads = options.threads;
  return run;
}

Result<CpuRow> measureOnCpu(Context &context, const OwnOptions &options, const bench::KernelRow &row,
                            const OwnRows::Subject &subject) {
  RunOptions run = runOptions(options, row, subject);
  run.check = "true";
  auto inOrder = runSession(context, run);
  if (!inOrder)
    return inOrder.error();
  CpuRow measured{std::string(row.name), std::move(*inOrder)};
  if (!options.flags.quick && measured.run.variant.cache.isPaged()) {
    run.check = "";
    run.pages = "scattered";
    const auto scattered = runSession(context, run);
    if (!scattered)
      return scattered.error();
    measured.scatteredUs = scattered->times.medianUs;
  }
  return measured;
}

int benchOnCpu(Context &context, const OwnOptions &options, const OwnRows &own) {
  const KernelBenchFlags &flags = options.flags;
  const CpuTable table = tableOf(options, own);
  std::ostringstream unread; // with --json - the output has the report alone
  std::ostream &out = flags.json == "-" ? unread : context.out;
  out << table.head();
  bench::GeometricMean overRead;
  json rows = json::array();
  int wrong = 0;
  for (std::size_t at = 0; at < own.rows().size(); ++at) {
    const bench::KernelRow &row = own.rows()[at];
    if (!flags.only.empty() && row.name.find(flags.only) == std::string_view::npos)
      continue;
    const auto measured = measureOnCpu(context, options, row, own.subjectOf(at));
    if (!measured)
      return reportError(context,
                         {measured.error().code, std::string(row.name) + ": " + measured.error().message,
                          measured.error().hint});
    out << table.line(*measured) << std::flush;
    wrong += measured->run.check->passed() ? 0 : 1;
    if (measured->readUs() > 0)
      overRead.add(measured->us() / measured->readUs());
    rows.push_back(toJson(*measured));
  }
  if (overRead.count() > 0)
    out << "  " << rounded(overRead.value(), 2)
        << " times a plain read of the same tokens in the geometric mean of "
        << counted(overRead.count(), "row", "rows") << "\n";
  if (!flags.json.empty()) {
    json report = headOfReport(flags);
    report["complete"] = true;
    report["device"] = {{"name", config_cache::cpuModelName()}, {"threads", table.threads}};
    report["suites"] = json::array({{{"name", "own"}, {"rows", rows}}});
    if (const int code = writeOutput(context, flags.json, report.dump(1) + "\n"); code != kExitOk)
      return code;
  }
  if (wrong > 0)
    return reportError(context,
                       {ErrorCode::Diagnostics, counted(wrong, "row is", "rows are") + " wrong", ""});
  return kExitOk;
}

/// On a processor some of what a GPU's bench may be told would do nothing.
Result<void> checkForCpu(const KernelBenchFlags &flags) {
  const char *option = flags.explore ? "--explore" : flags.tileQ > 0 ? "--tile" : nullptr;
  if (option)
    return Error{ErrorCode::Usage, "`" + std::string(option) + "` is for GPUs, but this runs on a processor",
                 "`deftc compare` and `deftc tune` try other partitions there"};
  return {};
}

int benchOwn(Context &context, OwnOptions options) {
  // A tree file may stand anywhere among the specs, as for `compare`.
  std::vector<std::string> specs;
  for (std::string &input : options.flags.specs)
    (isTreeFile(input) ? options.trees : specs).push_back(std::move(input));
  options.flags.specs = std::move(specs);
  if (options.flags.specs.empty())
    return reportError(context,
                       {ErrorCode::Usage, "SPEC is required", "give a spec, like llama3_8b, or a package"});
  if (options.workloads.empty() && options.trees.empty())
    return reportError(context,
                       {ErrorCode::Usage, "no tree is given", "give a tree file or --workload NAME"});
  const auto rows = OwnRows::make(context, options.flags.specs, options.workloads, options.trees);
  if (!rows)
    return reportError(context, rows.error());
  const bool isOnGpu = options.backend == "cuda" || (options.backend.empty() && device::Device::open());
  if (isOnGpu)
    return benchKernels(context, options.flags, {{"own", rows->rows()}}, false);
  if (const auto usable = checkForCpu(options.flags); !usable)
    return reportError(context, usable.error());
  if (const auto writable = checkOutput(context, options.flags.json); !writable)
    return reportError(context, writable.error());
  if (const auto read = readsConfigs(context, options.flags.config); !read)
    return reportError(context, read.error());
  return benchOnCpu(context, options, *rows);
}

} // namespace

void addBenchOwn(CLI::App &bench, Context &context) {
  CLI::App *command = bench.add_subcommand(
      "own", "Your attentions on your trees, with a GPU's floor or a processor's plain read");
  auto options = std::make_shared<OwnOptions>();
  addKernelFlags(command, options->flags);
  command->get_option("SPEC")
      ->description("Specs or packages with an attention each; and tree files")
      ->type_name(kSpecOrFile);
  command->add_option("--workload", options->workloads, "A workload of `deftc workloads`; may be repeated")
      ->type_name(kWorkloadName)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--tree", options->trees, "A tree file (JSON); may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--backend", options->backend, "Device; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--threads", options->threads, "CPU threads; default: all")->check(threads());
  command->footer("Examples:\n  deftc bench own my.deft tree.json --workload few_shot:branches=20\n"
                  "  deftc bench own llama3_8b --workload few_shot --backend cpu\n"
                  "`deftc compare` puts partitions and specs side by side.");
  context.onRun(command, [&context, options] { return benchOwn(context, *options); });
}

} // namespace deft::cli
