// What share of one core's plain read bandwidth does the CPU attend kernel reach, and what does its JIT cost?
//
// Decoding reads each byte of K and V once for a few rows, so a kernel is as good as it is near to a loop
// that only reads the same bytes. Both run here in turn, on one thread, on the same memory: K and V of one KV
// head of dimension 128 in bf16, once of a size that stays in the third-level cache (8 MiB) and once far
// beyond it (256 MiB); tokens back to back, and in pages of 16 scattered over a pool of 8 KV heads, where a
// token is 256 bytes out of 2 KiB. Rows: 1 (no sharing), 4 (the GQA ratio of Llama 3), 8 and 16 (shared
// prefixes). Expect 60 % and more up to 4 rows; beyond, arithmetic bounds the kernel and the share falls
// while the work per second still grows.
//
// The time of a pass is the fastest of the rounds, because what else runs on the machine only adds; the
// spread is that of the median above it. The result is verified after timing.
//
//   cpu_kernel_bench [--quick] [--json FILE]

#include "compiler/driver/Compilation.h"
#include "runtime/exec/Half.h"
#include "tests/support/ShippedVariants.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace deft {
namespace {

using Clock = std::chrono::steady_clock;
using Kernel = std::shared_ptr<const abi::CpuKernel>;

constexpr int kHeadDim = 128;
constexpr int kPageTokens = 16;
constexpr double kGoal = 0.6;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

spec::Variant benchVariant() {
  spec::Variant variant;
  variant.name = "bench";
  variant.queryHeads = variant.kvHeads = 1;
  variant.headDim = kHeadDim;
  variant.withLse = true;
  variant.scale = 1 / std::sqrt(kHeadDim);
  return variant;
}

Kernel compile(const spec::Variant &variant, const support::SourceManager &sources) {
  auto compilation = driver::Compilation::create(variant, sources);
  if (!compilation)
    throw std::runtime_error(compilation.error().message);
  auto kernel = compilation->jitCpuKernel();
  if (!kernel)
    throw std::runtime_error(kernel.error().message);
  return *kernel;
}

/// K and V of one KV head, and where its tokens lie.
struct Cache {
  Cache(std::size_t bytesOfHead, bool scattered) {
    const auto tokens = bytesOfHead / (2 * kHeadDim * sizeof(std::uint16_t));
    const int heads = scattered ? 8 : 1;
    std::mt19937 random(1);
    std::vector<long long> pages(tokens / kPageTokens);
    std::iota(pages.begin(), pages.end(), 0);
    if (scattered)
      std::shuffle(pages.begin(), pages.end(), random);
    for (long long page : pages)
      for (int slot = 0; slot < kPageTokens; ++slot)
        offsets.push_back((page * kPageTokens + slot) * heads * kHeadDim);
    for (auto *values : {&k, &v}) {
      values->resize(tokens * static_cast<std::size_t>(heads) * kHeadDim);
      for (std::uint16_t &bits : *values)
        bits =
            exec::bf16FromFloat(static_cast<float>(static_cast<int>(random() & 0xffff) - 0x8000) * 0x1p-15f);
    }
  }
  int tokens() const { return static_cast<int>(offsets.size()); }
  double bytes() const { return 2.0 * kHeadDim * sizeof(std::uint16_t) * tokens(); }
  std::vector<std::uint16_t> k, v;
  std::vector<long long> offsets;
};

/// Reads what the kernel reads, K and then V, and does nothing else worth naming. `noipa`, or the compiler
/// would see that a second pass gives the same and leave it out.
__attribute__((noipa, target("avx2"))) std::uint64_t plainRead(const Cache &cache) {
  using Vector = std::uint64_t __attribute__((vector_size(32), aligned(2), may_alias));
  Vector sums[4] = {};
  for (const std::uint16_t *base : {cache.k.data(), cache.v.data()})
    for (long long offset : cache.offsets) {
      const auto *vectors = reinterpret_cast<const Vector *>(base + offset);
      for (int i = 0; i < kHeadDim * 2 / 32; i += 4)
        for (int j = 0; j < 4; ++j)
          sums[j] ^= vectors[i + j];
    }
  const Vector sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

struct Rows {
  Rows(const abi::CpuKernel &kernel, int count)
      : q(static_cast<std::size_t>(count) * kHeadDim),
        packed(static_cast<std::size_t>(count * kernel.packedRowBytes)), acc(q.size()),
        m(static_cast<std::size_t>(count)), l(m.size()), zeros(m.size()) {
    std::mt19937 random(2);
    for (std::uint16_t &bits : q)
      bits = exec::bf16FromFloat(static_cast<float>(static_cast<int>(random() & 0xffff) - 0x8000) * 0x1p-14f);
    const abi::CpuPackCall call{q.data(), packed.data(), count, 0};
    kernel.pack(&call);
  }
  std::vector<std::uint16_t> q;
  std::vector<char> packed;
  std::vector<float> acc, m, l;
  std::vector<int> zeros;
};

void attend(const abi::CpuKernel &kernel, const Cache &cache, Rows &rows) {
  std::fill(rows.acc.begin(), rows.acc.end(), 0.0f);
  std::fill(rows.m.begin(), rows.m.end(), -std::numeric_limits<float>::infinity());
  std::fill(rows.l.begin(), rows.l.end(), 0.0f);
  abi::CpuAttendCall call{};
  call.packed = rows.packed.data();
  call.acc = rows.acc.data();
  call.m = rows.m.data();
  call.l = rows.l.data();
  call.qPos = call.query = call.head = rows.zeros.data();
  call.k = cache.k.data();
  call.v = cache.v.data();
  call.rows = static_cast<int>(rows.m.size());
  for (int begin = 0; begin < cache.tokens(); begin += kernel.blockTokens) {
    call.offsets = cache.offsets.data() + begin;
    call.tokens = std::min(kernel.blockTokens, cache.tokens() - begin);
    call.nextOffsets = call.offsets + call.tokens;
    call.nextTokens = std::min(kernel.blockTokens, cache.tokens() - begin - call.tokens);
    call.kvPos = begin;
    kernel.attend(&call);
  }
}

/// The first row in float64.
void verify(const Cache &cache, const Rows &rows) {
  std::vector<double> out(kHeadDim), q(kHeadDim);
  for (int d = 0; d < kHeadDim; ++d)
    q[static_cast<std::size_t>(d)] = exec::floatFromBf16(rows.q[static_cast<std::size_t>(d)]);
  double weights = 0, error = 0, norm = 0;
  for (long long offset : cache.offsets) {
    double s = 0;
    for (int d = 0; d < kHeadDim; ++d)
      s +=
          q[static_cast<std::size_t>(d)] * exec::floatFromBf16(cache.k[static_cast<std::size_t>(offset + d)]);
    const double weight = std::exp(s / std::sqrt(kHeadDim));
    weights += weight;
    for (int d = 0; d < kHeadDim; ++d)
      out[static_cast<std::size_t>(d)] +=
          weight * exec::floatFromBf16(cache.v[static_cast<std::size_t>(offset + d)]);
  }
  for (std::size_t d = 0; d < kHeadDim; ++d) {
    const double expected = out[d] / weights, got = rows.acc[d] / rows.l[0];
    error += (got - expected) * (got - expected);
    norm += expected * expected;
  }
  // Averages of many values of both signs are small beside the sums' rounding: 1e-3 is far from any mistake.
  if (!(std::sqrt(error / norm) < 1e-3))
    throw std::runtime_error("the kernel's result is wrong: relative error " +
                             std::to_string(std::sqrt(error / norm)));
}

nlohmann::json measure(const abi::CpuKernel &kernel, const Cache &cache, const char *size, const char *layout,
                       int rowCount, int rounds) {
  Rows rows(kernel, rowCount);
  // Small caches are passed over several times, so that a pass is long beside the clock.
  const int passes = std::max(1, static_cast<int>(0.5e8 / cache.bytes()));
  std::vector<double> read, attended;
  std::uint64_t sink = 0;
  for (int round = -1; round < rounds; ++round) { // the first one warms up
    auto start = Clock::now();
    for (int pass = 0; pass < passes; ++pass)
      sink ^= plainRead(cache);
    const double readSeconds = secondsSince(start) / passes;
    start = Clock::now();
    for (int pass = 0; pass < passes; ++pass)
      attend(kernel, cache, rows);
    if (round >= 0) {
      read.push_back(readSeconds);
      attended.push_back(secondsSince(start) / passes);
    }
  }
  verify(cache, rows);
  const double fastest = *std::min_element(attended.begin(), attended.end());
  const double readRate = cache.bytes() / *std::min_element(read.begin(), read.end()) * 1e-9;
  const double rate = cache.bytes() / fastest * 1e-9, spread = median(attended) / fastest - 1;
  std::printf("%-4s  %-9s  %4d  %9.1f  %11.1f  %6.2f  %5.0f %%%s\n", size, layout, rowCount, readRate, rate,
              rate / readRate, spread * 100, rowCount <= 4 && rate < kGoal * readRate ? "  below goal" : "");
  return {{"size", size},
          {"layout", layout},
          {"rows", rowCount},
          {"cache_mib", cache.bytes() / (1 << 20)},
          {"read_gb_per_s", readRate},
          {"attend_gb_per_s", rate},
          {"share", rate / readRate},
          {"spread", spread},
          {"read_check", sink != 0}};
}

nlohmann::json measureJit() {
  const test::ShippedVariants shipped = test::shippedVariants();
  nlohmann::json rows = nlohmann::json::array();
  std::printf("\n%-28s  first ms  median ms\n", "JIT, import and passes included");
  for (const spec::Variant &variant : shipped.variants) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      compile(variant, shipped.sources);
      times.push_back(secondsSince(start) * 1e3);
    }
    std::printf("%-28s  %8.0f  %9.0f\n", variant.name.c_str(), times.front(), median(times));
    rows.push_back({{"variant", variant.name}, {"first_ms", times.front()}, {"median_ms", median(times)}});
  }
  return rows;
}

int run(int argc, char **argv) {
  bool quick = false;
  std::string jsonPath;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--quick"))
      quick = true;
    else if (!std::strcmp(argv[i], "--json") && i + 1 < argc)
      jsonPath = argv[++i];
    else
      throw std::runtime_error("usage: cpu_kernel_bench [--quick] [--json FILE]");
  }
  nlohmann::json report;
  report["goal"] = kGoal;
  report["jit"] = measureJit(); // first, so that its first line holds what a fresh process pays

  const Kernel kernel = compile(benchVariant(), support::SourceManager());
  std::printf("\none thread, head_dim %d, bf16, x86-64-v%d; GB/s of K and V\n", kHeadDim, kernel->isaLevel);
  std::printf("size  layout     rows  read GB/s  attend GB/s   share   spread\n");
  const std::size_t mib = 1 << 20;
  for (const auto &[name, bytes] : {std::pair{"L3", 8 * mib}, {"DRAM", (quick ? 64 : 256) * mib}})
    for (const auto &[layout, scattered] : {std::pair{"adjacent", false}, {"paged", true}}) {
      const Cache cache(scattered && bytes > 64 * mib ? bytes / 4 : bytes, scattered);
      for (int rows : {1, 4, 8, 16})
        report["attend"].push_back(measure(*kernel, cache, name, layout, rows, quick ? 7 : 21));
    }
  if (!jsonPath.empty()) {
    std::ofstream file(jsonPath);
    if (!(file << report.dump(2) << '\n'))
      throw std::runtime_error("cannot write " + jsonPath);
  }
  return 0;
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  try {
    return deft::run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cpu_kernel_bench: %s\n", error.what());
    return 1;
  }
}
