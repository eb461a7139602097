#include "runtime/capture/StepTree.h"

#include "runtime/tree/TreeFile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

namespace deft::capture {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(std::string message) { return {ErrorCode::Diagnostics, std::move(message), ""}; }

/// The draft above each draft; -1: the request's own tokens. An error where the rows are no tree's.
Result<std::vector<int>> parentsOf(const Drafts &drafts) {
  std::vector<int> parents;
  const std::string name = "request " + std::to_string(drafts.request.request);
  if (drafts.sees.empty())
    return wrong("which drafts of " + name + " see which is not in the file: only the GPU knew it");
  for (std::size_t draft = 0; draft < drafts.sees.size(); ++draft) {
    std::vector<int> above = drafts.sees[draft];
    const auto self = std::find(above.begin(), above.end(), static_cast<int>(draft));
    const Error noTree =
        wrong("the drafts of " + name + " are no tree: look at the row of draft " + std::to_string(draft));
    if (self == above.end() || !std::is_sorted(above.begin(), above.end()))
      return noTree;
    above.erase(self);
    int parent = -1;
    for (const int one : above)
      if (parent < 0 || drafts.sees[static_cast<std::size_t>(one)].size() >
                            drafts.sees[static_cast<std::size_t>(parent)].size())
        parent = one;
    if (parent >= 0 ? drafts.sees[static_cast<std::size_t>(parent)] != above : !above.empty())
      return noTree;
    if (!drafts.depths.empty() && drafts.depths[draft] != static_cast<int>(above.size()))
      return wrong("draft " + std::to_string(draft) + " of " + name + " has depth " +
                   std::to_string(drafts.depths[draft]) + " and " + std::to_string(above.size()) +
                   " drafts above it: a tree has no such positions");
    parents.push_back(parent);
  }
  return parents;
}

/// Makes the step's tree out of the host's.
class RealTree {
public:
  explicit RealTree(const Step &step)
      : step_(step), host_(step.tree), queries_(host_.queries()), gained_(host_.nodes().size()),
        isStandIn_(host_.nodes().size()), newNode_(host_.nodes().size(), -1) {}

  Result<tree::KvTree> make() {
    if (auto found = findStandIns(); !found)
      return found.error();
    if (auto grown = findGrowth(); !grown)
      return grown.error();
    for (std::size_t node = 0; node < host_.nodes().size(); ++node) {
      const tree::Node &own = host_.nodes()[node];
      if (isStandIn_[node])
        continue;
      const int parent = own.parent < 0 ? -1 : newNode_[static_cast<std::size_t>(own.parent)];
      if (own.parent >= 0 && parent < 0)
        return wrong("a node of `tree` hangs below a draft");
      auto added = tree_.addNode(parent, own.tokens + gained_[node], own.location);
      if (!added)
        return added.error();
      newNode_[node] = *added;
    }
    for (const Drafts &drafts : step_.drafts)
      if (auto added = addDrafts(drafts); !added)
        return added.error();
    for (std::size_t query = 0; query < queries_.size(); ++query) {
      const tree::Query &own = queries_[query];
      const bool isDraft = ofDraft_.contains(static_cast<int>(query));
      const auto position =
          isDraft || own.position == tree::Query::kWhole ? std::nullopt : std::optional(own.position);
      const int node =
          isDraft ? ofDraft_[static_cast<int>(query)] : newNode_[static_cast<std::size_t>(own.node)];
      if (node < 0)
        return wrong("a query of `tree` belongs to the stand-in of a draft");
      if (auto added = tree_.addQuery(node, position); !added)
        return added.error();
    }
    return std::move(tree_);
  }

private:
  static constexpr int kUnknown = -2; ///< neither a node nor the place above all

  /// Leaves that stand for drafts, and the node above each request's.
  Result<void> findStandIns() {
    for (const Drafts &drafts : step_.drafts) {
      const tree::DraftedRequest &request = drafts.request;
      int above = kUnknown;
      for (int query = request.firstQuery; query < request.firstQuery + request.count; ++query) {
        const int node = queries_[static_cast<std::size_t>(query)].node;
        const tree::Node &own = host_.nodes()[static_cast<std::size_t>(node)];
        if (own.firstChild >= 0 || (above != kUnknown && above != own.parent))
          return wrong("the drafts of request " + std::to_string(request.request) +
                       " do not hang below one node");
        above = own.parent;
        isStandIn_[static_cast<std::size_t>(node)] = true;
      }
      aboveDrafts_.push_back(above);
      if (drafts.gained == 0)
        continue;
      if (above < 0)
        return wrong("request " + std::to_string(request.request) + " gained tokens and has none");
      gained_[static_cast<std::size_t>(above)] += drafts.gained;
    }
    return {};
  }

  Result<void> findGrowth() {
    std::vector<int> ownQueries(host_.nodes().size());
    for (const tree::Query &query : queries_)
      ++ownQueries[static_cast<std::size_t>(query.node)];
    for (std::size_t query = 0; query < step_.lengths.size(); ++query) {
      const tree::Query &own = queries_[query];
      const int more = step_.lengths[query] - host_.pathTokens(own);
      if (more == 0)
        continue;
      const tree::Node &node = host_.nodes()[static_cast<std::size_t>(own.node)];
      const bool isOnly = ownQueries[static_cast<std::size_t>(own.node)] == 1;
      if (more < 0 || node.firstChild >= 0 || !isOnly || host_.seenTokens(own) != node.tokens)
        return wrong("query " + std::to_string(query) + " has " + std::to_string(step_.lengths[query]) +
                     " tokens on the device and " + std::to_string(host_.pathTokens(own)) +
                     " in `tree`, which is not how a leaf grows");
      if (std::int64_t{node.tokens} + more > tree::KvTree::kMaxTokens)
        return wrong("query " + std::to_string(query) + " has too many tokens");
      gained_[static_cast<std::size_t>(own.node)] = more;
      if (own.position != tree::Query::kWhole)
        queries_[query].position = own.position + more;
    }
    return {};
  }

  Result<void> addDrafts(const Drafts &drafts) {
    const auto parents = parentsOf(drafts);
    if (!parents)
      return parents.error();
    const std::size_t number = static_cast<std::size_t>(&drafts - step_.drafts.data());
    const int above = aboveDrafts_[number];
    const int end = above < 0 ? -1 : newNode_[static_cast<std::size_t>(above)];
    // A draft has fewer drafts above it than those below it: parents come first by these numbers.
    std::vector<int> order(parents->size()), nodes(parents->size(), -1);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return drafts.sees[static_cast<std::size_t>(a)].size() <
             drafts.sees[static_cast<std::size_t>(b)].size();
    });
    for (const int draft : order) {
      const int parent = (*parents)[static_cast<std::size_t>(draft)];
      const std::int64_t location = std::int64_t{drafts.request.location} + drafts.gained + draft;
      if (location >= tree::KvTree::kMaxTokens)
        return wrong("a draft lies outside of any cache");
      auto added = tree_.addNode(parent < 0 ? end : nodes[static_cast<std::size_t>(parent)], 1,
                                 static_cast<int>(location));
      if (!added)
        return added.error();
      nodes[static_cast<std::size_t>(draft)] = ofDraft_[drafts.request.firstQuery + draft] = *added;
    }
    return {};
  }

  const Step &step_;
  const tree::KvTree &host_;
  std::vector<tree::Query> queries_;
  std::vector<int> gained_;
  std::vector<bool> isStandIn_;
  std::vector<int> newNode_, aboveDrafts_;
  std::map<int, int> ofDraft_; ///< the node of each draft's query
  tree::KvTree tree_;
};

/// The page that an entry names; -1: none.
int pageAt(const std::vector<PageStretch> &table, int entry) {
  const auto behind = std::upper_bound(table.begin(), table.end(), entry,
                                       [](int at, const PageStretch &one) { return at < one.entry; });
  if (behind == table.begin())
    return -1;
  const PageStretch &one = *std::prev(behind);
  return entry < one.entry + one.count ? one.page + (entry - one.entry) : -1;
}

/// The rank of a value among these, which are in rising order.
int rankOf(const std::vector<int> &values, int value) {
  return static_cast<int>(std::lower_bound(values.begin(), values.end(), value) - values.begin());
}

} // namespace

Result<tree::KvTree> inFileOrder(const tree::KvTree &tree) {
  tree::KvTree ordered;
  std::vector<int> number(tree.nodes().size(), -1);
  for (const int node : tree::nodesInFileOrder(tree)) {
    const tree::Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    auto added = ordered.addNode(own.parent < 0 ? -1 : number[static_cast<std::size_t>(own.parent)],
                                 own.tokens, own.location);
    if (!added)
      return added.error();
    number[static_cast<std::size_t>(node)] = *added;
  }
  std::vector<tree::Query> queries = tree.queries();
  for (tree::Query &query : queries)
    query.node = number[static_cast<std::size_t>(query.node)];
  if (auto set = ordered.setQueries(queries); !set)
    return set.error();
  return ordered;
}

Result<tree::KvTree> treeOf(const Step &step) { return RealTree(step).make(); }

std::vector<int> entriesOf(const tree::KvTree &tree, int pageSize) {
  std::vector<int> entries;
  for (const tree::Node &node : tree.nodes()) {
    if (!node.isAlive || node.tokens == 0)
      continue;
    for (int entry = node.location / pageSize; entry <= (node.location + node.tokens - 1) / pageSize; ++entry)
      entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

std::vector<PageStretch> stretchesOf(const std::vector<int> &entries, const std::vector<int> &pages) {
  std::vector<PageStretch> table;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (pages[i] < 0)
      continue;
    if (!table.empty()) {
      PageStretch &last = table.back();
      if (last.entry + last.count == entries[i] && last.page + last.count == pages[i]) {
        ++last.count;
        continue;
      }
    }
    table.push_back({entries[i], pages[i], 1});
  }
  return table;
}

Result<StepPlace> placeStep(const Step &step, tree::KvTree &tree) {
  StepPlace place;
  if (step.pageSize == 0 || !step.pageTable) {
    auto placed = tree::placeInCache(tree, {.pageSize = step.pageSize});
    if (!placed)
      return placed.error();
    place.cache = std::move(*placed);
    return place;
  }
  const int pageSize = step.pageSize;
  const std::vector<int> entries = entriesOf(tree, pageSize);
  std::vector<int> pages, named;
  for (const int entry : entries) {
    pages.push_back(pageAt(*step.pageTable, entry));
    if (pages.back() >= 0)
      named.push_back(pages.back());
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  for (std::size_t node = 0; node < tree.nodes().size(); ++node) {
    const tree::Node &own = tree.nodes()[node];
    if (!own.isAlive)
      continue;
    const int location =
        own.tokens == 0 ? 0 : rankOf(entries, own.location / pageSize) * pageSize + own.location % pageSize;
    if (auto placed = tree.place(static_cast<int>(node), location); !placed)
      return placed.error();
  }
  place.isAsCaptured = true;
  place.cache.pageSize = pageSize;
  for (const int page : pages)
    place.cache.pageTable.push_back(page >= 0 ? rankOf(named, page)
                                              : static_cast<int>(named.size()) + place.pagesAdded++);
  place.cache.poolPages = static_cast<int>(named.size()) + place.pagesAdded;
  return place;
}

} // namespace deft::capture
