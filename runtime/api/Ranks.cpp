#include "runtime/api/Ranks.h"

#include "runtime/api/Checks.h"
#include "runtime/api/SequenceTree.h"
#include "runtime/api/Sized.h"
#include "runtime/api/Tree.h"
#include "runtime/tree/Places.h"

#include <utility>

using namespace deft;
using namespace deft::api;

namespace deft::api {

static_assert(DEFT_MOST_RANKS == tree::Ranks::kMost);
static_assert(DEFT_NO_HOLDER == tree::Ranks::kNobody);
static_assert(DEFT_RANKS_BY_NODE == static_cast<int>(tree::RankLayout::ByNode));

Result<tree::Ranks> ranksOf(const deft_ranks *given) {
  const auto known = readSized("deft_ranks", given);
  if (!known)
    return known.error();
  for (const auto &[name, value, least, most] :
       {std::tuple<const char *, std::int64_t, std::int64_t, std::int64_t>("count", known->count, 1,
                                                                           DEFT_MOST_RANKS),
        {"rank", known->rank, 0, std::int64_t{known->count} - 1},
        {"layout", known->layout, DEFT_RANKS_INTERLEAVED, DEFT_RANKS_BY_NODE}})
    if (auto checked = checkRange(std::string("deft_ranks::") + name, value, least, most); !checked)
      return checked.error();
  if (auto checked = checkArray("deft_ranks::holders", known->holders, known->holder_count); !checked)
    return checked.error();
  const bool isByNode = known->layout == DEFT_RANKS_BY_NODE;
  std::vector<int> holders;
  if (known->holders)
    holders.assign(known->holders, known->holders + known->holder_count);
  return tree::Ranks::make(known->count, known->rank, static_cast<tree::RankLayout>(known->layout),
                           isByNode ? 1 : known->unit, std::move(holders));
}

std::string whyNotOverRanks(const spec::Variant &variant) {
  const std::string name = variant.called() + " ";
  if (variant.select)
    return name + "selects tokens, and a rank has only some of them";
  if (variant.sink)
    return name + "has sinks, which each rank would count";
  if (variant.changesRows())
    return name + "has an `output` hook, which each rank would apply to its part";
  return {};
}

} // namespace deft::api

deft_status deft_tree_set_ranks(deft_tree *tree, const deft_ranks *ranks) {
  return call({{"tree", tree}}, [&]() -> Result<void> {
    if (tree->isView())
      return wrong("tree", "belongs to sequences, a batch or beams, and only they may change it",
                   "set the ranks of the handle that gave it");
    std::optional<tree::Ranks> own;
    if (ranks) {
      auto known = ranksOf(ranks);
      if (!known)
        return known.error();
      own = std::move(*known);
    }
    const NotedChange noted(*tree);
    tree->change().setRanks(std::move(own));
    return {};
  });
}

deft_status deft_sequence_tree_set_ranks(deft_sequence_tree *sequences, const deft_ranks *ranks) {
  return call({{"sequences", sequences}, {"ranks", ranks}}, [&]() -> Result<void> {
    auto own = ranksOf(ranks);
    if (!own)
      return own.error();
    if (own->layout() != tree::RankLayout::Interleaved)
      return wrong("deft_ranks::layout",
                   "is " + std::to_string(ranks->layout) + ", sequences are interleaved");
    const int pageSize = sequences->sequences.pool().pageSize(), all = own->unit() * own->count();
    if (pageSize % all != 0)
      return wrong("deft_ranks::unit",
                   "is " + std::to_string(own->unit()) + ", and a page of " + std::to_string(pageSize) +
                       " tokens cannot be dealt to " + std::to_string(own->count()) + " ranks by it",
                   "a page of the pool has page_size * count tokens");
    const NotedChange noted(sequences->view);
    sequences->sequences.setRanks(std::move(*own));
    return {};
  });
}

deft_status deft_tree_propose_holders(const deft_tree *tree, int32_t count, int32_t page_size,
                                      int32_t **holders, size_t *holder_count) {
  clear(holders);
  return call({{"tree", tree}, {"holders", holders}, {"holder_count", holder_count}}, [&]() -> Result<void> {
    if (auto checked = checkRange("count", count, 1, DEFT_MOST_RANKS); !checked)
      return checked;
    if (auto checked = checkRange("page_size", page_size, 1, 1 << 20); !checked)
      return checked;
    if (auto placed = tree::checkPlaced(tree->tree()); !placed)
      return placed;
    giveArray(tree::proposeHolders(tree->tree(), count, page_size), holders, holder_count,
              [](int holder) { return holder; });
    return {};
  });
}
