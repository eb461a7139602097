#include "tests/support/FakeKernels.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace deft::fake_cuda {

namespace {

/// Of lists that a caller hands over: a slot once for all that list it, and once for each that lists it
/// again.
void uniteGiven(const abi::UniteArgs &args, unsigned blocks) {
  const int budget = args.selected->budget;
  for (unsigned block = 0; block < blocks; ++block) {
    const abi::Union &one = args.unions.unions[block];
    if (one.queryCount == 0)
      return;
    const auto begin = static_cast<int>(beginOf(one, 1, 0, budget));
    std::vector<std::pair<int, unsigned>> tokens; // slots, and who reads them
    std::map<int, std::size_t> firstOf;
    for (int query = 0; query < one.queryCount; ++query) {
      const int *list = args.pageTable + args.unions.callerIndex[one.queryBegin + query] * budget;
      const unsigned reader = 1u << query;
      for (int i = 0; i < budget; ++i) {
        if (list[i] < 0)
          continue;
        const auto [known, isNew] = firstOf.try_emplace(list[i], tokens.size());
        if (isNew || (tokens[known->second].second & reader) != 0)
          tokens.emplace_back(list[i], reader);
        else
          tokens[known->second].second |= reader;
      }
    }
    const auto count = static_cast<int>(tokens.size());
    for (int t = 0; t < count; ++t) {
      args.unions.places[begin + t] = tokens[static_cast<std::size_t>(t)].first;
      args.unions.readers[begin + t] = tokens[static_cast<std::size_t>(t)].second;
    }
    args.unions.counts[block] = count;
    const int part = (count + one.parts - 1) / one.parts;
    for (int i = 0; i < one.parts; ++i) {
      abi::Item &item = args.items[one.itemBegin + i];
      const int own = std::clamp(count - i * part, 0, part);
      item.tokens = std::max(own, 1);
      item.commonTokens = own > 0 ? begin + i * part : abi::kNoTokens;
    }
  }
}

} // namespace

void unite(const Variant &variant, const abi::UniteArgs &args, unsigned blocks) {
  const int lists = listsOf(variant);
  const abi::Selected &selected = *args.selected;
  if (selected.counts == nullptr)
    return uniteGiven(args, blocks);
  for (unsigned block = 0; block < blocks; ++block) {
    const abi::Union &one = args.unions.unions[static_cast<int>(block) / lists];
    if (one.queryCount == 0)
      return;
    const int list = static_cast<int>(block) % lists;
    const long long begin = beginOf(one, lists, list, selected.budget);
    long long to = begin;
    const auto forOwn = [&](int query, const auto &f) {
      const long long own =
          static_cast<long long>(args.unions.callerIndex[one.queryBegin + query]) * lists + list;
      for (int slot = 0; slot < selected.counts[own]; ++slot)
        f(own * selected.budget + slot);
    };
    std::map<int, std::pair<int, unsigned>> shared; // of positions: the place, and who reads it
    for (int query = 0; query < one.queryCount; ++query)
      forOwn(query, [&](long long at) {
        if (selected.positions[at] < one.sharedEnd) {
          auto &[place, readers] = shared[selected.positions[at]];
          if (readers != 0 && place != selected.places[at])
            throw std::logic_error("what is shared lies in two places");
          place = selected.places[at];
          readers |= 1u << query;
        }
      });
    const auto write = [&](int position, int place, unsigned readers) {
      args.unions.positions[to] = position;
      args.unions.places[to] = place;
      args.unions.readers[to++] = readers;
    };
    for (const auto &[position, token] : shared)
      write(position, token.first, token.second);
    for (int query = 0; query < one.queryCount; ++query)
      forOwn(query, [&](long long at) {
        if (selected.positions[at] >= one.sharedEnd)
          write(selected.positions[at], selected.places[at], 1u << query);
      });
    const int count = static_cast<int>(to - begin);
    args.unions.counts[block] = count;
    if (args.items == nullptr)
      continue;
    const int heads = variant.kvHeads / lists, part = (count + one.parts - 1) / one.parts;
    for (int i = 0; i < one.parts; ++i)
      for (int head = list * heads; head < (list + 1) * heads; ++head) {
        abi::Item &item = args.items[one.itemBegin + i * variant.kvHeads + head];
        const int tokens = std::clamp(count - i * part, 0, part);
        item.tokens = std::max(tokens, 1);
        item.commonTokens = tokens > 0 ? static_cast<int>(begin) + i * part : abi::kNoTokens;
      }
  }
}

} // namespace deft::fake_cuda
