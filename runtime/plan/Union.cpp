#include "runtime/plan/Tiles.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// Below this a tile always takes the next query: the tokens fit one step of a kernel.
constexpr int kStepTokens = 64;

/// A query joins a tile when it shares at least 1/8 of what it adds. Cutting there reads at most an
/// eighth more, and what would be a chain of masked runs becomes items of their own.
constexpr int kJoinFactor = 8;

class UnionTiles {
public:
  UnionTiles(const tree::KvTree &tree, const tree::QueryOrder &order)
      : tree_(tree), order_(order), tileOfNode_(tree.nodes().size(), -1), above_(tree.nodes().size()) {
    // Nodes without tokens make no runs; jumping over them keeps the walks as short as the runs.
    for (std::size_t i = 0; i < above_.size(); ++i) {
      const int parent = tree.nodes()[i].parent;
      above_[i] = parent < 0 || tree.nodes()[parent].tokens > 0 ? parent : above_[parent];
    }
  }

  TileList make(int queriesPerTile) {
    const int queryCount = static_cast<int>(order_.callerIndex.size());
    for (int i = 0; i < queryCount; ++i) {
      findNewNodes(i);
      const bool isFirst = i == tileBegin_;
      if (!isFirst && (i - tileBegin_ == queriesPerTile || !isWorthJoining(i))) {
        finishTile(i);
        findNewNodes(i);
      }
      takeNewNodes();
    }
    if (tileBegin_ < queryCount)
      finishTile(queryCount);
    return std::move(list_);
  }

private:
  const tree::Query &query(int planIndex) const { return tree_.queries()[order_.callerIndex[planIndex]]; }
  int tileIndex() const { return static_cast<int>(list_.tiles.size()); }

  /// The nodes on the query's path that the open tile does not have yet, leaf first. All of them come
  /// after the tile's nodes in preorder, because queries are visited depth-first.
  void findNewNodes(int planIndex) {
    newNodes_.clear();
    newTokens_ = 0;
    const tree::Query &q = query(planIndex);
    int node = q.node;
    if (tree_.nodes()[node].tokens == 0)
      node = above_[node];
    for (; node >= 0 && tileOfNode_[node] != tileIndex(); node = above_[node]) {
      newNodes_.push_back(node);
      newTokens_ += node == q.node ? q.position : tree_.nodes()[node].tokens;
    }
  }

  bool isWorthJoining(int planIndex) const {
    const std::int64_t shared = tree_.pathTokens(query(planIndex)) - newTokens_;
    return tileTokens_ + newTokens_ <= kStepTokens || shared * kJoinFactor >= newTokens_;
  }

  void takeNewNodes() {
    tileNodes_.insert(tileNodes_.end(), newNodes_.rbegin(), newNodes_.rend());
    for (int node : newNodes_)
      tileOfNode_[node] = tileIndex();
    tileTokens_ += newTokens_;
  }

  /// Closes the tile of the queries [tileBegin_, end).
  void finishTile(int end) {
    Tile tile;
    tile.queryBegin = tileBegin_;
    tile.queryCount = end - tileBegin_;
    tile.runBegin = static_cast<int>(list_.runs.size());
    for (int node : tileNodes_)
      addRuns(node, end, tile.tokens);
    tile.runCount = static_cast<int>(list_.runs.size()) - tile.runBegin;
    list_.tiles.push_back(tile);
    tileNodes_.clear();
    tileTokens_ = 0;
    tileBegin_ = end;
  }

  /// The runs of one node: cut where a query of the tile ends inside it. Readers of a stretch are the own
  /// queries that reach its end and all queries below the node.
  void addRuns(int node, int tileEnd, int &tileTokens) {
    const tree::Node &facts = tree_.nodes()[node];
    const int ownBegin = std::max(order_.ownBegin[node], tileBegin_);
    const int ownEnd = std::min(order_.ownEnd[node], tileEnd);
    const int readersEnd = std::min(order_.subtreeEnd[node], tileEnd);
    int done = 0; // tokens of the node
    const auto addRun = [&](int until, int firstReader) {
      if (until <= done)
        return;
      abi::Run run{};
      run.begin = tileTokens;
      run.tokens = until - done;
      run.location = facts.location + done;
      run.position = facts.position + done;
      run.depth = facts.depth;
      run.queryBegin = firstReader - tileBegin_;
      run.queryEnd = readersEnd - tileBegin_;
      list_.runs.push_back(run);
      tileTokens += run.tokens;
      done = until;
    };
    for (int i = ownBegin; i < ownEnd; ++i)
      addRun(query(i).position, i);
    const int firstBelow = std::max(order_.ownEnd[node], tileBegin_);
    if (firstBelow < readersEnd)
      addRun(facts.tokens, firstBelow);
  }

  const tree::KvTree &tree_;
  const tree::QueryOrder &order_;
  std::vector<int> tileOfNode_; ///< the last tile that has the node
  std::vector<int> above_;      ///< nearest ancestor that has tokens
  TileList list_;
  int tileBegin_ = 0;
  std::vector<int> tileNodes_; ///< of the open tile, in preorder
  std::int64_t tileTokens_ = 0;
  std::vector<int> newNodes_;
  std::int64_t newTokens_ = 0;
};

} // namespace

TileList makeUnionTiles(const tree::KvTree &tree, const tree::QueryOrder &order, int queriesPerTile) {
  return UnionTiles(tree, order).make(queriesPerTile);
}

} // namespace deft::plan
