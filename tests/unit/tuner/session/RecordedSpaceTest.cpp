// How soon does a search find what is there? Spaces that were measured as a whole (tests/data/spaces, written
// by `deftc tune --strategy exhaustive --record`) are searched again without a device: a candidate's time is
// the recorded one.
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/measure/Samples.h"
#include "tuner/search/PlanModel.h"
#include "tuner/session/Recording.h"
#include "tuner/workload/Workload.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>

namespace deft::session {
namespace {

namespace fs = std::filesystem;

constexpr int kBatch = 4, kMostMeasured = 32;

/// Share of the optimum that the best of the first n measured candidates reaches, for n from 1 on.
std::vector<double> search(const Recording &recording, search::StrategyKind kind, std::uint64_t seed) {
  std::vector<tree::KvTree> trees;
  for (const auto &[name, workloadSeed] : recording.trees) {
    auto workload = workload::make(name, workloadSeed);
    EXPECT_TRUE(workload.ok()) << workload.error().message;
    trees.push_back(workload->tree());
  }
  std::vector<const tree::KvTree *> pointers;
  for (const tree::KvTree &tree : trees)
    pointers.push_back(&tree);
  const plan::VariantFacts facts =
      plan::VariantFacts::of(recording.signature.variant(), recording.device.kind);
  search::PlanModel model(recording.space, facts, pointers, recording.device.units);

  const std::vector<space::Point> points = recording.space.points();
  std::map<space::Point, double> times;
  // Of the space alone: that a session has the untuned config, too, must not hide a search that finds
  // nothing.
  double optimum = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i) {
    times[points[i]] = recording.ratios[i];
    if (recording.ratios[i] > 0)
      optimum = std::min(optimum, recording.ratios[i]);
  }

  const auto strategy = search::makeStrategy(kind, recording.space, model, seed);
  if (const auto untuned = recording.space.find(recording.untuned))
    strategy->tell(*untuned, 1.0);
  std::vector<double> shares;
  double best = std::numeric_limits<double>::infinity();
  while (shares.size() < kMostMeasured) {
    const std::vector<space::Point> batch = strategy->propose(kBatch);
    if (batch.empty())
      break;
    for (const space::Point &point : batch) {
      const double time = times.at(point);
      strategy->tell(point, time > 0 ? std::optional(time) : std::nullopt);
      if (time <= 0)
        continue;
      best = std::min(best, time);
      shares.push_back(optimum / best);
    }
  }
  shares.resize(kMostMeasured, optimum / best); // one that ended early has what it has
  return shares;
}

std::map<std::string, std::vector<Recording>> recordingsByDevice() {
  std::map<std::string, std::vector<Recording>> all;
  for (const auto &entry : fs::directory_iterator(DEFT_RECORDED_SPACES)) {
    auto recording = readRecording(entry.path().string());
    EXPECT_TRUE(recording.ok()) << recording.error().message;
    if (recording)
      all[recording->device.fileName()].push_back(std::move(*recording));
  }
  return all;
}

double medianAfter(const std::vector<std::vector<double>> &runs, int measured) {
  std::vector<double> shares;
  for (const std::vector<double> &run : runs)
    shares.push_back(run[static_cast<std::size_t>(measured) - 1]);
  return measure::median(shares);
}

TEST(RecordedSpaceTest, TheDefaultStrategyIsNearTheOptimumAfterFewCandidates) {
  const auto devices = recordingsByDevice();
  ASSERT_FALSE(devices.empty());
  for (const auto &[device, recordings] : devices) {
    EXPECT_GE(recordings.size(), 5U) << device;
    std::vector<std::vector<double>> runs;
    for (const Recording &recording : recordings) {
      runs.push_back(search(recording, search::StrategyKind::Guided, 0));
      std::printf("%s %s: %zu points; of the optimum after 8: %.3f, after 16: %.3f, after 32: %.3f\n",
                  device.c_str(), recording.treeClass.text().c_str(), recording.ratios.size(), runs.back()[7],
                  runs.back()[15], runs.back()[31]);
    }
    EXPECT_GE(medianAfter(runs, 16), 0.95) << device;
    EXPECT_GE(medianAfter(runs, 32), 0.98) << device;
  }
}

TEST(RecordedSpaceTest, TheDefaultStrategyIsAheadOfChance) {
  for (const auto &[device, recordings] : recordingsByDevice()) {
    std::vector<double> guided, random;
    for (const Recording &recording : recordings) {
      guided.push_back(search(recording, search::StrategyKind::Guided, 0)[15]);
      for (std::uint64_t seed = 1; seed <= 10; ++seed)
        random.push_back(search(recording, search::StrategyKind::Random, seed)[15]);
    }
    EXPECT_GE(measure::median(guided), measure::median(random)) << device;
  }
}

} // namespace
} // namespace deft::session
