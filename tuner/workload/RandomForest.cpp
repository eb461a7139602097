#include "tuner/workload/Recipes.h"

#include <algorithm>

namespace deft::workload {

namespace {

/// Arbitrary trees: several roots, deep chains and wide fans, empty nodes, queries anywhere. Between steps
/// leaves grow, and sometimes branches are forked, split and pruned. For checks rather than timing.
class RandomForest : public Generator {
public:
  RandomForest(Parameters &parameters, std::uint64_t seed)
      : random_(seed), nodes_(parameters.integer("nodes", 1, kMostBranches)),
        roots_(parameters.integer("roots", 1, std::max(nodes_, 1))),
        tokens_(parameters.integer("tokens", 0, 1 << 20)),
        queries_(parameters.integer("queries", 0, kMostBranches)),
        edits_(parameters.integer("edits", 0, 1 << 10)), steps_(parameters.integer("steps", 1, kMostSteps)) {}

  void start(Editor &editor) override {
    for (int i = 0; i < nodes_; ++i)
      alive_.push_back(editor.addNode(i < roots_ ? -1 : pickParent(), drawTokens()));
    drawQueries(editor);
  }

  void advance(int, Editor &editor) override {
    if (editor.hasFailed())
      return;
    bool hasChanged = false; // otherwise only leaves have grown, and the queries stay
    for (int i = 0; i < edits_; ++i)
      hasChanged |= edit(editor);
    for (int node : alive_)
      if (editor.tree().nodes()[node].firstChild < 0 && random_.chance(0.5))
        editor.append(node, random_.between(1, 3));
    if (hasChanged)
      drawQueries(editor);
    else
      for (const tree::Query &query : drawn_)
        editor.query(query.node, query.position);
  }

  int steps() const override { return steps_; }

private:
  int pick() { return alive_[random_.between(0, static_cast<int>(alive_.size()) - 1)]; }

  /// Late nodes make chains, early ones fans, others a mixture.
  int pickParent() {
    const int last = static_cast<int>(alive_.size()) - 1;
    switch (random_.between(0, 3)) {
    case 0:
      return alive_[last];
    case 1:
      return alive_[random_.between(0, std::min(last, 3))];
    default:
      return pick();
    }
  }

  int drawTokens() { return random_.chance(0.1) ? 0 : random_.between(0, tokens_); }

  bool edit(Editor &editor) {
    const int node = pick();
    switch (random_.between(0, 5)) {
    case 0:
    case 1:
      alive_.push_back(editor.addNode(node, drawTokens()));
      return true;
    case 2:
      if (const int tokens = editor.tokensOf(node); tokens > 1) {
        alive_.push_back(editor.split(node, random_.between(1, tokens - 1)));
        return true;
      }
      return false;
    case 3:
      // The subtree of a node near a root may be most of the forest; pruning it would leave too little.
      if (editor.tree().nodes()[node].firstChild < 0 && static_cast<int>(alive_.size()) > nodes_ / 2 + 1) {
        editor.prune(node);
        std::erase_if(alive_, [&](int other) { return !editor.tree().isAlive(other); });
        return true;
      }
      return false;
    default:
      return false;
    }
  }

  void drawQueries(Editor &editor) {
    if (editor.hasFailed())
      return;
    drawn_.clear();
    for (int i = 0; i < queries_; ++i) {
      const int node = pick();
      const bool isWhole = random_.chance(0.7);
      drawn_.push_back({node, isWhole ? tree::Query::kWhole : random_.between(0, editor.tokensOf(node))});
      editor.query(drawn_.back().node, drawn_.back().position);
    }
  }

  Random random_;
  int nodes_, roots_, tokens_, queries_, edits_, steps_;
  std::vector<int> alive_;
  std::vector<tree::Query> drawn_; ///< in the last step
};

} // namespace

std::vector<Recipe> randomForestRecipes() {
  return {{{"random_forest",
            "any shape, queries anywhere; leaves grow, branches come and go: for checks",
            {{"nodes", "100", "nodes at step 1"},
             {"roots", "3", "roots"},
             {"tokens", "64", "tokens of the longest node at step 1"},
             {"queries", "50", "queries"},
             {"edits", "1", "attempts at a step to add, split or prune a node"},
             {"steps", "256", "number of steps"}}},
           [](Parameters &parameters, std::uint64_t seed) -> std::unique_ptr<Generator> {
             return std::make_unique<RandomForest>(parameters, seed);
           }}};
}

} // namespace deft::workload
