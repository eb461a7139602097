#include "tuner/bench/PlainRead.h"

#include "runtime/exec/RandomInputs.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace deft::bench {

namespace {

/// Contiguous bytes.
struct Block {
  const std::byte *begin = nullptr;
  std::size_t bytes = 0;
};

/// K or V.
struct Cache {
  const std::byte *memory;
  const abi::CacheLayout &layout;
  spec::TensorType type;
};

/// The parts of the cache with these tokens; adjacent parts are joined.
void addBlocks(const spec::Variant &variant, std::span<const tree::Stretch> tokens,
               const exec::Inputs &inputs, const Cache &cache, std::vector<Block> &blocks) {
  const int pageSize = variant.cache.pageSize;
  // In hnd, a token's heads are separate; in the other layouts they are one stretch.
  const bool isApart = variant.cache.isPaged() && variant.cache.order == spec::PageOrder::Hnd;
  const int pieces = isApart ? variant.kvHeads : 1;
  const std::size_t bytes = static_cast<std::size_t>(cache.type.rowBytes()) * (isApart ? 1 : variant.kvHeads);
  for (const tree::Stretch &stretch : tokens)
    for (int piece = 0; piece < pieces; ++piece)
      for (int t = 0; t < stretch.tokens; ++t) {
        const std::byte *begin =
            cache.memory + cache.type.elementBytes() * exec::elementOf(cache.layout, inputs.pageTable.data(),
                                                                       pageSize, stretch.location + t, piece);
        if (!blocks.empty() && blocks.back().begin + blocks.back().bytes == begin)
          blocks.back().bytes += bytes;
        else
          blocks.push_back({begin, bytes});
      }
}

/// Sixteen independent sums, so that no addition waits for another and the compiler can vectorise.
std::uint64_t sum(const Block &block) {
  constexpr std::size_t kLanes = 16;
  std::uint64_t sums[kLanes] = {};
  std::size_t at = 0;
  for (; at + sizeof sums <= block.bytes; at += sizeof sums) {
    std::uint64_t words[kLanes];
    std::memcpy(words, block.begin + at, sizeof words);
    for (std::size_t i = 0; i < kLanes; ++i)
      sums[i] += words[i];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t part : sums)
    total += part;
  for (; at < block.bytes; ++at)
    total += static_cast<std::uint64_t>(block.begin[at]);
  return total;
}

/// Equal shares, by bytes.
std::vector<std::vector<Block>> share(const std::vector<Block> &blocks, int threads) {
  std::size_t total = 0;
  for (const Block &block : blocks)
    total += block.bytes;
  const std::size_t each = total / static_cast<std::size_t>(threads) + 1;
  std::vector<std::vector<Block>> shares(static_cast<std::size_t>(threads));
  std::size_t given = 0;
  for (Block block : blocks)
    while (block.bytes > 0) {
      const std::size_t thread = given / each;
      const std::size_t bytes = std::min(block.bytes, (thread + 1) * each - given);
      shares[thread].push_back({block.begin, bytes});
      block.begin += bytes;
      block.bytes -= bytes;
      given += bytes;
    }
  return shares;
}

} // namespace

std::vector<tree::Stretch> tokensRead(const plan::Plan &plan) {
  std::vector<tree::Stretch> read;
  for (const abi::Run &run : plan.runs)
    if (run.tokens > 0)
      read.push_back({run.location, run.tokens});
  std::sort(read.begin(), read.end(),
            [](const tree::Stretch &a, const tree::Stretch &b) { return a.location < b.location; });
  std::size_t kept = 0;
  for (const tree::Stretch &next : read) {
    const int end = kept > 0 ? read[kept - 1].location + read[kept - 1].tokens : -1;
    if (next.location > end)
      read[kept++] = next;
    else
      read[kept - 1].tokens = std::max(end, next.location + next.tokens) - read[kept - 1].location;
  }
  read.resize(kept);
  return read;
}

double plainReadBandwidth(const spec::Variant &variant, std::span<const tree::Stretch> tokens,
                          const exec::Inputs &inputs, int threads) {
  std::vector<Block> blocks;
  const auto bytesOf = [](const auto &elements) { return std::as_bytes(std::span(elements)).data(); };
  addBlocks(variant, tokens, inputs, {bytesOf(inputs.k), inputs.cache.k, variant.tensors.keyRow()}, blocks);
  if (!variant.tensors.valueInKey)
    addBlocks(variant, tokens, inputs, {bytesOf(inputs.v), inputs.cache.v, variant.tensors.v}, blocks);
  std::size_t bytes = 0;
  for (const Block &block : blocks)
    bytes += block.bytes;
  if (bytes == 0)
    return 0;
  const auto shares = share(blocks, threads);

  // Small caches are read several times between two readings of the clock, so that the cost of a common start
  // is negligible.
  constexpr std::size_t kBytesPerLook = std::size_t{64} << 20;
  const std::size_t passes = std::max<std::size_t>(1, kBytesPerLook / bytes);
  constexpr int kLooks = 9;
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> times;
  times.reserve(kLooks + 1);
  std::barrier gate(threads, [&]() noexcept { times.push_back(Clock::now()); });
  std::atomic<std::uint64_t> sink = 0; // keeps the compiler from removing the sums
  const auto work = [&](const std::vector<Block> &own) {
    for (int look = 0; look <= kLooks; ++look) {
      gate.arrive_and_wait();
      for (std::size_t pass = 0; look < kLooks && pass < passes; ++pass)
        for (const Block &block : own)
          sink.fetch_add(sum(block), std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back(work, std::cref(shares[static_cast<std::size_t>(t)]));
  work(shares[0]);
  for (std::thread &other : others)
    other.join();

  double best = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double seconds = std::chrono::duration<double>(times[i] - times[i - 1]).count();
    best = std::max(best, static_cast<double>(bytes * passes) / seconds);
  }
  return best;
}

} // namespace deft::bench
