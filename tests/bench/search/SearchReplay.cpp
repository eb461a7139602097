// How soon does a search find what is there? Spaces that were measured as a whole (tests/data/spaces,
// tests/data/kernels) are searched again without a device, a candidate's time being the recorded one. Of each
// strategy: which share of the speed of the space's best config the best of the first n measured candidates
// reaches, and how many it measures until it ends.
//
//   search_replay FILE... [--seeds N] [--json FILE]
//
// Each seed has measurements that err by a hundredth, and, but for the prices of the recording, prices that
// err: each is that of the recording times another factor, as on a card for which nobody has fitted them.

#include "compiler/support/AtomicFile.h"
#include "tests/bench/choice/Measured.h"
#include "tuner/search/PlanModel.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Recording.h"
#include "tuner/workload/Workload.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>

namespace deft::bench {
namespace {

using nlohmann::json;
using space::Point;

/// A space that was measured as a whole.
struct Measured {
  std::string name;
  json space; ///< as files have it: prices are changed in there
  std::vector<tree::KvTree> trees;
  plan::VariantFacts facts;
  config_cache::DeviceKey device;
  config::Config untuned;
  std::map<Point, double> ratios; ///< to the untuned configs' time; 0: unusable
  double best = 0;
};

constexpr search::StrategyKind kStrategies[] = {search::StrategyKind::Guided, search::StrategyKind::Random};

constexpr int kMostMeasured = 64;
constexpr double kNoise = 0.01, kPriceError = 0.35;

space::Space spaceOf(const Measured &measured, std::mt19937_64 *engine) {
  json object = measured.space;
  if (engine)
    for (auto &[name, price] : object["cost"].items())
      if (price.is_number_float() && name != "merged_share")
        price = price.get<double>() * std::exp(kPriceError * std::normal_distribution<double>()(*engine));
  auto space = space::spaceFromJson(object);
  if (!space) {
    std::cerr << space.error().message << '\n';
    std::exit(1);
  }
  return std::move(*space);
}

struct Search {
  std::vector<double> shares; ///< of the best's speed, after 1, 2, ... measured candidates
  std::size_t measured = 0;   ///< until it ended, at most 64
};

Search replay(const Measured &own, search::StrategyKind kind, int seed, bool hasOwnPrices) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(seed));
  const space::Space space = spaceOf(own, hasOwnPrices ? nullptr : &engine);
  std::vector<const tree::KvTree *> trees;
  for (const tree::KvTree &tree : own.trees)
    trees.push_back(&tree);
  search::PlanModel model(space, own.facts, trees, own.device.units);
  const auto strategy = search::makeStrategy(kind, space, model, static_cast<std::uint64_t>(seed));
  if (const auto untuned = space.find(own.untuned))
    strategy->tell(*untuned, 1.0);
  std::vector<double> shares;
  double best = std::numeric_limits<double>::infinity();
  const auto measure = [&](const Point &point) {
    const auto found = own.ratios.find(point);
    const double ratio = found != own.ratios.end() ? found->second : 0;
    const double noise = std::exp(kNoise * std::normal_distribution<double>()(engine));
    strategy->tell(point, ratio > 0 ? std::optional(ratio * noise) : std::nullopt);
    if (ratio <= 0)
      return;
    best = std::min(best, ratio);
    shares.push_back(own.best / best);
  };
  const int batch = own.device.kind == config::DeviceKind::Gpu ? 8 : 4;
  while (shares.size() < kMostMeasured) {
    const std::vector<Point> points = strategy->propose(batch);
    if (points.empty())
      break;
    for (const Point &point : points)
      measure(point);
  }
  const std::size_t measured = std::min<std::size_t>(shares.size(), kMostMeasured);
  shares.resize(kMostMeasured, shares.empty() ? 0 : shares.back());
  return {std::move(shares), measured};
}

void finish(Measured &one, std::vector<Measured> &all) {
  one.best = std::numeric_limits<double>::infinity();
  for (const auto &[point, ratio] : one.ratios)
    if (ratio > 0)
      one.best = std::min(one.best, ratio);
  all.push_back(std::move(one));
}

support::Result<void> readSpace(const std::string &path, std::vector<Measured> &all) {
  const auto recording = session::readRecording(path);
  if (!recording)
    return recording.error();
  Measured one{recording->trees.front().first,
               space::toJson(recording->space),
               {},
               plan::VariantFacts::of(recording->signature.variant(), recording->device.kind),
               recording->device,
               recording->untuned,
               {},
               0};
  for (const auto &[name, seed] : recording->trees) {
    const auto workload = workload::make(name, seed);
    if (!workload)
      return workload.error();
    one.trees.push_back(workload->tree());
  }
  const std::vector<Point> points = recording->space.points();
  for (std::size_t i = 0; i < points.size(); ++i)
    one.ratios[points[i]] = recording->ratios[i];
  finish(one, all);
  return {};
}

/// Journals of exhaustive sessions.
support::Result<void> readJournal(const std::string &path, std::vector<Measured> &all) {
  const auto events = session::readJournal(path);
  if (!events)
    return events.error();
  const json head = events->front().at("space");
  auto space = space::spaceFromJson(head);
  if (!space)
    return space.error();
  std::vector<std::string> notes;
  const auto classes = choice::readMeasured(path, "", notes);
  if (!classes)
    return classes.error();
  for (const choice::MeasuredClass &measured : *classes) {
    Measured one{measured.name + " " + measured.signature.text(),
                 head,
                 measured.trees,
                 plan::VariantFacts::of(measured.signature.variant(), measured.device.kind),
                 measured.device,
                 {},
                 {},
                 0};
    for (const choice::MeasuredConfig &config : measured.configs) {
      // A journal leaves prices out where they are the session's.
      config::Config priced = config.config;
      priced.cost = space->cost();
      if (const auto point = space->find(priced))
        one.ratios[*point] = config.us;
    }
    if (one.ratios.size() >= 8)
      finish(one, all);
  }
  return {};
}

struct Summary {
  double logs = 0, worst = 1;
  int count = 0;

  void add(double share) {
    logs += std::log(std::max(share, 1e-3));
    worst = std::min(worst, share);
    ++count;
  }
  double mean() const { return count > 0 ? std::exp(logs / count) : 0; }
};

int run(const std::vector<std::string> &files, int seeds, const std::vector<int> &after,
        const std::string &jsonPath) {
  std::vector<Measured> all;
  for (const std::string &file : files)
    if (const auto read = file.ends_with(".jsonl") ? readJournal(file, all) : readSpace(file, all); !read) {
      std::cerr << "error: " << read.error().message << '\n';
      return 1;
    }
  json rows = json::array();
  for (const bool hasOwnPrices : {true, false}) {
    std::printf("%s, %zu spaces, %d seeds\n", hasOwnPrices ? "the recordings' prices" : "other prices",
                all.size(), seeds);
    for (const search::StrategyKind kind : kStrategies) {
      std::map<int, Summary> total;
      std::size_t measured = 0, searches = 0;
      for (const Measured &own : all) {
        std::map<int, Summary> summaries;
        const std::size_t before = measured;
        for (int seed = 1; seed <= seeds; ++seed) {
          const auto [shares, taken] = replay(own, kind, seed, hasOwnPrices);
          measured += taken;
          ++searches;
          for (const int n : after) {
            summaries[n].add(shares[static_cast<std::size_t>(n) - 1]);
            total[n].add(shares[static_cast<std::size_t>(n) - 1]);
          }
        }
        json row = {{"way", search::strategyName(kind)},
                    {"space", own.name},
                    {"device", own.device.name},
                    {"points", own.ratios.size()},
                    {"measured", static_cast<double>(measured - before) / seeds},
                    {"prices", hasOwnPrices ? "recorded" : "other"},
                    {"after", json::object()}};
        for (const auto &[n, summary] : summaries)
          row["after"][std::to_string(n)] = {{"mean", std::round(summary.mean() * 1e4) / 1e4},
                                             {"worst", std::round(summary.worst * 1e4) / 1e4}};
        rows.push_back(std::move(row));
      }
      std::printf("  %-10s", search::strategyName(kind).c_str());
      for (const auto &[n, summary] : total)
        std::printf("  %2d: %.4f (%.3f)", n, summary.mean(), summary.worst);
      std::printf("  measured %.1f\n", static_cast<double>(measured) / static_cast<double>(searches));
      std::fflush(stdout);
    }
  }
  if (jsonPath.empty())
    return 0;
  const json object = {
      {"format", "deft-search-replay"}, {"version", 1},           {"seeds", seeds}, {"noise", kNoise},
      {"price_error", kPriceError},     {"rows", std::move(rows)}};
  if (const auto written = support::writeFileAtomically(jsonPath, object.dump(1) + "\n"); !written) {
    std::cerr << "error: " << written.error().message << '\n';
    return 1;
  }
  return 0;
}

} // namespace
} // namespace deft::bench

int main(int argc, char **argv) {
  std::vector<std::string> files;
  std::vector<int> after{8, 16, 32, 64};
  std::string jsonPath;
  int seeds = 20;
  CLI::App app("Replays the tuner's searches over recorded spaces");
  app.add_option("FILE", files, "Recorded spaces, and journals of exhaustive sessions (*.jsonl)")->required();
  app.add_option("--seeds", seeds, "Searches of each space");
  app.add_option("--after", after, "Numbers of measured candidates, up to 64")->delimiter(',');
  app.add_option("--json", jsonPath, "Write a record to this file");
  CLI11_PARSE(app, argc, argv);
  return deft::bench::run(files, seeds, after, jsonPath);
}
