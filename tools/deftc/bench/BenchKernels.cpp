#include "tools/deftc/bench/BenchKernels.h"

#include "compiler/spec/Names.h"
#include "compiler/support/AtomicFile.h"
#include "tools/deftc/bench/BenchReport.h"
#include "tools/deftc/bench/BenchTable.h"
#include "tools/deftc/bench/BenchVariants.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {

using bench::KernelRow;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error inRow(std::string_view row, const Error &error) {
  return {error.code, std::string(row) + ": " + error.message, error.hint};
}

/// Suites one after the other, a line a row as they come.
class Suites {
public:
  Suites(Context &context, const KernelBenchFlags &flags, BenchMachine &machine)
      : context_(context), flags_(flags), machine_(machine) {}

  Result<void> run(const BenchSuite &suite) {
    context_.out << "\n"
                 << suite.name << " on " << machine_.device().facts().name << ", cold L2, median of "
                 << flags_.repeats << " graph replays\n"
                 << rowHead(flags_);
    std::vector<RowRun> &rows = report_.suites.emplace_back(SuiteRuns{suite.name, {}}).rows;
    int at = 0;
    for (const KernelRow &row : suite.rows) {
      ++at;
      if (!flags_.only.empty() && row.name.find(flags_.only) == std::string_view::npos)
        continue;
      if (const std::string missing = machine_.missing(row); !missing.empty()) {
        context_.out << row.name << ": left out, " << missing << '\n';
        continue;
      }
      showProgress(suite, row, at);
      auto ran = machine_.measure(row);
      wipeProgress();
      if (!ran)
        return inRow(row.name, ran.error());
      if (!ran->wrong().empty())
        ++wrong_;
      context_.out << rowLine(*ran, flags_) << std::flush;
      rows.push_back(std::move(*ran));
      if (auto kept = keepSoFar(); !kept)
        return kept;
    }
    context_.out << summaryText(bench::summarize(scoresOf(rows)));
    return {};
  }

  Result<void> runVariants() {
    auto runs = benchVariants(context_, flags_, machine_);
    if (!runs)
      return runs.error();
    for (const VariantRun &run : *runs)
      wrong_ += run.isRight ? 0 : 1;
    report_.variants = std::move(*runs);
    return keepSoFar();
  }

  /// Sums up all rows with a peer, where there are several suites of them.
  void printTotal() {
    std::vector<bench::RowScore> scores;
    int suites = 0;
    for (const SuiteRuns &suite : report_.suites) {
      if (suite.name != "fasttree" && suite.name != "deft")
        continue;
      const auto more = scoresOf(suite.rows);
      scores.insert(scores.end(), more.begin(), more.end());
      suites += !more.empty();
    }
    if (suites > 1)
      context_.out << "\nfasttree and deft together\n" << summaryText(bench::summarize(scores));
  }

  /// All of it, into the file or to the output.
  int write() {
    report_.isComplete = true;
    return flags_.json.empty() ? kExitOk : writeOutput(context_, flags_.json, text());
  }
  int wrong() const { return wrong_; }

private:
  std::string text() const { return toJson(report_, flags_, machine_).dump(1) + "\n"; }

  /// Suites take minutes: who stops one, or loses the machine, has the rows that were measured.
  Result<void> keepSoFar() const {
    const bool isFile = !flags_.json.empty() && flags_.json != "-";
    return isFile ? support::writeFileAtomically(flags_.json, text()) : Result<void>();
  }

  /// What runs now; rows take a second or more.
  void showProgress(const BenchSuite &suite, const KernelRow &row, int at) {
    if (context_.errIsTerminal)
      context_.err << '\r' << suite.name << " " << at << " of " << suite.rows.size() << ": " << row.name
                   << "\033[K" << std::flush;
  }
  void wipeProgress() {
    if (context_.errIsTerminal)
      context_.err << "\r\033[K" << std::flush;
  }

  Context &context_;
  const KernelBenchFlags &flags_;
  BenchMachine &machine_;
  BenchReport report_;
  int wrong_ = 0;
};

} // namespace

void addKernelFlags(CLI::App *command, KernelBenchFlags &flags) {
  command->add_option("SPEC", flags.specs,
                      "Specs or packages with the rows' attentions (tests/bench/*.deft of deftc's sources)");
  command->add_option("--workloads", flags.workloads, "The folder of recorded workloads");
  command->add_option("--only", flags.only, "Rows whose name contains this");
  command->add_option("--partition", flags.partition, "Partition, in place of the config's")
      ->check(CLI::IsMember(spec::partitionNames()));
  command->add_option("--chunk", flags.chunk, "Most tokens of an item; 0: as many blocks as the machine runs")
      ->check(atLeast(0));
  command->add_option("--tile", flags.tileQ, "Most rows of an item")->check(atLeast(1));
  command->add_option("--repeat", flags.repeats, "Timed runs of each row")->check(atLeast(1));
  command->add_option("--seed", flags.seed, "Seed of the inputs and the page order")->check(seed());
  addConfigOption(*command, flags.config);
  addUntunedFlag(*command, flags.untuned);
  command->add_flag("--quick", flags.quick,
                    "No warm L2, no scattered pages, variants once in place of three times");
  command->add_flag("--explore", flags.explore, "Also try every chunk and tile size, and print the fastest");
  command->add_option("--commit", flags.commit, "Commit of the sources, for the report");
  command
      ->add_option_function<std::vector<std::string>>(
          "--json",
          [&flags](const std::vector<std::string> &file) {
            flags.json = file.empty() || file[0].empty() ? "-" : file[0];
          },
          "Write the report to this file; default, or -: the output")
      ->expected(0, 1)
      ->type_name("[FILE]");
}

int benchKernels(Context &context, const KernelBenchFlags &flags, const std::vector<BenchSuite> &suites,
                 bool withVariants) {
  if (flags.specs.empty())
    return reportError(context,
                       {ErrorCode::Usage, "SPEC is required",
                        "give a spec, like tests/bench/kernel_rows.deft of deftc's sources, or a package"});
  if (const auto writable = checkOutput(context, flags.json); !writable)
    return reportError(context, writable.error());
  if (const auto read = context.files.readsFolder(flags.workloads); !read)
    return reportError(context, read.error());
  if (const auto read = readsConfigs(context, flags.config); !read)
    return reportError(context, read.error());
  auto machine = BenchMachine::open(context, flags);
  if (!machine)
    return reportError(context, machine.error());
  context.out << ceilingsText((*machine)->yardstick());
  Suites all(context, flags, **machine);
  for (const BenchSuite &suite : suites)
    if (auto ran = all.run(suite); !ran)
      return reportError(context, ran.error());
  all.printTotal();
  if (withVariants)
    if (auto ran = all.runVariants(); !ran)
      return reportError(context, ran.error());
  if (const int code = all.write(); code != kExitOk)
    return code;
  if (all.wrong() > 0)
    return reportError(context,
                       {ErrorCode::Diagnostics, counted(all.wrong(), "row is", "rows are") + " wrong", ""});
  return kExitOk;
}

} // namespace deft::cli
