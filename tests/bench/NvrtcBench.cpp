// How long a user waits for a kernel. For shipped specs under their default config, on this machine:
//   load     NVRTC is found and loaded; once a process
//   first    the first kernel that a process compiles (cold cache); the limit is 600 ms on 2 cores, the
//            goal 300 ms. Each sample is a process of its own, because NVRTC warms up.
//   cold     further kernels of the same process, cold cache
//   cached   the same kernels out of the cubin cache, hashing and checking included; the limit is 2 ms
// Sizes: head dim 128 with two phases (llama3_8b, the yardstick), with masks and scores (streaming_sink),
// and head dim 256 (gemma2_9b), which has the longest unrolled loops. Expect the compile time to follow
// the number of unrolled mma instructions and the cached time to follow the size of the cubin.
// usage: nvrtc_bench [--json FILE] [--samples N]; DEFT_CACHE_DIR is not touched.
#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/driver/Compilation.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/module_cache/CompileKernels.h"
#include "tests/support/ShippedVariants.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deft {
namespace {

constexpr const char *kArch = "sm_90a";
constexpr double kFirstLimitMs = 600, kFirstGoalMs = 300, kCachedLimitMs = 2;

struct Source {
  std::string entry;
  std::string text;
};

struct Spread {
  double median = 0, fastest = 0, slowest = 0;
};

Spread spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

double millisecondsOf(const std::function<void()> &work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Source> sourcesToCompile() {
  const test::ShippedVariants shipped = test::shippedVariants();
  std::vector<Source> sources;
  for (const spec::Variant &variant : shipped.variants) {
    if (variant.name != "llama3_8b" && variant.name != "streaming_sink" && variant.name != "gemma2_9b")
      continue;
    auto compilation = driver::Compilation::create(variant, shipped.sources);
    const auto source = compilation->cudaVariantSource();
    const auto config = kernels::defaultConfig(variant, target::findTarget(kArch));
    for (const config::PhaseConfig &phase : config->phases)
      sources.push_back(
          {codegen::cuda::attendEntry(*source, phase), codegen::cuda::instantiateAttend(*source, phase)});
    sources.push_back({codegen::cuda::mergeEntry(*source), codegen::cuda::instantiateMerge(*source)});
  }
  return sources;
}

/// Load and first compilation in a child, so that each sample meets a fresh NVRTC.
bool measureFirst(const Source &source, double &loadMs, double &firstMs) {
  int ends[2];
  if (::pipe(ends) != 0)
    return false;
  const pid_t child = ::fork();
  if (child == 0) {
    double times[2] = {-1, -1};
    support::Result<std::shared_ptr<const nvrtc::Nvrtc>> nvrtc = support::Error{};
    times[0] = millisecondsOf([&] { nvrtc = nvrtc::Nvrtc::load(); });
    bool ok = nvrtc.ok();
    if (ok)
      times[1] = millisecondsOf(
          [&] { ok = module_cache::compileKernel(nullptr, **nvrtc, source.entry, source.text, kArch).ok(); });
    const bool sent = ok && ::write(ends[1], times, sizeof times) == sizeof times;
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  double times[2];
  const bool ok = ::read(ends[0], times, sizeof times) == sizeof times;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  loadMs = times[0];
  firstMs = times[1];
  return ok;
}

nlohmann::json toJson(const Spread &spread) {
  return {{"median_ms", spread.median}, {"fastest_ms", spread.fastest}, {"slowest_ms", spread.slowest}};
}

int run(const std::string &jsonPath, int samples) {
  const std::vector<Source> sources = sourcesToCompile();
  std::vector<std::vector<double>> first(sources.size()), cold(sources.size()), cached(sources.size());
  std::vector<double> load;
  // In rounds, so that a busy moment of the machine hits all kernels alike.
  for (int sample = 0; sample < samples; ++sample)
    for (std::size_t i = 0; i < sources.size(); ++i) {
      double loadMs = 0, firstMs = 0;
      if (!measureFirst(sources[i], loadMs, firstMs)) {
        std::fprintf(stderr, "nvrtc_bench: NVRTC is missing or failed; nothing was measured\n");
        return 3;
      }
      load.push_back(loadMs);
      first[i].push_back(firstMs);
    }

  const auto nvrtc = nvrtc::Nvrtc::load();
  std::string folder = (std::filesystem::temp_directory_path() / "deft-bench-XXXXXX").string();
  if (!nvrtc || !::mkdtemp(folder.data()))
    return 3;
  std::vector<std::string> cubins(sources.size());
  bool right = true;
  for (int sample = 0; sample < samples; ++sample) {
    const auto cache = module_cache::CubinCache::open(folder + "/" + std::to_string(sample));
    for (const bool isCold : {true, false})
      for (std::size_t i = 0; i < sources.size(); ++i) {
        support::Result<package::Kernel> kernel = support::Error{};
        (isCold ? cold : cached)[i].push_back(millisecondsOf([&] {
          kernel =
              module_cache::compileKernel(cache.get(), **nvrtc, sources[i].entry, sources[i].text, kArch);
        }));
        using Origin = package::KernelOrigin;
        right = right && kernel && kernel->origin == (isCold ? Origin::Compiled : Origin::Cache) &&
                (cubins[i].empty() || cubins[i] == kernel->cubin);
        if (kernel)
          cubins[i] = kernel->cubin;
      }
  }
  std::filesystem::remove_all(folder);
  if (!right) {
    std::fprintf(stderr, "nvrtc_bench: a kernel failed, came from the wrong place or has changed\n");
    return 1;
  }

  const Spread loading = spreadOf(load);
  std::printf("NVRTC %s, %s, %u threads, %d samples; milliseconds as median (fastest .. slowest)\n",
              (*nvrtc)->version().text().c_str(), kArch, std::thread::hardware_concurrency(), samples);
  std::printf("load: %.1f (%.1f .. %.1f)\n", loading.median, loading.fastest, loading.slowest);
  std::printf("%-28s %7s  %-24s %-24s %-24s\n", "kernel", "KiB", "first", "cold", "cached");
  nlohmann::json report{{"nvrtc", (*nvrtc)->version().text()},
                        {"arch", kArch},
                        {"threads", std::thread::hardware_concurrency()},
                        {"samples", samples},
                        {"load", toJson(loading)},
                        {"kernels", nlohmann::json::array()}};
  bool withinLimits = true;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Spread spreads[] = {spreadOf(first[i]), spreadOf(cold[i]), spreadOf(cached[i])};
    std::printf("%-28s %7.1f", sources[i].entry.c_str(), cubins[i].size() / 1024.);
    for (const Spread &spread : spreads) {
      char text[64];
      std::snprintf(text, sizeof text, "%.1f (%.1f .. %.1f)", spread.median, spread.fastest, spread.slowest);
      std::printf("  %-23s", text);
    }
    std::printf("\n");
    withinLimits = withinLimits && spreads[0].median <= kFirstLimitMs && spreads[2].median <= kCachedLimitMs;
    report["kernels"].push_back({{"entry", sources[i].entry},
                                 {"cubin_bytes", cubins[i].size()},
                                 {"first", toJson(spreads[0])},
                                 {"cold", toJson(spreads[1])},
                                 {"cached", toJson(spreads[2])}});
  }
  std::printf("limits: first %.0f ms (goal %.0f), cached %.0f ms: %s\n", kFirstLimitMs, kFirstGoalMs,
              kCachedLimitMs, withinLimits ? "held" : "NOT held");
  report["limits_held"] = withinLimits;
  if (!jsonPath.empty() && !support::writeFileAtomically(jsonPath, report.dump(2) + "\n"))
    return 3;
  return 0;
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  std::string json = "nvrtc_bench.json";
  int samples = 7;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--json"))
      json = argv[i + 1];
    else if (!std::strcmp(argv[i], "--samples"))
      samples = std::max(1, std::atoi(argv[i + 1]));
  }
  return deft::run(json, samples);
}
