#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Selecting.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/gpu/random/Trees.h"
#include "tests/gpu/selection/Layers.h"
#include "tests/support/SpreadInputs.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <mutex>
#include <numeric>

/// Random trees through the three attentions of specs that select: selecting changes no bit of the full one's
/// output; lists are those of a sort of float64 scores, up to rounding, and exactly where all tokens are
/// worth the same; sparse outputs are the oracle's over these lists.
namespace deft::gpu_test {
namespace {

using support::Error;
using support::Result;

struct Options {
  std::string package, backend = "cuda", only;
  std::uint64_t seed = 1;
  int trees = 4;
  double seconds = 50;
};

constexpr int kSkipped = 77;
constexpr long long kMostRowTokens = 400'000; ///< of a case that the oracle looks at

/// What waits for the oracle, which takes longer than the GPU.
struct Finished {
  std::string name;
  const spec::Variant *variant;
  tree::KvTree tree;
  exec::Inputs inputs;
  exec::Selection selection;
  exec::Outputs sparse;
  bool isWorthAlike = false;
};

std::string faultOf(const Finished &made) {
  const auto queries = reference::queriesToCheck(*made.variant, made.tree, kMostRowTokens);
  const bool isGiven = made.variant->readsGivenLists();
  if (!isGiven)
    if (const auto lists =
            reference::checkSelection(*made.variant, made.tree, made.inputs, made.selection, queries, 1);
        !lists.passed())
      return lists.fault;
  if (made.isWorthAlike && !isGiven) { // then the first ones are in, which a check by worth does not see
    const auto exact = reference::select(*made.variant, made.tree, made.inputs, made.selection.budget);
    if (exact.positions != made.selection.positions)
      return "of equal tokens others than the first are chosen";
  }
  reference::CheckOptions options;
  options.mostRowTokens = kMostRowTokens;
  options.selection = &made.selection;
  const auto check = reference::check(*made.variant, made.tree, made.inputs, made.sparse, options);
  return check.passed() ? "" : "sparse attention: " + reference::explainFailure(check);
}

class Session {
public:
  Session(const Options &options, Device &device) : options_(options), device_(device) {}

  Result<void> run(const program::LoadedSpec &spec) {
    for (const spec::Variant &variant : spec.variants) {
      if (!variant.select || variant.name.find(options_.only) == std::string::npos)
        continue;
      auto program = program::Program::fromPackage(options_.package, variant.name, "");
      if (!program)
        return program.error();
      programs_.push_back(std::move(*program));
    }
    if (auto compiled = compileAll(); !compiled)
      return compiled;
    std::cout << "compiled in " << static_cast<int>(seconds()) << " s" << std::endl;
    for (std::size_t at = 0; at < programs_.size(); ++at)
      for (std::size_t config = 0; config < configs_[at].size(); ++config)
        for (const int budget : programs_[at].variant().select->budget.values)
          if (auto ran = runSubject(at, config, budget); !ran)
            return ran;
    join();
    return {};
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  int cases = 0, wrong = 0, subjects = 0, subjectsRun = 0; ///< subjects: variants, configs and budgets
  long long lists = 0;

private:
  Result<void> compileAll() {
    std::vector<std::future<Result<void>>> coming;
    for (const program::Program &program : programs_) {
      auto configs = device_.configs(program);
      if (!configs)
        return configs.error();
      configs_.push_back(std::move(*configs));
    }
    for (std::size_t at = 0; at < programs_.size(); ++at)
      for (const config::Config &config : configs_[at])
        coming.push_back(
            std::async(std::launch::async, [&, at] { return device_.compile(programs_[at], config); }));
    Result<void> all;
    for (auto &one : coming)
      if (auto done = one.get(); !done)
        all = done;
    return all;
  }

  Result<void> runSubject(std::size_t at, std::size_t configIndex, int budget) {
    ++subjects;
    if (seconds() >= options_.seconds)
      return {};
    ++subjectsRun;
    const Subject subject{programs_[at].variant(), configs_[at][configIndex], budget};
    auto layers = device_.open(programs_[at], subject);
    if (!layers)
      return layers.error();
    for (int index = 0; index < options_.trees && seconds() < options_.seconds; ++index) {
      const auto turn = static_cast<int>(at * 7 + configIndex * 3) + index;
      Random random(options_.seed, 100 * at + 10 * configIndex + static_cast<std::size_t>(index),
                    static_cast<std::uint64_t>(budget));
      const std::string fault = runCase(**layers, subject, turn, random);
      ++cases;
      if (!fault.empty())
        report(nameOf(subject, turn), fault);
    }
    return {};
  }

  static std::string nameOf(const Subject &subject, int turn) {
    std::string phases;
    for (const config::PhaseConfig &phase : subject.config.phases)
      phases += " " + config::familyName(phase.family) + " " + std::to_string(phase.tileQ) + "x" +
                std::to_string(phase.tileKv);
    return subject.variant.name + "," + phases + ", budget " + std::to_string(subject.budget) + ", tree " +
           std::to_string(turn);
  }

  std::string runCase(Layers &layers, const Subject &subject, int turn, Random &random) {
    const spec::Variant &variant = subject.variant;
    CaseTree made = randomTree(random, turn, variant.cache.pageSize, 24);
    const auto placement = tree::placeInCache(
        made.tree, {variant.cache.pageSize,
                    random.oneIn(3) ? tree::PlacementOrder::InOrder : tree::PlacementOrder::Scattered,
                    random.seed(), 0});
    std::vector<std::string> values;
    for (const spec::Param &param : variant.params)
      if (!param.defaultValue && !param.isSizedByRun())
        values.push_back(param.name + "=0.5");
    auto params = exec::bindParams(variant, values);
    if (!placement || !params)
      return !placement ? placement.error().message : params.error().message;
    Finished done{nameOf(subject, turn) + " (" + made.kind + ")", &variant, {}, {}, {}, {}};
    done.inputs = exec::makeRandomInputs(variant, made.tree, *placement, std::move(*params), random.seed());
    if (random.oneIn(3))
      done.inputs = test::spreadInputs(variant, std::move(done.inputs), random.seed());
    done.isWorthAlike = random.oneIn(4);
    if (done.isWorthAlike) // all scores are one number, and the position breaks the tie
      std::fill(done.inputs.q.begin(), done.inputs.q.end(), std::uint16_t{0});

    config::Config config = subject.config;
    config.partition = random.of({spec::Partition::Union, spec::Partition::Node, spec::Partition::Greedy,
                                  spec::Partition::Query, spec::Partition::Auto});
    config.chunkTokens = random.of({0, 0, 64, 100, 256});
    plan::Planner planner;
    plan::Plan plan;
    const auto facts =
        plan::VariantFacts::of(variant, device_.kind(), exec::reachOf(variant, done.inputs.params));
    if (auto ok = planner.make(made.tree, facts, config, layers.blocks(), plan); !ok)
      return ok.error().message;
    exec::Outputs full, again;
    for (const auto &step : {std::function([&] { return layers.load(done.inputs); }),
                             std::function([&] { return layers.full(plan, full); }),
                             std::function([&] { return layers.selecting(plan, again, done.selection); }),
                             std::function([&] { return layers.sparse(done.selection, done.sparse); })})
      if (auto ran = step(); !ran)
        return ran.error().message;
    const auto bitsOf = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    if (again.out != full.out || !std::ranges::equal(again.lse, full.lse, {}, bitsOf, bitsOf))
      return "selecting changes bits of the output";
    exec::Selection selection;
    exec::Outputs sparse;
    if (auto ran = layers.selecting(plan, again, selection); !ran)
      return ran.error().message;
    if (auto ran = layers.sparse(selection, sparse); !ran)
      return ran.error().message;
    if (selection.positions != done.selection.positions || sparse.out != done.sparse.out)
      return "a second selection gives other lists or bits";
    lists += static_cast<long long>(selection.counts.size());
    done.tree = std::move(made.tree);
    judge(std::move(done));
    return {};
  }

  /// Beside what the GPU does next.
  void judge(Finished done) {
    const std::size_t most = 2 * std::max(1u, std::thread::hardware_concurrency());
    if (judged_.size() >= most)
      join();
    judged_.push_back(std::async(std::launch::async, [this, done = std::move(done)] {
      if (const std::string fault = faultOf(done); !fault.empty())
        report(done.name, fault);
    }));
  }
  void join() {
    for (auto &one : judged_)
      one.get();
    judged_.clear();
  }
  void report(const std::string &name, const std::string &fault) {
    const std::lock_guard lock(mutex_);
    if (++wrong <= 30)
      std::cout << "WRONG " << name << ": " << fault << std::endl;
  }

  const Options &options_;
  Device &device_;
  std::vector<program::Program> programs_;
  std::vector<std::vector<config::Config>> configs_; ///< of each program
  std::vector<std::future<void>> judged_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int fail(const Error &error) {
  std::cerr << "error: " << error.message << '\n';
  return 1;
}

int run(const Options &options) {
  auto package = package::openPackage(options.package);
  if (!package)
    return fail(package.error());
  const auto spec = program::loadPackagedSpec(*package, options.package);
  if (!spec)
    return fail(spec.error());
  auto device = options.backend == "cpu" ? Result<std::unique_ptr<Device>>(openCpu()) : openGpu();
  if (!device) {
    std::cout << "skipped: " << device.error().message << '\n';
    return std::getenv("DEFT_REQUIRE_GPU") != nullptr ? 1 : kSkipped;
  }
  Session session(options, **device);
  if (auto ran = session.run(**spec); !ran)
    return fail(ran.error());
  std::cout << session.cases << " cases with " << session.lists << " lists on " << (*device)->name() << ", "
            << session.wrong << " wrong; seed " << options.seed << ", " << session.subjectsRun << " of "
            << session.subjects << " variants, configs and budgets; " << static_cast<int>(session.seconds())
            << " s\n";
  return session.wrong == 0 && session.cases > 0 ? 0 : 1;
}

} // namespace
} // namespace deft::gpu_test

int main(int argc, char **argv) {
  deft::gpu_test::Options options;
  CLI::App app("Random cases of attentions that select, against the oracle");
  app.add_option("PACKAGE", options.package,
                 "Of cases.deft, or of what random_cases --write-spec --select wrote")
      ->required();
  app.add_option("--backend", options.backend, "cuda, or cpu to try the cases themselves");
  app.add_option("--seed", options.seed, "Of everything");
  app.add_option("--trees", options.trees, "Of each variant, config and budget");
  app.add_option("--only", options.only, "Variants whose name contains this");
  app.add_option("--seconds", options.seconds, "Start nothing new after so long");
  CLI11_PARSE(app, argc, argv);
  return deft::gpu_test::run(options);
}
