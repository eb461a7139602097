#include "runtime/plan/Verify.h"

#include "runtime/plan/Deal.h"
#include "runtime/plan/Slope.h"
#include "runtime/tree/Places.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace deft::plan {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error broken(const std::string &what) { return Error{ErrorCode::Internal, "broken plan: " + what, ""}; }

std::string name(const char *what, std::size_t index) { return what + (" " + std::to_string(index)); }

/// A stretch of a query's path that an item covers.
struct Stretch {
  int position, tokens, location, depth;
  int slot; ///< of the query's partial, -1: written directly
};

class Verifier {
public:
  Verifier(const Plan &plan, const tree::KvTree &tree, const VariantFacts &facts,
           const config::Config &config)
      : plan_(plan), tree_(tree), facts_(facts), config_(config), stretches_(plan.callerIndex.size()),
        directWrites_(plan.callerIndex.size(), 0), slotTaken_(std::max(plan.partialSlots, 0), false) {}

  Result<void> run() {
    for (auto check : {&Verifier::checkQueries, &Verifier::checkPhases, &Verifier::checkItems,
                       &Verifier::checkPaths, &Verifier::checkMergeMap})
      if (auto checked = (this->*check)(); !checked)
        return checked;
    return {};
  }

private:
  const tree::Query &query(std::size_t planIndex) const {
    return tree_.queries()[plan_.callerIndex[planIndex]];
  }

  Result<void> checkQueries() {
    if (plan_.generation != tree_.generation())
      return broken("made for another generation of the tree");
    std::vector<int> sorted = plan_.callerIndex;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() != tree_.queries().size() || plan_.queryPos.size() != sorted.size())
      return broken("not as many queries as the tree");
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int>(i))
        return broken("callerIndex is no permutation");
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (plan_.queryPos[i] != tree_.pathTokens(query(i)) - 1)
        return broken(name("wrong queryPos of query", i));
    return {};
  }

  Result<void> checkPhases() {
    if (plan_.phases.size() != config_.phases.size())
      return broken("not as many phases as the config");
    int next = 0;
    for (std::size_t p = 0; p < plan_.phases.size(); ++p) {
      const Plan::Phase &phase = plan_.phases[p];
      if (phase.itemBegin != next || phase.itemCount < 0)
        return broken(name("items are not contiguous at phase", p));
      next += phase.itemCount;
      if (next > static_cast<int>(plan_.items.size()))
        return broken(name("more items than there are in phase", p));
      for (int i = phase.itemBegin; i < next; ++i) {
        if (plan_.items[i].queryCount * facts_.ratio > config_.phases[p].tileQ)
          return broken(name("more rows than tile_q in item", i));
        if (!phase.isSpread && i > phase.itemBegin &&
            plan_.items[i].tokens > plan_.items[i - 1].tokens + plan_.grownTokens)
          return broken(name("not heaviest first at item", i));
      }
    }
    if (next != static_cast<int>(plan_.items.size()))
      return broken("items without a phase");
    return {};
  }

  Result<void> checkItems() {
    int tableTokens = 0;
    for (std::size_t i = 0; i < plan_.items.size(); ++i) {
      const abi::Item &item = plan_.items[i];
      if (item.queryBegin < 0 || item.queryCount <= 0 ||
          item.queryBegin + item.queryCount > plan_.queryCount())
        return broken(name("queries out of range in item", i));
      if (item.runBegin < 0 || item.runCount <= 0 ||
          item.runBegin + item.runCount > static_cast<int>(plan_.runs.size()))
        return broken(name("runs out of range in item", i));
      if (config_.chunkTokens > 0 && item.tokens > (config_.chunkTokens + 15) / 16 * 16 + plan_.grownTokens)
        return broken(name("more tokens than a chunk in item", i));
      int tokens = 0;
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
        const abi::Run &run = plan_.runs[r];
        if (run.tokens <= 0 || run.begin != tokens)
          return broken(name("empty or misplaced run", r));
        if (run.queryBegin < 0 || run.queryBegin >= run.queryEnd || run.queryEnd > item.queryCount)
          return broken(name("readers out of range in run", r));
        if (run.slope < 0 || run.slope * (run.tokens - 1) >= run.queryEnd - run.queryBegin)
          return broken(name("a token that nobody sees in run", r));
        tokens += run.tokens;
        tableTokens = std::max(tableTokens, run.location + run.tokens);
        for (int q = run.queryBegin; q < run.queryEnd; ++q)
          stretches_[item.queryBegin + q].push_back({run.position, tokensSeen(run, q), run.location,
                                                     run.depth,
                                                     item.partialBegin < 0 ? -1 : item.partialBegin + q});
      }
      if (tokens != item.tokens)
        return broken(name("wrong sum of tokens in item", i));
      if (item.dealtTiles != 0 && !isDealtToOwners(item))
        return broken(name("tokens dealt to others than see them in item", i));
      for (int q = 0; q < item.queryCount; ++q) {
        if (item.partialBegin < 0) {
          ++directWrites_[item.queryBegin + q];
          continue;
        }
        const int slot = item.partialBegin + q;
        if (slot >= plan_.partialSlots || slotTaken_[slot])
          return broken(name("partial slot out of range or used twice in item", i));
        slotTaken_[slot] = true;
      }
    }
    if (tableTokens != plan_.tableTokens)
      return broken("wrong end of the page table");
    return {};
  }

  bool isDealtToOwners(const abi::Item &item) const {
    const std::span runs(plan_.runs.data() + item.runBegin, static_cast<std::size_t>(item.runCount));
    if (!haveAllWarps(item.queryCount * facts_.ratio) || !isDealtRight(item, runs))
      return false;
    const auto begins = dealtBegins(runs);
    for (int w = 0; w < kDealtWarps; ++w)
      for (int r = begins[w]; r < begins[w + 1]; ++r)
        if (ownerOf(runs[r], facts_.ratio) != w)
          return false;
    return true;
  }

  /// Whether a query at q_pos may see any of the positions [begin, end).
  bool maySee(int qPos, int begin, int end) const { return facts_.reach.firstFrom(qPos, begin) < end; }

  /// The sorted stretches of a query must be disjoint, contain every position that it may see, and lie where
  /// the nodes say.
  Result<void> checkPaths() {
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      std::vector<Stretch> &stretches = stretches_[i];
      std::sort(stretches.begin(), stretches.end(),
                [](const Stretch &a, const Stretch &b) { return a.position < b.position; });
      if (tree_.ranks()) {
        if (auto checked = checkHeld(i); !checked)
          return checked;
        continue;
      }
      std::vector<const tree::Node *> path;
      for (int node = query(i).node; node >= 0; node = tree_.nodes()[node].parent)
        path.insert(path.begin(), &tree_.nodes()[node]);
      int seen = 0;
      std::size_t at = 0;
      for (const Stretch &stretch : stretches) {
        if (stretch.position < seen)
          return broken(name("tokens twice in the path of query", i));
        if (maySee(plan_.queryPos[i], seen, stretch.position))
          return broken(name("a gap in the path of query", i));
        seen = stretch.position;
        while (at < path.size() && path[at]->position + path[at]->tokens <= seen)
          ++at;
        if (at == path.size())
          return broken(name("tokens beyond the path of query", i));
        const tree::Node &node = *path[at];
        seen += stretch.tokens;
        if (seen > node.position + node.tokens)
          return broken(name("a run over two nodes in the path of query", i));
        if (stretch.location != node.location + stretch.position - node.position ||
            stretch.depth != node.depth)
          return broken(name("wrong location or depth in the path of query", i));
      }
      const int end = facts_.reach.seesPath() ? tree_.pathEnd(query(i)) : tree_.pathTokens(query(i));
      if (seen > end || maySee(plan_.queryPos[i], seen, end))
        return broken(name("wrong number of tokens in the path of query", i));
    }
    return {};
  }

  struct Token {
    int location, position, depth;
    bool isNeeded;
    bool operator<(const Token &other) const { return location < other.location; }
  };

  /// With ranks: a query must read every token that it may see and that this rank holds exactly once.
  Result<void> checkHeld(std::size_t i) {
    const tree::Ranks &ranks = *tree_.ranks();
    const int qPos = plan_.queryPos[i];
    const int end = facts_.reach.seesPath() ? tree_.pathEnd(query(i)) : tree_.pathTokens(query(i));
    std::vector<Token> held, read;
    std::vector<tree::HeldTokens> parts;
    for (int node = query(i).node; node >= 0; node = tree_.nodes()[node].parent) {
      const tree::Node &own = tree_.nodes()[node];
      parts.clear();
      ranks.find(node, own.location, 0, std::min(own.tokens, end - own.position), /*mayJoin=*/false, parts);
      for (const tree::HeldTokens &part : parts)
        for (int t = 0; t < part.tokens; ++t) {
          const int position = own.position + part.begin + t;
          held.push_back({part.location + t, position, own.depth, maySee(qPos, position, position + 1)});
        }
    }
    for (const Stretch &stretch : stretches_[i])
      for (int t = 0; t < stretch.tokens; ++t)
        read.push_back({stretch.location + t, stretch.position + t, stretch.depth, true});
    std::sort(held.begin(), held.end());
    std::sort(read.begin(), read.end());
    auto at = held.begin();
    for (const Token &token : read) {
      for (; at != held.end() && at->location < token.location; ++at)
        if (at->isNeeded)
          return broken(name("a token that the rank holds is not read by query", i));
      if (at == held.end() || at->location != token.location)
        return broken(name("tokens twice, or that the rank does not hold, read by query", i));
      if (at->depth != token.depth || (facts_.readsKvPos && at->position != token.position))
        return broken(name("wrong position or depth in the path of query", i));
      ++at;
    }
    if (std::any_of(at, held.end(), [](const Token &token) { return token.isNeeded; }))
      return broken(name("a token that the rank holds is not read by query", i));
    return {};
  }

  Result<void> checkMergeMap() {
    if (plan_.mergeBegin.size() != plan_.mergeQuery.size() + 1 || plan_.mergeBegin.front() != 0 ||
        plan_.mergeBegin.back() != static_cast<int>(plan_.mergeSlot.size()))
      return broken("mergeBegin does not bracket mergeSlot");
    std::vector<int> writes = directWrites_;
    for (std::size_t m = 0; m < plan_.mergeQuery.size(); ++m) {
      const int q = plan_.mergeQuery[m];
      if (q < 0 || q >= plan_.queryCount() || plan_.mergeBegin[m] > plan_.mergeBegin[m + 1])
        return broken(name("out of range: merge entry", m));
      ++writes[q];
      std::vector<int> expected;
      for (const Stretch &stretch : stretches_[q])
        if (expected.empty() || expected.back() != stretch.slot)
          expected.push_back(stretch.slot);
      const auto begin = plan_.mergeSlot.begin();
      if (!std::equal(begin + plan_.mergeBegin[m], begin + plan_.mergeBegin[m + 1], expected.begin(),
                      expected.end()))
        return broken(name("not the query's partials in path order: merge entry", m));
    }
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (writes[i] != 1)
        return broken("output of " + name("query", i) + " written " + std::to_string(writes[i]) + " times");
    return {};
  }

  const Plan &plan_;
  const tree::KvTree &tree_;
  const VariantFacts &facts_;
  const config::Config &config_;
  std::vector<std::vector<Stretch>> stretches_; ///< for each query, in plan order
  std::vector<int> directWrites_;
  std::vector<bool> slotTaken_;
};

} // namespace

Result<void> verify(const Plan &plan, const tree::KvTree &tree, const VariantFacts &facts,
                    const config::Config &config, const VerifyOptions &options) {
  if (options.checkPlaces)
    if (auto checked = tree::checkPlaces(tree); !checked)
      return checked;
  return Verifier(plan, tree, facts, config).run();
}

} // namespace deft::plan
