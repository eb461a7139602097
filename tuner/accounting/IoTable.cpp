#include "tuner/accounting/IoTable.h"

#include "runtime/plan/Planner.h"
#include "tuner/workload/RecordFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

namespace deft::accounting {

using support::Error;
using support::ErrorCode;
using support::Result;
using workload::Workload;

namespace {

/// The paper's figures, TB per run.
struct PaperRow {
  const char *name;
  double sharedTb, queryTb;
};
constexpr std::array<PaperRow, 3> kFewShot{{{"20", 1.68, 17.62}, {"30", 2.10, 26.43}, {"50", 2.94, 44.05}}};
constexpr std::array<PaperRow, 4> kReasoning{{{"reasoning_sorting", 12.40, 59.96},
                                              {"reasoning_document", 10.57, 39.74},
                                              {"reasoning_keyword", 0.58, 4.68},
                                              {"reasoning_set", 1.04, 7.01}}};
constexpr std::array<PaperRow, 4> kSpeculative{{{"speculative_t32", 4.10, 131.45},
                                                {"speculative_t64", 4.11, 256.79},
                                                {"speculative_t128", 4.16, 522.05},
                                                {"speculative_t256", 4.35, 1044.10}}};

constexpr int kPromptTokens = 4000; ///< the paper pads prompts of few-shot and speculation to this length
constexpr int kFlattenChunk = 128;  ///< the paper's
constexpr int kBlocks = 108;        ///< of the paper's A100; no byte of the cache depends on it

config::Config configOf(spec::Partition partition, int queries) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = kFlattenChunk;
  config.phases.resize(1);
  config.phases[0].tileQ = (std::max(queries, 1) + 15) / 16 * 16;
  return config;
}

plan::IoBytes times(const plan::IoBytes &bytes, int count) {
  plan::IoBytes sum;
  for (int i = 0; i < count; ++i)
    sum += bytes;
  return sum;
}

plan::IoBytes divided(const plan::IoBytes &sum, int count) {
  return {sum.cache / count,    sum.cacheOnce / count, sum.queries / count, sum.outputs / count,
          sum.partials / count, sum.masks / count,     sum.work / count};
}

/// The number of runs in a record, and the parameter that selects one.
struct Runs {
  int count = 0;
  const char *parameter = "";
};
Result<Runs> runsOf(const std::string &path) {
  const auto file = workload::readRecordFile(path);
  if (!file)
    return file.error();
  if (const auto *trees = std::get_if<workload::RecordedTrees>(&*file))
    return Runs{static_cast<int>(trees->trees.size()), "tree"};
  return Runs{static_cast<int>(std::get<workload::TokenTreeRecords>(*file).records.size()), "record"};
}

class Table {
public:
  Table(const std::string &folder, const Progress &progress) : folder_(folder), progress_(progress) {}

  Result<std::vector<IoGroup>> count() {
    std::vector<IoGroup> groups(3);
    groups[0] = {"few_shot", "sum over the 400 steps; at step t every branch has t tokens", {}, {}};
    groups[1] = {"reasoning", "mean over the searches of the record", {}, {}};
    groups[2] = {"speculative", "sum over the runs of the record, prompts padded to 4,000 tokens", {}, {}};
    for (const PaperRow &paper : kFewShot)
      if (auto counted = addFewShot(paper, groups[0]); !counted)
        return counted.error();
    for (const PaperRow &paper : kReasoning)
      if (auto counted = addRecord(paper, "", true, groups[1]); !counted)
        return counted.error();
    for (const PaperRow &paper : kSpeculative)
      if (auto counted = addRecord(paper, ",prompt=" + std::to_string(kPromptTokens), false, groups[2]);
          !counted)
        return counted.error();
    return groups;
  }

private:
  static constexpr int kRows = kFewShot.size() + kReasoning.size() + kSpeculative.size();

  Result<RunIo> countNamed(const std::string &name, double part, double parts) {
    auto workload = workload::make(name, 0, folder_);
    if (!workload)
      return workload.error();
    return countRun(*workload, [&](long long done, long long of) {
      constexpr double kFine = 1e6;
      const double share = (rowsDone_ + (part + static_cast<double>(done) / static_cast<double>(of)) / parts);
      if (progress_)
        progress_(std::llround(share * kFine), std::llround(kRows * kFine));
    });
  }

  Result<void> addFewShot(const PaperRow &paper, IoGroup &group) {
    IoRow row;
    row.name = std::string("b = ") + paper.name;
    row.branches = std::stoi(paper.name);
    auto io = countNamed("few_shot:prompt=" + std::to_string(kPromptTokens) + ",branches=" + paper.name +
                             ",iterations=400",
                         0, 1);
    if (!io)
      return io.error();
    row.io = *io;
    addRow(row, paper, group);
    return {};
  }

  Result<void> addRecord(const PaperRow &paper, const std::string &more, bool isMean, IoGroup &group) {
    const std::filesystem::path path = std::filesystem::path(folder_) / (std::string(paper.name) + ".json");
    if (folder_.empty() || !std::filesystem::exists(path)) {
      group.leftOut.emplace_back(paper.name);
      ++rowsDone_;
      return {};
    }
    const auto runs = runsOf(path.string());
    if (!runs)
      return runs.error();
    if (runs->count == 0)
      return Error{ErrorCode::Diagnostics, path.string() + " holds no run", ""};
    IoRow row;
    row.name = paper.name;
    row.runs = runs->count;
    for (int i = 0; i < runs->count; ++i) {
      const auto io = countNamed(
          std::string(paper.name) + ":" + runs->parameter + "=" + std::to_string(i) + more, i, runs->count);
      if (!io)
        return io.error();
      const double tb = static_cast<double>(io->shared.cache) / 1e12;
      row.leastSharedTb = i == 0 ? tb : std::min(row.leastSharedTb, tb);
      row.mostSharedTb = std::max(row.mostSharedTb, tb);
      row.io.shared += io->shared;
      row.io.query += io->query;
      row.io.steps += io->steps;
    }
    if (isMean) {
      row.io.shared = divided(row.io.shared, runs->count);
      row.io.query = divided(row.io.query, runs->count);
      row.io.steps /= runs->count;
    }
    addRow(row, paper, group);
    return {};
  }

  void addRow(IoRow &row, const PaperRow &paper, IoGroup &group) {
    row.paperSharedTb = paper.sharedTb;
    row.paperQueryTb = paper.queryTb;
    if (row.runs == 1)
      row.leastSharedTb = row.mostSharedTb = row.sharedTb();
    group.rows.push_back(row);
    ++rowsDone_;
  }

  const std::string &folder_;
  const Progress &progress_;
  int rowsDone_ = 0;
};

std::string text(const char *format, double a, double b) {
  std::array<char, 160> line{};
  const int length = std::snprintf(line.data(), line.size(), format, a, b);
  return {line.data(), static_cast<std::size_t>(std::max(length, 0))};
}

/// Relative to the paper's figure, the larger of both columns, with its sign.
double differenceOf(const IoRow &row) {
  const double shared = row.sharedTb() / row.paperSharedTb - 1, query = row.queryTb() / row.paperQueryTb - 1;
  return std::abs(shared) > std::abs(query) ? shared : query;
}

} // namespace

const plan::VariantFacts &unit() {
  static const plan::VariantFacts facts{1, 32, spec::Tensors::alike(128)};
  return facts;
}

Result<RunIo> countRun(Workload &workload, const Progress &progress) {
  plan::Planner planner;
  plan::Plan plan;
  RunIo sum;
  plan::IoBytes shared, query;
  const long long steps = workload.steps() - workload.step() + 1LL;
  for (bool hasStep = true; hasStep;) {
    const int queries = static_cast<int>(workload.tree().queries().size());
    for (spec::Partition partition : {spec::Partition::Flatten, spec::Partition::Query}) {
      if (auto made = planner.make(workload.tree(), unit(), configOf(partition, queries), kBlocks, plan);
          !made)
        return made.error();
      (partition == spec::Partition::Query ? query : shared) += plan::io(plan, unit());
    }
    ++sum.steps;
    if (progress)
      progress(sum.steps, steps);
    const auto next = workload.next();
    if (!next)
      return next.error();
    hasStep = *next;
  }
  sum.shared = times(shared, kLayers);
  sum.query = times(query, kLayers);
  return sum;
}

Result<std::vector<IoGroup>> countTable(const std::string &recordsFolder, const Progress &progress) {
  return Table(recordsFolder, progress).count();
}

std::string explainDifferences(const IoGroup &group) {
  std::string differing;
  bool isSpread = false;
  for (const IoRow &row : group.rows)
    if (const double difference = differenceOf(row); std::abs(difference) > 0.01) {
      differing += (differing.empty() ? "" : ", ") + row.name + text(" %+.1f %%", 100 * difference, 0);
      if (row.runs > 1 && row.mostSharedTb > 1.05 * row.leastSharedTb) {
        differing += text(" (single runs: %.2f to %.2f TB shared)", row.leastSharedTb, row.mostSharedTb);
        isSpread = true;
      }
    }
  if (differing.empty())
    return "";
  if (isSpread)
    return differing +
           ": the paper does not say over which searches its mean is, and single ones differ by a "
           "factor of several.";
  return differing + ": the paper speaks of about 1,000 steps of one run; the records hold " +
         std::to_string(group.rows.front().io.steps / group.rows.front().runs) +
         ", and the sum over their runs is nearest to its figures.";
}

} // namespace deft::accounting
