#include "tests/bench/CpuCeilings.h"

#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace deft::bench {

namespace {

/// Seconds from a common start until the last thread has done `body(thread)`.
template <typename Body> double timeThreads(int threads, const Body &body) {
  std::atomic<int> waiting = threads;
  std::atomic<bool> isOpen = false;
  std::vector<std::thread> team;
  for (int thread = 1; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      --waiting;
      while (!isOpen)
        ;
      body(thread);
    });
  while (waiting > 1)
    std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  isOpen = true;
  body(0);
  for (std::thread &thread : team)
    thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// `noipa`, or the compiler would see that a second pass gives the same and leave it out.
__attribute__((noipa, target("avx2"))) std::uint64_t readAll(const std::uint16_t *values, std::size_t count) {
  using Vector = std::uint64_t __attribute__((vector_size(32), aligned(2), may_alias));
  const auto *vectors = reinterpret_cast<const Vector *>(values);
  Vector sums[4] = {};
  for (std::size_t i = 0; i + 4 <= count / 16; i += 4)
    for (std::size_t j = 0; j < 4; ++j)
      sums[j] ^= vectors[i + j];
  const Vector sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

constexpr int kChains = 12; // enough for the latency of two units
constexpr int kSteps = 200'000;

__attribute__((noipa, target("avx512f"))) float multiply512(float factor) {
  const __m512 by = _mm512_set1_ps(factor);
  __m512 sums[kChains];
  for (__m512 &sum : sums)
    sum = by;
  for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 12 // or the sums would go through memory
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, by, by);
  for (const __m512 &sum : sums)
    sums[0] = _mm512_add_ps(sums[0], sum);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((noipa, target("avx2,fma"))) float multiply256(float factor) {
  const __m256 by = _mm256_set1_ps(factor);
  __m256 sums[kChains];
  for (__m256 &sum : sums)
    sum = by;
  for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 12 // or the sums would go through memory
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, by, by);
  for (const __m256 &sum : sums)
    sums[0] = _mm256_add_ps(sums[0], sum);
  return _mm256_cvtss_f32(sums[0]);
}

} // namespace

double readSeconds(std::span<const std::uint16_t> k, std::span<const std::uint16_t> v, int threads) {
  const std::size_t share = k.size() / static_cast<std::size_t>(threads);
  return timeThreads(threads, [&](int thread) {
    const std::size_t begin = share * static_cast<std::size_t>(thread);
    (void)readAll(k.data() + begin, share);
    (void)readAll(v.data() + begin, share);
  });
}

double flopsPerSecond(int threads, int isaLevel) {
  const int lanes = isaLevel >= 4 ? 16 : 8;
  const double seconds =
      timeThreads(threads, [&](int) { (void)(lanes == 16 ? multiply512(0.5f) : multiply256(0.5f)); });
  return 2.0 * lanes * kChains * kSteps * threads / seconds;
}

} // namespace deft::bench
