#pragma once

#include "tests/device/RandomItem.h"

#include "deft/select_abi.h"
#include "deft/union_abi.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace deft::test {

/// The lists, handed over or not, or the unions of lists, that a kernel with such a Config reads in place of
/// the runs of random items: some of the tokens of these. Where it reads lists items are to have one query.
template <class Config> class ItemLists {
  static constexpr int kBudget = 1280;
  static constexpr int listsOfQuery() {
    if constexpr (requires { Config::kLists; })
      return Config::kLists;
    else
      return 1;
  }
  static constexpr std::size_t kLists = listsOfQuery();

public:
  static constexpr bool kAreThere = requires { Config::kLists; };
  static constexpr bool kAreUnions = requires { requires Config::kReadsUnions; };
  static constexpr bool kAreGiven = !kAreUnions && requires { requires Config::kListsAreGiven; };
  static constexpr bool kAreTold =
      kAreUnions && Config::kTileKv == 64; ///< their items, as family sm90 wants it

  /// Of `made`, and points `list` and `args`, which are of their runs, to these. `slotOf` gives a token's
  /// place as abi::Selected has it.
  template <class SlotOf>
  void make(std::mt19937 &random, const std::vector<TestItem> &made, const std::vector<int> &caller,
            const SlotOf &slotOf, std::vector<abi::Item> &list, abi::AttendArgs &args) {
    const std::size_t owners = kAreUnions ? made.size() : caller.size();
    readers_.assign(owners * kLists, {});
    counts_.assign(owners * kLists, 0);
    positions_.assign(caller.size() * kLists * kBudget, 0);
    places_.assign(positions_.size(), 0);
    readersOfSlot_.assign(positions_.size(), 0u);
    makePaths(made, caller);
    unions_.clear();
    for (std::size_t i = 0; i < made.size(); ++i) {
      unions_.push_back({made[i].item.queryBegin, made[i].item.queryCount, 0, made[i].item.queryBegin, 0, 1});
      if (made[i].item.tokens > 0)
        makeItem(random, made[i], static_cast<int>(i), caller, slotOf, list[i]);
    }
    memory_ = {{.worth = nullptr,
                .stretches = stretches_.data(),
                .stretchBegin = stretchBegin_.data(),
                .pageTable = args.pageTable,
                .positions = positions_.data(),
                .places = places_.data(),
                .counts = counts_.data(),
                .worthStride = 0,
                .budget = kBudget},
               {unions_.data(), positions_.data(), places_.data(), readersOfSlot_.data(), counts_.data(),
                caller.data()}};
    args.selected = &memory_.selected;
    if constexpr (kAreGiven)
      args.pageTable = places_.data();
    if constexpr (kAreTold) {
      writeItems(list);
      args.runs = reinterpret_cast<const abi::Run *>(&memory_.unions);
      args.pageTable = places_.data();
    }
  }

  /// Slots of lists that are handed over, and what is in none's place.
  const std::vector<int> &slots() const { return places_; }

  /// Whether a query of an item reads the item's token for a head; `caller` is the query's index.
  bool reads(int item, int caller, int query, int head, std::size_t token) const {
    const auto list = static_cast<std::size_t>(kAreUnions ? item : caller) * kLists +
                      static_cast<std::size_t>(head) * kLists / Config::kQueryHeads;
    return (readers_[list][token] >> (kAreUnions ? query : 0) & 1u) != 0;
  }

private:
  /// A path of each query, by callers' indices: its item's runs.
  void makePaths(const std::vector<TestItem> &made, const std::vector<int> &caller) {
    stretches_.clear();
    stretchBegin_.assign(caller.size() + 1, 0);
    for (std::size_t index = 0; index < caller.size(); ++index) {
      const auto at =
          static_cast<int>(std::find(caller.begin(), caller.end(), static_cast<int>(index)) - caller.begin());
      for (const TestItem &one : made)
        if (at >= one.item.queryBegin && at < one.item.queryBegin + one.item.queryCount)
          for (const abi::Run &run : one.runs)
            stretches_.push_back({run.position, run.tokens, run.location, run.depth});
      stretchBegin_[index + 1] = static_cast<int>(stretches_.size());
    }
  }

  /// Where an item's lists begin, for lists of its only query or of all.
  static std::size_t beginOf(const abi::Item &item, int caller, std::size_t list) {
    const auto before = static_cast<std::size_t>(kAreUnions ? item.queryBegin : caller) * kLists;
    return (before + list * (kAreUnions ? static_cast<std::size_t>(item.queryCount) : 1)) * kBudget;
  }

  /// Other tokens for each list. Of lists an item has what is behind others that are not its own, of a union
  /// the only part.
  template <class SlotOf>
  void makeItem(std::mt19937 &random, const TestItem &made, int index, const std::vector<int> &callers,
                const SlotOf &slotOf, abi::Item &item) {
    const int caller = callers[static_cast<std::size_t>(made.item.queryBegin)];
    item.runBegin = kAreUnions ? index : caller;
    item.runCount = 1;
    item.commonTokens = kAreUnions ? 0 : draw(random, 0, 40);
    for (std::size_t list = 0; list < kLists; ++list) {
      const std::size_t own = static_cast<std::size_t>(item.runBegin) * kLists + list;
      const std::size_t begin = beginOf(made.item, caller, list);
      counts_[own] = item.commonTokens;
      const int all = made.item.tokens; // of which a list that is handed over may end sooner
      const int end = kAreGiven && draw(random, 0, 2) == 0 ? draw(random, 0, all) : all;
      for (const ItemToken &token : made.tokens()) {
        const bool isBehind = static_cast<int>(readers_[own].size()) >= end;
        const unsigned readers = kAreUnions ? drawReaders(random, token, made.item.queryCount)
                                            : !isBehind && draw(random, 0, 2) > 0;
        readers_[own].push_back(readers);
        if (readers == 0 && !kAreGiven)
          continue;
        const std::size_t at = begin + static_cast<std::size_t>(counts_[own]++);
        if (readers == 0) { // which a list that is handed over says
          places_[at] = -1;
          continue;
        }
        positions_[at] = token.position;
        places_[at] = slotOf(token);
        readersOfSlot_[at] = readers;
      }
    }
  }

  /// Some of the queries that see the token, often all.
  static unsigned drawReaders(std::mt19937 &random, const ItemToken &token, int queries) {
    unsigned readers = draw(random, 0, 3) == 0 ? ~0u : static_cast<unsigned>(random());
    for (int query = 0; query < 32; ++query)
      if (query < token.queryBegin || query >= token.queryEnd || query >= queries)
        readers &= ~(1u << query);
    return readers;
  }

  /// One for each KV head, in place of each.
  void writeItems(std::vector<abi::Item> &list) const {
    std::vector<abi::Item> told;
    for (const abi::Item &item : list)
      for (std::size_t kvHead = 0; kvHead < Config::kKvHeads; ++kvHead) {
        told.push_back(item);
        told.back().runBegin = told.back().runCount = 0;
        if (item.tokens == 0) // which ends the list
          continue;
        const std::size_t ofList = kvHead * kLists / Config::kKvHeads;
        const int count = counts_[static_cast<std::size_t>(item.runBegin) * kLists + ofList];
        told.back().tokens = std::max(count, 1);
        told.back().commonTokens = count > 0 ? static_cast<int>(beginOf(item, 0, ofList)) : abi::kNoTokens;
      }
    list = std::move(told);
  }

  std::vector<std::vector<unsigned>>
      readers_; ///< of each list, for each of the item's tokens: bits of queries
  std::vector<abi::PathStretch> stretches_;
  std::vector<int> stretchBegin_, positions_, places_, counts_;
  std::vector<unsigned> readersOfSlot_;
  std::vector<abi::Union> unions_;
  struct {
    abi::Selected selected;
    abi::Unions unions; ///< behind it, as in a plan
  } memory_{};
};

/// Elements of 16 bits that each token of a cache has, from a tensor's beginning on.
struct TokenElements {
  const void *tensor;
  const abi::CacheLayout &layout;
  int count;
};
/// Tokens of a latent cache that no list has become NaN, in both of its parts.
template <int kPage>
void poisonUnread(const std::vector<int> &lists, int slots, const TokenElements &latent,
                  const TokenElements &rope) {
  for (int slot = 0; slot < slots; ++slot) {
    if (std::find(lists.begin(), lists.end(), slot) != lists.end())
      continue;
    for (const TokenElements &part : {latent, rope}) {
      constexpr int kSlots = std::max(kPage, 1);
      const long long row =
          kPage == 0 ? slot * part.layout.tokenStride
                     : slot / kSlots * part.layout.pageStride + slot % kSlots * part.layout.tokenStride;
      auto *to = static_cast<std::uint16_t *>(const_cast<void *>(part.tensor)) + row;
      std::fill(to, to + part.count, std::uint16_t{0x7fff});
    }
  }
}

} // namespace deft::test
