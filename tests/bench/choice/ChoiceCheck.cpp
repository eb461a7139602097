// How good is the choice that nobody tuned? Takes what a GPU has measured (whole spaces, tests/data/spaces;
// journals of tuning sessions), makes the trees and plans again, prices every config by the cost model, and
// says for each class of trees how much longer the model's choice takes than the fastest config:
//
//   free     among all configs that were measured there
//   kernels  among those that run by the kernels that a package has
//   untuned  what is chosen without any tuning (UntunedChooser): those kernels, each with the plan that it is
//            given today; where that plan was measured
//
//   choice_check FILE... [--workloads DIR] [--cost FILE.json] [--fit] [--judge]
//
// tests/data/kernels has what the prices of tuner/prices were fitted to, by which kernels are compared on an
// H200.

#include "compiler/config/ConfigJson.h"
#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/support/AtomicFile.h"
#include "tests/bench/choice/Fit.h"
#include "tests/bench/choice/PricedClass.h"
#include "tuner/report/SessionData.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace deft::choice {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string workloads, cost;
  bool fit = false, verbose = false, isJudge = false;
  double limit = 1.15;
};

int fail(const support::Error &error) {
  std::cerr << "error: " << error.message << '\n';
  return 1;
}

/// Ratios to the fastest: geometric mean, worst, how many beyond the limit.
class Tally {
public:
  void add(double ratio, double limit) {
    logs_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    beyond_ += ratio > limit;
    ++count_;
  }
  bool isBeyond() const { return beyond_ > 0; }
  int count() const { return count_; }
  void print(const char *name, double limit) const {
    if (count_ > 0)
      std::printf("%-8s %3d classes: mean %.3f, worst %.3f, %d beyond %.2f\n", name, count_,
                  std::exp(logs_ / count_), worst_, beyond_, limit);
  }

private:
  double logs_ = 0, worst_ = 1;
  int beyond_ = 0, count_ = 0;
};

int check(const Options &options) {
  config::CostCoefficients cost = config::nearestPrices(config::someGpu()).kernels;
  if (!options.cost.empty()) {
    const auto text = support::readFile(options.cost);
    if (!text)
      return fail(text.error());
    const auto given = config::costFromJson(nlohmann::json::parse(*text, nullptr, false));
    if (!given)
      return fail(given.error());
    cost = *given;
  }
  std::vector<std::string> notes;
  std::vector<MeasuredClass> measured;
  for (const std::string &file : options.files) {
    auto classes = readMeasured(file, options.workloads, notes);
    if (!classes)
      return fail(classes.error());
    std::move(classes->begin(), classes->end(), std::back_inserter(measured));
  }
  for (const std::string &note : notes)
    std::cerr << "note: " << note << '\n';
  std::vector<PricedClass> classes;
  for (const MeasuredClass &one : measured)
    if (PricedClass priced(one); priced.hasUntuned())
      classes.push_back(std::move(priced));
  if (options.fit) {
    cost = fit(classes, cost);
    std::cout << config::toJson(cost).dump(2) << '\n';
  }
  Tally free, kernels, bound, untuned;
  std::printf("%-44s %-9s %9s %7s %7s %7s %7s\n", "tree", "heads", "fastest", "bound", "kernels", "free",
              "untuned");
  int unknown = 0;
  for (const PricedClass &one : classes) {
    const auto &signature = one.measured().signature;
    const std::string heads = std::to_string(signature.queryHeads) + "/" + std::to_string(signature.kvHeads);
    const std::size_t fastest = one.fastest(false), ownFastest = one.fastest(true);
    const std::size_t ofFree = one.choose(cost, false), ofKernels = one.choose(cost, true);
    const double best = one.usOf(fastest);
    free.add(one.usOf(ofFree) / best, options.limit);
    kernels.add(one.usOf(ofKernels) / best, options.limit);
    bound.add(one.usOf(ownFastest) / best, options.limit);
    std::printf("%-44.44s %-9s %9.2f %7.3f %7.3f %7.3f", one.measured().name.c_str(), heads.c_str(), best,
                one.usOf(ownFastest) / best, one.usOf(ofKernels) / best, one.usOf(ofFree) / best);
    const UntunedConfig *choice = one.choose(cost);
    if (choice && choice->found) {
      untuned.add(one.usOf(*choice->found) / best, options.limit);
      std::printf(" %7.3f", one.usOf(*choice->found) / best);
    } else {
      ++unknown;
      std::printf(" %7s", "-");
    }
    std::printf("\n");
    if (options.verbose) {
      const auto line = [&](const char *name, std::size_t i) {
        std::printf("    %-8s %8.2f us, priced %8.2f: %s\n", name, one.usOf(i), one.price(i, cost),
                    report::configText(one.configOf(i)).c_str());
      };
      line("fastest", fastest);
      line("bound", ownFastest);
      line("kernels", ofKernels);
      for (const UntunedConfig &of : one.untuned())
        std::printf("    %-8s %8.2f us, ranked %8.2f: %s -> %s, %d\n", &of == choice ? "untuned" : "",
                    of.found ? one.usOf(*of.found) : 0, one.rank(of, cost),
                    report::configText(of.config).c_str(),
                    config::partitionName(of.plans.front().partition).c_str(), of.plans.front().chunkTokens);
    }
  }
  std::printf("\n");
  bound.print("bound", options.limit);
  kernels.print("kernels", options.limit);
  free.print("free", options.limit);
  untuned.print("untuned", options.limit);
  if (unknown > 0)
    std::printf("untuned: of %d classes the plan was not measured\n", unknown);
  if (options.isJudge && untuned.count() <= unknown)
    return fail(
        {support::ErrorCode::Usage, "too few of the plans that are chosen were measured to judge", ""});
  return options.isJudge && untuned.isBeyond() ? 1 : 0;
}

} // namespace
} // namespace deft::choice

int main(int argc, char **argv) {
  deft::choice::Options options;
  CLI::App app("Judges the choice that nobody tuned, and fits its prices, on what a GPU has measured");
  app.add_option("FILE", options.files, "Recorded spaces, and journals of tuning sessions (*.jsonl)")
      ->required();
  app.add_option("--workloads", options.workloads, "The folder of recorded workloads");
  app.add_option("--cost", options.cost,
                 "Prices to judge, as JSON; default: those by which kernels are compared");
  app.add_option("--limit", options.limit, "Ratios beyond this are counted");
  app.add_flag("--fit", options.fit, "Look for better prices first");
  app.add_flag("--judge", options.isJudge,
               "End with 1 where an untuned choice is beyond the limit, or most were not measured");
  app.add_flag("--verbose", options.verbose, "Also the configs");
  CLI11_PARSE(app, argc, argv);
  return deft::choice::check(options);
}
