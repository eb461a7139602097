#include "compiler/support/AtomicFile.h"
#include "compiler/support/Utf8.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/tune/CatchInterrupts.h"
#include "tools/deftc/tune/TuneCalibrate.h"
#include "tools/deftc/tune/TuneSparse.h"
#include "tools/deftc/tune/TuneSummary.h"
#include "tuner/session/NamedSamples.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr char kTuneFooter[] = R"(Examples:
  deftc tune llama3_8b --workload few_shot --backend cpu --budget 60s
  deftc tune my.deftpkg --workload reasoning --workload speculative --backend cuda
  deftc tune my.deft --tree tree.json --axis partition=union,greedy --axis chunk_tokens=0,512
  deftc tune --calibrate --backend cpu     (a minute, for a machine without tuned configs)
  deftc tune my.deft --sparse              (a minute, on a GPU, for an attention that selects)
  deftc tune my.deft --workload all --shard 2/8 --journal shard-2.jsonl     (one of eight processes)
Families of trees, each several workloads at several sizes: few_shot, reasoning, speculative,
multi_level, multi_document, no_sharing, forest; `all` is all of them. `rows` has the trees of
`deftc bench`'s tables. A name with parameters, as for `deftc workloads`, is only that workload.

An attention that selects has sparse layers, which read lists of tokens. On a GPU their tile and the cut of
their lists are tuned after the trees, within the same budget (a quarter of it, up to a minute).

The configs are stored for this device, and `deftc run` and `deftc plan` use them. The same command resumes
a session that ended early by its budget, Ctrl-C (exit code 130) or a crash.)";

struct TuneFlags {
  std::string input, variant, recordsFolder, backend, strategy = "guided", pages = "scattered";
  std::string journal, report, record, configFile, note;
  std::optional<std::string> budget, shard;
  std::vector<std::string> trees, workloads, params, axes;
  std::uint64_t seed = 0;
  int threads = 0, compilers = 0, candidates = 0, treesOfClass = 3;
  bool isFresh = false, fromRelated = false, asGiven = false, isCalibrating = false, isSparseAlone = false;
};

/// "90s", "5m", "1h", "90".
Result<double> parseSeconds(const std::string &text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  constexpr double kMostSeconds = 1e9; // thirty years
  if (error != std::errc() || factor == 0 || !(value > 0) || !(value * factor <= kMostSeconds))
    return Error{ErrorCode::Usage, "`" + text + "` is no time", "write 60s, 5m or 1h"};
  return value * factor;
}

Result<std::vector<session::Sample>> makeSamples(Context &context, const spec::Variant &variant,
                                                 const TuneFlags &options) {
  const Underway underway(context, "making trees"); // gone before a child is forked
  std::vector<session::Sample> samples;
  for (const std::string &path : options.trees) {
    auto tree = tree::readTreeFile(path);
    if (!tree)
      return tree.error();
    samples.push_back({path, 0, std::move(*tree), false});
  }
  for (const std::string &workload : options.workloads)
    if (auto named = session::namedSamples(workload, variant, options.seed, options.recordsFolder); !named)
      return named.error();
    else
      std::move(named->begin(), named->end(), std::back_inserter(samples));
  return samples;
}

/// A GPU where one was asked for, or where nothing was and there is one. A child asks, because a process that
/// has used CUDA cannot give it to its children.
Result<session::Backend> chooseBackend(const program::Program &program, const TuneFlags &options,
                                       int threads) {
  if (options.backend == "cuda")
    return session::cudaBackend(program);
  if (options.backend.empty() && measure::hasCuda())
    return session::cudaBackend(program);
  return session::cpuBackend(program, threads);
}

/// What --axis and --budget say; seconds stay where there is no budget.
Result<void> readAxesAndBudget(const TuneFlags &options, std::vector<space::AxisOverride> &axes,
                               double &seconds) {
  for (const std::string &text : options.axes) {
    auto axis = space::parseOverride(text);
    if (!axis)
      return axis.error();
    axes.push_back(std::move(*axis));
  }
  if (!options.budget)
    return {};
  const auto given = parseSeconds(*options.budget);
  if (!given)
    return given.error();
  seconds = *given;
  return {};
}

Result<session::TuneOptions> tuneOptions(const TuneFlags &options, int threads) {
  session::TuneOptions tune;
  tune.strategy = *search::strategyFromName(options.strategy);
  if (auto read = readAxesAndBudget(options, tune.axes, tune.budgetSeconds); !read)
    return read.error();
  if (!options.record.empty() && tune.strategy != search::StrategyKind::Exhaustive)
    return Error{ErrorCode::Usage, "--record needs every point of the space", "add --strategy exhaustive"};
  tune.mostCandidates = options.candidates;
  tune.threads = threads;
  tune.compilers = options.compilers;
  tune.mostTrees = options.treesOfClass;
  tune.pages = options.pages == "in-order" ? tree::PlacementOrder::InOrder : tree::PlacementOrder::Scattered;
  tune.seed = options.seed;
  tune.journal = options.journal;
  tune.isFresh = options.isFresh;
  tune.fromRelated = options.fromRelated;
  if (options.shard) {
    const auto shard = session::parseShard(*options.shard);
    if (!shard)
      return shard.error();
    tune.shard = *shard;
  }
  tune.addsSimilar = !options.asGiven;
  tune.recordFolder = options.record;
  tune.places = config_cache::defaultPlaces();
  tune.configPath = options.configFile;
  tune.note = options.note;
  return tune;
}

std::string statusText(const session::Status &status) {
  if (status.stage == "compile")
    return "compiling, " + counted(status.left, "candidate's kernels", "candidates' kernels") + " left";
  std::string text = "class " + std::to_string(status.classIndex + 1) + " of " +
                     std::to_string(status.classes) + ", " + status.treeClass + ": ";
  if (status.stage == "search")
    text += std::to_string(status.measured) + " candidates measured, at most " + std::to_string(status.left) +
            " left";
  else
    text += status.stage == "final" ? "racing the best" : "confirming the winner";
  if (status.bestUs > 0)
    text += ", best " + rounded(status.bestUs, 1) + " us of " + rounded(status.untunedUs, 1) + " untuned (" +
            rounded(status.untunedUs / status.bestUs, 2) + "x)";
  if (status.secondsLeft >= 0)
    text += ", " + rounded(status.secondsLeft, 0) + " s left";
  return text;
}

/// Trees and outputs; openProgram and openParams register the other files.
Result<void> checkFiles(Context &context, const TuneFlags &options) {
  FilesInUse &files = context.files;
  for (const std::string &tree : options.trees)
    if (auto read = files.reads(tree); !read)
      return read;
  FilesInUse kept; // each of them is written, and neither is the other
  if (auto read = kept.reads(options.journal); !read)
    return read;
  if (auto free = kept.writes(options.configFile); !free)
    return free;
  for (const std::string &goneOnWith : {options.journal, options.configFile})
    if (auto read = files.reads(goneOnWith); !read)
      return read;
  if (auto read = files.readsFolder(options.recordsFolder); !read)
    return read;
  if (auto read = readsConfigs(context, ""); !read)
    return read;
  if (auto free = checkOutput(context, options.report); !free)
    return free;
  if (options.record.empty())
    return {};
  if (auto free = files.writesInto(options.record); !free)
    return free;
  return support::checkWritableFolder(options.record);
}

int runCalibrate(Context &context, const TuneFlags &options, const program::Program &program, int threads) {
  auto params = openParams(context, program.variant(), options.params);
  if (!params)
    return reportError(context, params.error());
  auto backend = chooseBackend(program, options, threads);
  if (!backend)
    return reportError(context, backend.error());
  calibrate::CalibrateOptions how;
  if (options.budget) {
    const auto seconds = parseSeconds(*options.budget);
    if (!seconds)
      return reportError(context, seconds.error());
    how.seconds = *seconds;
  }
  how.threads = threads;
  how.compilers = options.compilers;
  how.seed = options.seed;
  how.places = config_cache::defaultPlaces();
  return calibrateMachine(context, {program.variant(), std::move(*params), std::move(*backend)}, how);
}

Result<sparse::TuneOptions> sparseOptions(const TuneFlags &options, int threads) {
  sparse::TuneOptions tune;
  tune.threads = threads;
  tune.seed = options.seed;
  tune.isFresh = options.isFresh;
  tune.places = config_cache::defaultPlaces();
  tune.note = options.note;
  if (!options.isSparseAlone)
    return tune; // the others are about the trees
  tune.path = options.configFile;
  if (auto read = readAxesAndBudget(options, tune.axes, tune.seconds); !read)
    return read.error();
  return tune;
}

/// --sparse.
int runSparse(Context &context, const TuneFlags &options, const program::Program &program, int threads) {
  if (auto checked = sparse::checkSelects(program.variant()); !checked)
    return reportError(context, checked.error());
  if (options.backend == "cpu" || (options.backend.empty() && !measure::hasCuda()))
    return reportError(context, {ErrorCode::Usage, "sparse layers are tuned only on GPUs",
                                 "on processors they have no tiles or cuts"});
  auto params = openParams(context, program.variant(), options.params);
  if (!params)
    return reportError(context, params.error());
  const auto how = sparseOptions(options, threads);
  if (!how)
    return reportError(context, how.error());
  const auto report = tuneSparse(context, program, *params, *how);
  if (!report)
    return reportError(context, report.error());
  if (!options.report.empty())
    if (const int code = writeSparsePage(context, program, *report, options.report); code != kExitOk)
      return code;
  return exitCodeOf(*report);
}

int runTune(Context &context, const TuneFlags &options) {
  if (const auto inUse = checkFiles(context, options); !inUse)
    return reportError(context, inUse.error());
  if (options.input.empty() && !options.isCalibrating)
    return reportError(context, {ErrorCode::Usage, "SPEC is required", "except with --calibrate"});
  // What the prices of a machine are does not hang on the attention much.
  const auto program =
      openProgram(context, options.input.empty() ? "llama3_8b" : options.input, options.variant);
  if (!program)
    return reportError(context, program.error());
  const int threads = options.threads > 0 ? options.threads : exec::usableProcessors();
  if (options.isCalibrating)
    return runCalibrate(context, options, *program, threads);
  if (options.isSparseAlone)
    return runSparse(context, options, *program, threads);
  session::TuneInput input;
  input.variant = program->variant();
  auto samples = makeSamples(context, program->variant(), options);
  if (!samples)
    return reportError(context, samples.error());
  input.samples = std::move(*samples);
  auto params = openParams(context, program->variant(), options.params);
  if (!params)
    return reportError(context, params.error());
  input.params = std::move(*params);
  auto tuneWith = tuneOptions(options, threads);
  if (!tuneWith)
    return reportError(context, tuneWith.error());
  if (support::isUtf8(context.command)) // else the journal could not be written
    tuneWith->command = context.command;
  auto backend = chooseBackend(*program, options, threads);
  if (!backend)
    return reportError(context, backend.error());
  input.backend = std::move(*backend);
  // What is written elsewhere, is a recording or a shard, is about the trees alone.
  const bool hasSparse = input.variant.select && !input.variant.readsGivenLists() && input.backend.isGpu() &&
                         options.configFile.empty() && options.record.empty() && !options.shard;
  auto ofSparse = sparseOptions(options, threads);
  if (!ofSparse)
    return reportError(context, ofSparse.error());
  if (hasSparse && tuneWith->budgetSeconds > 0) {
    ofSparse->seconds = sparse::shareOfBudget(tuneWith->budgetSeconds);
    tuneWith->budgetSeconds -= ofSparse->seconds;
  }

  std::optional<CatchInterrupts> interrupts(std::in_place);
  Result<session::TuneReport> report = Error{};
  {
    Progress progress(context, "tuning");
    session::Listener listener;
    listener.progress = [&](const session::Status &status) { progress.say(statusText(status)); };
    listener.note = [&](const std::string &line) { progress.note(line); };
    listener.isCancelled = [] { return interruptedBy != 0; };
    report = session::tune(input, *tuneWith, listener);
  }
  if (!report)
    return reportError(context, report.error());
  printTuneSummary(*report, context.out);
  for (const std::string &warning : report->warnings)
    context.err << "warning: " << warning << '\n';
  const int notSaved = report->notSaved ? reportError(context, *report->notSaved) : kExitOk;
  const auto isDone = [](const session::ClassReport &one) { return one.isDone; };
  const bool hasNone = report->ended == measure::Ended::Complete && !report->classes.empty() &&
                       std::none_of(report->classes.begin(), report->classes.end(), isDone);
  int code = notSaved;
  if (code == kExitOk && hasNone)
    code = reportError(context, {ErrorCode::Environment, "no class could be tuned", ""});
  else if (code == kExitOk && report->ended == measure::Ended::Interrupted)
    code = kExitSignal + interruptedBy;
  if (code == kExitOk && hasSparse) {
    context.out << '\n';
    interrupts.reset(); // the next ones are for what comes
    if (const auto sparse = tuneSparse(context, *program, input.params, *ofSparse); !sparse) {
      code = reportError(context, sparse.error());
    } else {
      keepInJournal(context, *sparse, report->journal);
      code = exitCodeOf(*sparse);
    }
  }
  if (!options.report.empty())
    if (const int written = writeTuneReport(context, {report->journal}, options.report); written != kExitOk)
      return written;
  return code;
}

} // namespace

void addTuneCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("tune", "Find the fastest config for kinds of trees on this machine");
  auto options = std::make_shared<TuneFlags>();
  addProgramOptions(*command, options->input, options->variant);
  command->get_option("SPEC")->required(false); // of a calibration
  auto *what = command->add_option_group("trees", "What to tune for");
  what->add_option("--workload", options->workloads,
                   "A family of trees, a workload, or `all`; may be repeated")
      ->type_name(kWorkloadName)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_option("--tree", options->trees, "Tree files (JSON)");
  what->add_flag(
          "--calibrate", options->isCalibrating,
          "Time some dozen small plans and fit this machine's prices, by which untuned configs are chosen")
      ->excludes("--workload")
      ->excludes("--tree");
  what->add_flag(
          "--sparse", options->isSparseAlone,
          "Tune the sparse layers of an attention that selects, on a GPU; with --axis tile_kv, stages, warps")
      ->excludes("--workload")
      ->excludes("--tree")
      ->excludes("--calibrate");
  what->require_option(1, 0);
  command->add_option("--workloads", options->recordsFolder, "A folder of recorded workloads");
  command->add_option("--backend", options->backend, "Device to tune; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--budget", options->budget, "Time limit: 60s, 5m, 1h; a calibration's default is 60s");
  command->add_option("--report", options->report, "Write a report (HTML) to this file");
  command->add_option("--axis", options->axes, "NAME=VALUE,VALUE: try only these values; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--strategy", options->strategy, "Search strategy")
      ->check(CLI::IsMember({"guided", "random", "exhaustive"}))
      ->capture_default_str();
  command->add_option("--candidates", options->candidates, "Most candidates to measure for a class")
      ->check(atLeast(1));
  command->add_option("--trees-per-class", options->treesOfClass, "Trees to measure for a class")
      ->check(atLeast(1))
      ->capture_default_str();
  command->add_option("--pages", options->pages, "Page order in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}))
      ->capture_default_str();
  command->add_option("--param", options->params, "NAME=VALUE, as `deftc run` takes it")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--threads", options->threads, "CPU threads; default: all")->check(threads());
  command->add_option("--compilers", options->compilers, "Kernels to compile in parallel")
      ->check(between(1, exec::kMostThreads));
  command->add_option("--seed", options->seed, "Seed of workloads, inputs and the page order")->check(seed());
  command->add_option("--journal", options->journal, "The session's file, from which it resumes")
      ->check(keptFile());
  command
      ->add_option("--shard", options->shard,
                   "I/N: tune only the classes of shard I, from 0, of N, and only write the journal; `deftc "
                   "cache merge` joins the journals of all shards")
      ->type_name("I/N")
      ->excludes("--calibrate")
      ->excludes("--sparse");
  command->add_flag("--fresh", options->isFresh, "Start again instead of resuming from a journal");
  command->add_flag("--from-related", options->fromRelated,
                    "For classes with known configs, of this attention or one that differs only in type and "
                    "pages, only measure these again (on a GPU in each order); search other classes");
  command->add_flag(
      "--as-given", options->asGiven,
      "Tune for the given trees only; by default similar trees are added where a class has few");
  command
      ->add_option("--config-file", options->configFile,
                   "File for the configs; default: this device's file in the cache")
      ->check(keptFile())
      ->excludes("--shard");
  command->add_option("--note", options->note, "A remark to store with the configs")
      ->check(CLI::Validator(
          [](const std::string &text) { return support::isUtf8(text) ? std::string() : "it is not UTF-8"; },
          ""));
  command->add_option("--record", options->record,
                      "With --strategy exhaustive: write all times of each class into this folder");
  command->footer(kTuneFooter);
  context.onRun(command, [&context, options] { return runTune(context, *options); });
}

} // namespace deft::cli
