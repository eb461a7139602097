#include "tests/support/FakeKernels.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Slope.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

namespace deft::fake_cuda {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kMergeWarps = 4;  ///< of a block, as deft::kMergeWarps
constexpr int kQueryWarps = 16; ///< likewise, as deft::kQueryWarps

struct Row {
  std::vector<float> sum;
  float top = -kInfinity;
  float weights = 0;

  void add(float score, const auto &valueAt) {
    const float newTop = std::max(top, score);
    const float old = top == -kInfinity ? 0 : std::exp(top - newTop), weight = std::exp(score - newTop);
    for (std::size_t d = 0; d < sum.size(); ++d)
      sum[d] = sum[d] * old + weight * valueAt(d);
    weights = weights * old + weight;
    top = newTop;
  }
};

class Values {
public:
  Values(const Variant &variant, const void *memory)
      : dtype_(variant.isBf16 ? spec::DType::BF16 : spec::DType::F16),
        memory_(static_cast<const std::uint16_t *>(memory)) {}
  float at(long long element) const { return exec::toFloat(memory_[element], dtype_); }

private:
  spec::DType dtype_;
  const std::uint16_t *memory_;
};

int groupsOf(const Variant &variant) {
  return variant.worthGroups > 0 ? variant.worthGroups : variant.kvHeads;
}

/// As select::keyOf.
unsigned keyOf(float score) {
  const auto bits = std::bit_cast<unsigned>(score);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

/// At the elements from `first` on.
void write(const Variant &variant, void *out, long long first, const std::vector<float> &values,
           float factor) {
  auto *to = static_cast<std::uint16_t *>(out) + first;
  for (const float value : values)
    *to++ = exec::fromFloat(value * factor, variant.isBf16 ? spec::DType::BF16 : spec::DType::F16);
}

struct Token {
  int place; ///< page * page size + place in the page; contiguous: the token
  int position;
};

/// Those of the item's tokens that the query sees.
std::vector<Token> tokensOfRuns(const Variant &variant, const abi::AttendArgs &args, const abi::Item &item,
                                int query) {
  std::vector<Token> tokens;
  for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
    const abi::Run &run = args.runs[r];
    if (query < run.queryBegin || query >= run.queryEnd)
      continue;
    for (int t = 0; t < plan::tokensSeen(run, query); ++t) {
      const int location = run.location + t, size = variant.pageSize;
      tokens.push_back({size == 0 ? location : args.pageTable[location / size] * size + location % size,
                        run.position + t});
    }
  }
  return tokens;
}

/// Those of a list that the item has. Lists of a caller, which a plan has no memory for, stand in place of
/// the page table.
std::vector<Token> tokensOfList(const abi::AttendArgs &args, const abi::Item &item, long long list) {
  const abi::Selected &selected = *args.selected;
  std::vector<Token> tokens;
  if (selected.counts == nullptr) {
    for (int i = item.commonTokens; i < item.commonTokens + item.tokens; ++i)
      if (const int slot = args.pageTable[list * selected.budget + i]; slot >= 0)
        tokens.push_back({slot, 0});
    return tokens;
  }
  const int end = std::min(item.commonTokens + item.tokens, selected.counts[list]);
  for (int slot = item.commonTokens; slot < end; ++slot) {
    const long long at = list * selected.budget + slot;
    tokens.push_back({selected.places[at], selected.positions[at]});
  }
  return tokens;
}

/// Those of a union's part that the query of it reads.
std::vector<Token> tokensOfUnion(const abi::AttendArgs &args, const abi::Item &item, int query, int list,
                                 int lists) {
  const auto &unions = *reinterpret_cast<const abi::Unions *>(args.selected + 1);
  const abi::Union &one = unions.unions[item.runBegin];
  const int count = unions.counts[item.runBegin * lists + list];
  const long long first = beginOf(one, lists, list, args.selected->budget);
  std::vector<Token> tokens;
  for (int t = item.commonTokens; t < count; t += item.runCount) // parts in turn are parts, too
    if ((unions.readers[first + t] >> query & 1u) != 0)
      tokens.push_back({unions.places[first + t], unions.positions[first + t]});
  return tokens;
}

/// Whether items of unions are told what they have.
bool areTold(const abi::AttendArgs &args, Layer layer) {
  return layer == Layer::United && static_cast<const void *>(args.runs) == args.selected + 1;
}

std::vector<Token> tokensOfTold(const abi::AttendArgs &args, const abi::Item &item, int query) {
  const auto &unions = *reinterpret_cast<const abi::Unions *>(args.runs);
  std::vector<Token> tokens;
  if (item.commonTokens != abi::kNoTokens)
    for (int at = item.commonTokens; at < item.commonTokens + item.tokens; ++at)
      if ((unions.readers[at] >> query & 1u) != 0)
        tokens.push_back({args.pageTable[at], unions.positions[at]});
  return tokens;
}

void attendRow(const Variant &variant, const abi::AttendArgs &args, const abi::Item &item, int query,
               int head, Layer layer) {
  const int ratio = variant.queryHeads / variant.kvHeads;
  const long long caller = args.callerIndex[item.queryBegin + query];
  const Values q(variant, args.q), k(variant, args.k), v(variant, args.v);
  Row result{std::vector<float>(static_cast<std::size_t>(variant.headDim))};
  const int lists = listsOf(variant), groups = groupsOf(variant);
  const int list = head * lists / variant.queryHeads;
  const std::vector<Token> tokens = layer == Layer::Sparse
                                        ? tokensOfList(args, item, item.runBegin * lists + list)
                                    : areTold(args, layer)   ? tokensOfTold(args, item, query)
                                    : layer == Layer::United ? tokensOfUnion(args, item, query, list, lists)
                                                             : tokensOfRuns(variant, args, item, query);
  for (const Token &token : tokens) {
    const auto placeIn = [&](const abi::CachePlaces &cache) {
      const int size = variant.pageSize;
      const auto elements = [&](unsigned units) {
        return units * ((variant.headDim | variant.keyDim()) % abi::kStrideElements == 0 ? 16LL : 8LL);
      };
      return (size == 0 ? token.place * elements(cache.tokenStride)
                        : token.place / size * elements(cache.pageStride) +
                              token.place % size * elements(cache.tokenStride)) +
             head / ratio * elements(cache.headStride);
    };
    const long long key = placeIn(args.kCache), value = placeIn(args.vCache);
    float score = 0;
    // Of a latent cache, what is behind V's elements in K stands where V does elsewhere.
    const int dim = variant.latentDim > 0 ? variant.headDim : variant.keyDim();
    for (int d = 0; d < variant.keyDim(); ++d)
      score += q.at(caller * args.qStride + head * variant.keyDim() + d) *
               (d < dim ? k.at(key + d) : v.at(value + d - dim));
    score *= variant.scale;
    result.add(score, [&](std::size_t d) {
      const auto at = static_cast<long long>(d);
      return variant.latentDim > 0 ? k.at(key + at) : v.at(value + at);
    });
    if (layer == Layer::Selecting) {
      const long long group = caller * groups + head * groups / variant.queryHeads;
      unsigned &worth = args.selected->worth[group * args.selected->worthStride + token.position];
      worth = std::max(worth, keyOf(score));
    }
  }
  const float factor = result.weights > 0 ? 1 / result.weights : 0;
  const float lse = result.top == -kInfinity ? -kInfinity : result.top + std::log(result.weights);
  if (item.partialBegin < 0) {
    write(variant, args.out, caller * args.outStride + head * variant.headDim, result.sum, factor);
    if (args.lse)
      args.lse[caller * variant.queryHeads + head] = lse;
    return;
  }
  const long long place = static_cast<long long>(item.partialBegin + query) * variant.queryHeads + head;
  write(variant, args.partialOut, place * variant.headDim, result.sum, factor);
  args.partialLse[place] = lse;
}

void mergeRow(const Variant &variant, const abi::MergeArgs &args, int merged, int query, int head) {
  Row result{std::vector<float>(static_cast<std::size_t>(variant.headDim))};
  const Values partials(variant, args.partialOut);
  for (int i = args.mergeBegin[merged]; i < args.mergeBegin[merged + 1]; ++i) {
    const long long place = static_cast<long long>(args.mergeSlot[i]) * variant.queryHeads + head;
    if (args.partialLse[place] == -kInfinity)
      continue;
    result.add(args.partialLse[place], [&](std::size_t d) {
      return partials.at(place * variant.headDim + static_cast<long long>(d));
    });
  }
  const long long caller = args.callerIndex[query];
  write(variant, args.out, caller * args.outStride + head * variant.headDim, result.sum,
        result.weights > 0 ? 1 / result.weights : 0);
  if (args.lse)
    args.lse[caller * variant.queryHeads + head] =
        result.top == -kInfinity ? -kInfinity : result.top + std::log(result.weights);
}

} // namespace

void attend(const Variant &variant, const abi::AttendArgs &args, unsigned blocks, Layer layer) {
  const int unitsOfItem = areTold(args, layer) ? 1 : variant.kvHeads;
  const long long units = static_cast<long long>(args.itemCount) * unitsOfItem;
  const int ratio = variant.queryHeads / variant.kvHeads;
  for (unsigned block = 0; block < blocks; ++block)
    for (long long unit = block; unit < units; unit += blocks) {
      const abi::Item &item = args.items[args.itemBegin + unit / unitsOfItem];
      if (item.tokens == 0)
        break;
      const int kvHead = static_cast<int>(unit % variant.kvHeads);
      for (int row = 0; row < item.queryCount * ratio; ++row)
        attendRow(variant, args, item, row / ratio, kvHead * ratio + row % ratio, layer);
    }
}

void select(const Variant &variant, const abi::SelectArgs &args, unsigned lists) {
  const abi::Selected &selected = args.selected;
  const int merged = groupsOf(variant) / listsOf(variant);
  for (unsigned list = 0; list < lists; ++list) {
    const int query = static_cast<int>(list) / listsOf(variant);
    const int begin = selected.stretchBegin[query], end = selected.stretchBegin[query + 1];
    const int length =
        begin < end ? selected.stretches[end - 1].position + selected.stretches[end - 1].tokens : 0;
    std::vector<std::pair<unsigned, int>> tokens; // key, and the position
    for (int position = 0; position < length; ++position) {
      unsigned key = abi::kHiddenKey;
      for (int m = 0; m < merged; ++m) {
        unsigned &worth =
            selected.worth[(static_cast<long long>(list) * merged + m) * selected.worthStride + position];
        key = std::max(key, std::exchange(worth, abi::kHiddenKey));
      }
      const bool isKept = position < args.keepFirst || position >= length - args.keepLast;
      if (key != abi::kHiddenKey)
        tokens.emplace_back(isKept ? ~0u : key, position);
    }
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto &a, const auto &b) { return a.first > b.first; });
    tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(selected.budget)));
    std::sort(tokens.begin(), tokens.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    selected.counts[list] = static_cast<int>(tokens.size());
    const long long first = static_cast<long long>(list) * selected.budget;
    std::fill_n(selected.positions + first, selected.budget, -1);
    std::fill_n(selected.places + first, selected.budget, 0);
    for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
      const int position = tokens[slot].second;
      const auto *stretch = std::find_if(
          selected.stretches + begin, selected.stretches + end, [&](const abi::PathStretch &one) {
            return position >= one.position && position < one.position + one.tokens;
          });
      const int location = stretch->location + position - stretch->position, size = variant.pageSize;
      selected.positions[first + static_cast<long long>(slot)] = position;
      selected.places[first + static_cast<long long>(slot)] =
          size == 0 ? location : selected.pageTable[location / size] * size + location % size;
    }
  }
}

void merge(const Variant &variant, const abi::MergeArgs &args, unsigned blocks) {
  unsigned begin = 0;
  if (args.watch) {
    begin = 1;
    const unsigned long long run = (*args.runsOfPlan)++;
    if (args.watch->planGeneration < args.watch->treeGeneration && run >= args.watch->freeRuns)
      args.watch->staleSeen = args.watch->treeGeneration;
  }
  const long long tasks = static_cast<long long>(args.mergeCount) * variant.queryHeads;
  const long long stride = static_cast<long long>(blocks - begin) * kMergeWarps;
  for (long long warp = 0; warp < stride; ++warp)
    for (long long task = warp; task < tasks; task += stride) {
      const int merged = static_cast<int>(task / variant.queryHeads);
      if (args.mergeQuery[merged] < 0)
        break;
      mergeRow(variant, args, merged, args.mergeQuery[merged], static_cast<int>(task % variant.queryHeads));
    }
}

void makeQueries(const Variant &variant, const abi::QueryArgs &args, unsigned blocks) {
  const spec::DType dtype = variant.isBf16 ? spec::DType::BF16 : spec::DType::F16;
  const Values q(variant, args.q);
  const int rows = args.queries * variant.queryHeads, warps = static_cast<int>(blocks) * kQueryWarps;
  for (int warp = 0; warp < warps; ++warp)
    for (int row = warp; row < rows; row += warps) {
      const long long caller = args.callerIndex[row / variant.queryHeads];
      const int head = row % variant.queryHeads;
      if (caller < 0)
        break;
      auto *to =
          static_cast<std::uint16_t *>(args.made) + (caller * variant.queryHeads + head) * variant.keyDim();
      for (int d = 0; d < variant.keyDim(); ++d)
        to[d] = exec::fromFloat(2 * q.at(caller * args.qStride + head * variant.keyDim() + d), dtype);
    }
}

void growPlan(const abi::GrowArgs &args) {
  const auto gainOf = [&](int leaf) {
    if (leaf < 0)
      return 0;
    const abi::GrowingLeaf &planned = args.leaves[leaf];
    return std::clamp(args.lengths[planned.request] - planned.length, 0, planned.mostGain);
  };
  const auto heldGainOf = [&](int leaf) {
    const auto held = leaf < 0 ? 0u : static_cast<unsigned>(args.leaves[leaf].reserved);
    return held == 0 ? gainOf(leaf) : std::popcount(held & ((1u << gainOf(leaf)) - 1));
  };
  for (int i = 0; i < args.mostItems; ++i) {
    if (args.growingItems[i] < 0)
      continue;
    abi::Item &item = args.items[args.growingItems[i]];
    const int end = item.runBegin + item.runCount;
    item.tokens = 0;
    for (int r = item.runBegin; r < end; ++r) {
      args.runs[r].begin = item.tokens;
      args.runs[r].tokens = args.grownRuns[r].planned + heldGainOf(args.grownRuns[r].leaf);
      item.tokens += args.runs[r].tokens;
    }
    if (item.dealtTiles == 0)
      continue;
    constexpr int kWarps = 4, kGroup = 16;
    const abi::Run *const runs = args.runs + item.runBegin;
    int most = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      const int begin = runs[runs[warp].dealtBegin].begin;
      most =
          std::max(most, (warp + 1 < kWarps ? runs[runs[warp + 1].dealtBegin].begin : item.tokens) - begin);
      if (warp == 0)
        item.commonTokens = begin;
    }
    item.dealtTiles = (most + kGroup - 1) / kGroup;
  }
  for (int q = 0; q < args.mostQueries; ++q) {
    const abi::Grown &query = args.grownQueries[q];
    if (query.leaf < 0)
      continue;
    const abi::GrowingLeaf &leaf = args.leaves[query.leaf];
    const int gained = args.lengths[leaf.request] - leaf.length;
    args.queryPos[q] = query.planned + gainOf(query.leaf);
    if (gained < 0 || gained > leaf.mostGain)
      *args.unserved = static_cast<unsigned long long>(leaf.length + gained) << 32 |
                       static_cast<unsigned>(leaf.request + 1);
  }
}

void mergePeers(const abi::PeersArgs &args, exec::StateType type) {
  abi::PeerMemory &own = *args.ranks[args.rank];
  const unsigned long long replay = ++own.replays;
  if (own.broken != 0)
    return;
  const auto rows = static_cast<std::size_t>(args.queries) * static_cast<std::size_t>(args.heads);
  const std::size_t outBytes = rows * static_cast<std::size_t>(args.dim * exec::bytesOf(type));
  const auto bufferOf = [&](int rank) {
    return reinterpret_cast<char *>(args.ranks[rank] + 1) +
           static_cast<long long>(replay % 2) * args.bufferBytes;
  };
  std::memcpy(bufferOf(args.rank), args.own, outBytes);
  std::memcpy(bufferOf(args.rank) + outBytes, args.ownLse, rows * sizeof(float));
  exec::PartsOfRows parts;
  for (int rank = 0; rank < args.count; ++rank) {
    std::atomic_ref(args.ranks[rank]->flags[args.rank]).store(replay);
    parts.outs.push_back(bufferOf(rank));
    parts.lses.push_back(reinterpret_cast<const float *>(bufferOf(rank) + outBytes));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(args.mostNs);
  for (int rank = 0; rank < args.count; ++rank)
    while (std::atomic_ref(own.flags[rank]).load() < replay) {
      if (std::chrono::steady_clock::now() > end) {
        *args.late = replay << 32 | static_cast<unsigned>(rank + 1);
        own.broken = replay;
        return;
      }
      std::this_thread::yield();
    }
  parts.queries = args.queries;
  parts.heads = args.heads;
  parts.dim = args.dim;
  parts.headBegin = args.headBegin;
  parts.headCount = args.headCount;
  exec::mergeHeads(parts, type, args.out, args.lse);
}

void checkPages(const abi::PageCheckArgs &args) {
  for (int i = 0; i < args.itemCount; ++i)
    for (int r = args.items[i].runBegin; r < args.items[i].runBegin + args.items[i].runCount; ++r)
      for (int t = 0; t < args.runs[r].tokens; ++t) {
        const int entry = (args.runs[r].location + t) / args.pageSize, page = args.pageTable[entry];
        if (page < 0 || page >= args.pages)
          *args.wrong = static_cast<unsigned long long>(static_cast<unsigned>(page)) << 32 |
                        static_cast<unsigned>(entry + 1);
      }
}

void checkLists(const abi::ListCheckArgs &args, unsigned queries) {
  for (unsigned query = 0; query < queries; ++query)
    for (int i = 0; i < args.budget; ++i)
      if (const int slot = args.lists[static_cast<long long>(query) * args.budget + i];
          slot < -1 || slot >= args.slots)
        *args.wrong = static_cast<unsigned long long>(static_cast<unsigned>(slot)) << 32 | (query + 1);
}

void writePages(const WritePagesArgs &args) {
  for (unsigned i = 0; i < args.count; ++i)
    args.table[args.changes[i][0]] = args.changes[i][1];
}

} // namespace deft::fake_cuda
