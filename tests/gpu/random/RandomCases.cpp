// Random attentions, trees that plans followed as they grew, placements, partitions and tile shapes on a GPU,
// every row against the float64 oracle at twice the error of a plain evaluation and its rounding noise,
// counting inputs that tell each token of each row, every run repeated for its bits, invariant plans with
// requests that leave, and caches of more than 2^31 elements.
//
//   random_cases --write-spec FILE.deft [--seed N]       then: deftc build --source FILE.deft -o FILE.deftpkg
//   random_cases FILE.deftpkg [--trees N] [--json FILE]  on the machine with the GPU
//   random_cases FILE.deftpkg --compile sm_80            anywhere: do the same kernels compile, without
//   spills?
//
// The package needs no cubins: kernels are compiled where they run. Ends with 1 when a case is wrong, with 77
// when there is no GPU (0 to ctest: skipped), unless DEFT_REQUIRE_GPU=1.

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Legality.h"
#include "tests/gpu/random/Backend.h"
#include "tests/gpu/random/Cases.h"
#include "tests/gpu/random/CheckPool.h"
#include "tests/gpu/random/Random.h"
#include "tests/gpu/random/Specs.h"
#include "tests/support/CommandLine.h"
#include "tests/support/MachineCode.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <thread>
#include <utility>

namespace deft::gpu_test {
namespace {

using nlohmann::json;
using support::Result;

constexpr int kSkipped = 77;

struct Options {
  std::string package, writeSpec, json, only, family, backend = "cuda", commit, compileFor;
  CompilerOptions compiler;
  int every = 1; ///< variants whose index, less `from`, it divides
  int from = 0;
  double seconds = 240;
  bool noLargePool = false;
  SpecOptions spec;
  CaseOptions cases;
};

int fail(const support::Error &error) {
  std::cerr << "error: " << error.message << '\n';
  if (!error.hint.empty())
    std::cerr << "  = hint: " << error.hint << '\n';
  return 1;
}

/// A variant under a config, compiled while others run.
struct Work {
  const spec::Variant *variant = nullptr;
  const package::PackagedVariant *packaged = nullptr;
  config::Config config;
  int variantIndex = 0, configIndex = 0;
  bool isInvariant = false; ///< whether it is the variant's one config for invariant plans
  std::promise<Result<package::KernelSet>> compiled;
};

class Session {
public:
  Session(const Options &options, const Backend &backend, const package::Package &package,
          const program::LoadedSpec &spec)
      : options_(options), backend_(backend) {
    for (std::size_t i = 0; i < spec.variants.size(); ++i) {
      const spec::Variant &variant = spec.variants[i];
      if (variant.name.find(options.only) == std::string::npos ||
          i % static_cast<std::size_t>(options.every) != static_cast<std::size_t>(options.from))
        continue;
      Random random(options.cases.seed, 900 + i);
      int configIndex = 0;
      bool hasInvariant = false;
      for (config::Config &config : backend.configs(random, variant)) {
        const int index = configIndex++; // the same, whichever are left out
        if (!isWanted(config))
          continue;
        Work &work = work_.emplace_back();
        work.variant = &variant;
        work.packaged = package.find(variant.name);
        work.config = std::move(config);
        work.variantIndex = static_cast<int>(i);
        work.configIndex = index;
        work.isInvariant = !hasInvariant && static_cast<std::size_t>(index) >= backend_.invariantAt() &&
                           kernels::checkInvariant(variant.tensors, work.config.phases[0]).ok();
        hasInvariant |= work.isInvariant;
      }
    }
    shuffle();
  }

  Tally run() {
    const int processors = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> isOver = false;
    std::vector<std::jthread> compilers;
    for (int i = 0; i < std::max(1, processors / 2); ++i)
      compilers.emplace_back([&] {
        for (std::size_t at = next++; at < work_.size() && !isOver; at = next++)
          work_[at].compiled.set_value(backend_.compile(*work_[at].packaged, work_[at].config));
      });
    CheckPool pool(processors - 2);
    for (Work &work : work_) {
      if (secondsSince(start_) > options_.seconds)
        break;
      runOne(work, pool);
    }
    isOver = true;
    compilers.clear();
    return pool.finish();
  }

  /// Only compiles; how many kernels failed or spill.
  int compileAll() {
    std::atomic<std::size_t> next = 0;
    std::mutex printing;
    int wrong = 0, kernels = 0;
    const auto compileSome = [&] {
      for (std::size_t at = next++; at < work_.size(); at = next++) {
        const Work &work = work_[at];
        const auto compiled = backend_.compile(*work.packaged, work.config);
        const std::lock_guard lock(printing);
        const std::string name = work.variant->name + ", config " + std::to_string(work.configIndex);
        if (!compiled) {
          std::cout << "WRONG " << name << ": " << compiled.error().message << '\n';
          ++wrong;
          continue;
        }
        for (const package::Kernel &kernel : compiled->attend) {
          ++kernels;
          const int reductions = test::predicatedReductions(kernel.cubin);
          if (!kernel.resources.spills() && reductions == 0)
            continue;
          ++wrong;
          std::cout << "WRONG " << name << ": `" << kernel.entry << "` "
                    << (reductions > 0 ? std::to_string(reductions) + " reductions under a predicate"
                                       : "spills")
                    << ": " << config::toJson(work.config).dump() << '\n';
        }
      }
    };
    std::vector<std::jthread> compilers;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      compilers.emplace_back(compileSome);
    compilers.clear();
    std::cout << kernels << " kernels compiled for " << backend_.device() << ", " << wrong << " wrong; "
              << static_cast<int>(seconds()) << " s\n";
    return wrong;
  }

  std::size_t subjects() const { return work_.size(); }
  std::size_t subjectsRun() const { return subjectsRun_; }
  double seconds() const { return secondsSince(start_); }

private:
  /// So that a run that ends early has seen some of everything. What a case is does not depend on it.
  void shuffle() {
    Random random(options_.cases.seed, 899);
    for (std::size_t left = work_.size(); left > 1; --left)
      std::swap(work_[left - 1], work_[static_cast<std::size_t>(random.below(static_cast<int>(left)))]);
  }

  using Clock = std::chrono::steady_clock;
  static double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  bool isWanted(const config::Config &config) const {
    return options_.family.empty() ||
           std::all_of(config.phases.begin(), config.phases.end(), [&](const config::PhaseConfig &phase) {
             return config::familyName(phase.family) == options_.family;
           });
  }

  void runOne(Work &work, CheckPool &pool) {
    const auto kernels = work.compiled.get_future().get();
    const CaseName name{work.variant->name + ", config " + std::to_string(work.configIndex), {}};
    if (!kernels)
      return pool.count(name, kernels.error().message);
    auto opened = backend_.open(*work.variant, *kernels);
    if (!opened)
      return pool.count(name, opened.error().message);
    const Subject subject{*work.variant, work.config, work.variantIndex, work.configIndex, **opened};
    runRandomCases(subject, options_.cases, pool);
    if (work.isInvariant)
      runInvariantCases(subject, options_.cases, pool);
    if (!options_.noLargePool && work.configIndex == 0 && takesLargePool(*work.variant))
      runLargePoolCase(subject, options_.cases, pool);
    ++subjectsRun_;
    if (subjectsRun_ % 20 == 0)
      std::cerr << subjectsRun_ << " of " << work_.size() << " kernels, " << static_cast<int>(seconds())
                << " s\n";
  }

  /// One of each layout, as these caches are 9 GB.
  bool takesLargePool(const spec::Variant &variant) {
    if (variant.tensors.k.dim < 112)
      return false;
    const int layout = !variant.cache.isPaged() ? 0 : variant.cache.order == spec::PageOrder::Nhd ? 1 : 2;
    return !std::exchange(hasLargePool_[layout], true);
  }

  const Options &options_;
  const Backend &backend_;
  std::deque<Work> work_;
  std::size_t subjectsRun_ = 0;
  bool hasLargePool_[3] = {};
  Clock::time_point start_ = Clock::now();
};

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const kernels::Family *family : kernels::families())
    names.emplace_back(family->name);
  return names;
}

json toJson(const Options &options, const Backend &backend, const Session &session, const Tally &tally,
            const std::string &command) {
  return {{"format", "deftc-random-cases"},
          {"version", 1},
          {"command", command},
          {"commit", options.commit},
          {"device", backend.device()},
          {"seed", options.cases.seed},
          {"cases", tally.cases},
          {"wrong", tally.failures.size()},
          {"failures", tally.failures},
          {"variants_times_configs", session.subjects()},
          {"run_of_these", session.subjectsRun()},
          {"queries_checked", tally.queriesChecked},
          {"pairs_counted", tally.pairsCounted},
          {"pairs_told", tally.pairsNoticeable},
          {"largest_count_error_over_allowed", tally.worstCount},
          {"largest_error_over_allowed", tally.worstShare},
          {"largest_error_case", tally.worstCase},
          {"largest_lse_error", tally.worstLse},
          {"seconds", session.seconds()},
          {"counts", tally.counts}};
}

int run(const Options &options, const std::string &command) {
  auto package = package::openPackage(options.package);
  if (!package)
    return fail(package.error());
  const auto spec = program::loadPackagedSpec(*package, options.package);
  if (!spec)
    return fail(spec.error());
  auto backend = !options.compileFor.empty() ? openCompiler(options.compileFor, options.compiler)
                 : options.backend == "cpu"  ? openCpuBackend(options.package)
                                             : openCudaBackend(options.compiler);
  if (!backend) {
    const bool isRequired = std::getenv("DEFT_REQUIRE_GPU") != nullptr;
    std::cout << "skipped: " << backend.error().message << '\n';
    return isRequired ? 1 : kSkipped;
  }
  Session session(options, **backend, *package, **spec);
  if (!options.compileFor.empty())
    return session.compileAll() == 0 ? 0 : 1;
  const Tally tally = session.run();
  for (std::size_t i = 0; i < tally.failures.size() && i < 30; ++i)
    std::cout << "WRONG " << tally.failures[i] << '\n';
  for (const auto &[fact, values] : tally.counts) {
    std::cout << fact << ":";
    for (const auto &[value, count] : values)
      std::cout << "  " << value << " " << count;
    std::cout << '\n';
  }
  std::cout << tally.cases << " cases on " << (*backend)->device() << ", " << tally.failures.size()
            << " wrong; seed " << options.cases.seed << ", " << session.subjectsRun() << " of "
            << session.subjects() << " variants and configs, " << tally.queriesChecked << " queries checked, "
            << tally.pairsNoticeable << " of " << tally.pairsCounted
            << " (row, token) pairs told by counting inputs, largest error " << tally.worstShare
            << " of what is allowed (" << tally.worstCase << "), lse off by " << tally.worstLse << "; "
            << static_cast<int>(session.seconds()) << " s\n";
  if (!options.json.empty())
    std::ofstream(options.json) << toJson(options, **backend, session, tally, command).dump(1) << '\n';
  return tally.failures.empty() && tally.cases > 0 ? 0 : 1;
}

} // namespace
} // namespace deft::gpu_test

int main(int argc, char **argv) {
  using namespace deft::gpu_test;
  Options options;
  CLI::App app("Random cases against the oracle");
  app.add_option("PACKAGE", options.package, "A package of the spec that --write-spec wrote");
  auto *const writeSpec =
      app.add_option("--write-spec", options.writeSpec, "Write the random spec to this file, and end");
  app.add_option("--hook", options.spec.hook,
                 "The mask or score of all attentions of that spec, like softcap; elements: all hooks of q "
                 "and the output")
      ->check(CLI::IsMember(hookNames()))
      ->needs(writeSpec);
  app.add_flag("--bytes", options.spec.isOfBytes, "All caches of that spec are of 8-bit floats")
      ->needs(writeSpec);
  app.add_flag("--latent", options.spec.isLatent, "All caches of that spec are latent")->needs(writeSpec);
  app.add_flag("--multiply-bytes", options.spec.multipliesBytes,
               "Attentions of that spec have products of 8 bits")
      ->needs(writeSpec);
  app.add_flag("--unlike", options.spec.isUnlike, "K and V of that spec have dims of their own")
      ->needs(writeSpec);
  app.add_flag("--select", options.spec.selects, "All attentions of that spec select: for selection_cases")
      ->needs(writeSpec);
  app.add_option("--seed", options.cases.seed, "Of everything");
  app.add_option("--trees", options.cases.trees, "Trees of each variant and config");
  app.add_option("--invariant-trees", options.cases.invariantTrees,
                 "Trees of each variant for invariant plans");
  app.add_option("--configs", options.compiler.otherConfigs, "Configs of each variant beside the default");
  app.add_option("--most-queries", options.cases.mostQueries, "Of a token tree");
  app.add_option(
      "--seconds", options.seconds,
      "Start nothing new after so long; the order is the seed's, so that some of everything is seen");
  app.add_option("--only", options.only, "Variants whose name contains this");
  app.add_option("--family", options.family, "Configs all of whose kernels are of this family")
      ->check(CLI::IsMember(familyNames()));
  app.add_option("--every", options.every, "Every so many variants")->check(CLI::PositiveNumber);
  app.add_option("--from", options.from, "The first of them, below --every")->check(CLI::NonNegativeNumber);
  app.add_option("--tree", options.cases.onlyTree, "Only this tree of each");
  app.add_option("--backend", options.backend, "cuda, or cpu to try the cases themselves");
  app.add_option("--compile", options.compileFor,
                 "Only compile, for this architecture: sm_90a; needs no GPU");
  app.add_flag("--line-info", options.compiler.lineInfo, "Kernels know their source lines");
  app.add_flag("--no-large-pool", options.noLargePool, "Leave out caches of more than 2^31 elements");
  app.add_option("--commit", options.commit, "Of the sources, for the record");
  app.add_option("--json", options.json, "Write the record to this file");
  CLI11_PARSE(app, argc, argv);
  if (options.from >= options.every) {
    std::cerr << "error: --from must be below --every\n";
    return 2;
  }
  if (!options.writeSpec.empty()) {
    std::ofstream file(options.writeSpec);
    options.spec.every = options.every;
    file << randomSpec(options.cases.seed, options.spec);
    return file ? 0 : 1;
  }
  return run(options, deft::test::commandLine(argc, argv));
}
