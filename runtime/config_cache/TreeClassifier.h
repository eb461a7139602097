#pragma once

#include "runtime/config_cache/TreeClass.h"
#include "runtime/plan/Reach.h"
#include "runtime/plan/TreeView.h"
#include "runtime/plan/VisibleTree.h"
#include "runtime/tree/BeamTree.h"

#include <array>
#include <cstdint>
#include <utility>

namespace deft::config_cache {

/// The properties of a tree that determine its class. Only tokens that some query sees count.
struct TreeFeatures {
  std::int64_t tokens = 0;     ///< tokens that must be read at least once
  std::int64_t pathTokens = 0; ///< sum over the queries' paths
  int queries = 0;
  int levels = 0;
  double shortTokens = 0; ///< tokens in short nodes; a node of kShortFrom tokens counts half

  /// Nodes of at most kShortAll tokens are short, nodes of kShortNone are not, and in between the share falls
  /// linearly. Otherwise a step in which all branches reach the length of a tile would move a tree from one
  /// end of the scale to the other.
  static constexpr int kShortAll = 32, kShortFrom = 64, kShortNone = 96;

  double sharing() const { return tokens > 0 ? static_cast<double>(pathTokens) / tokens : 0; }
  double shortShare() const { return tokens > 0 ? shortTokens / static_cast<double>(tokens) : 0; }

  Coordinates coordinates() const;
  Coordinates place() const; ///< rounded to a thousandth, which is enough for files
};

/// The features of a tree that has been read.
TreeFeatures featuresOf(const plan::TreeView &view);
/// The features of beams as a tree in which each beam sees all its tokens.
TreeFeatures featuresOf(const tree::BeamTree &beams);

/// Computes features of the tokens that a mask shows, in time linear in nodes and queries. Allocates only if
/// a tree is larger than any before.
class TreeClassifier {
public:
  explicit TreeClassifier(plan::Reach reach = {}) : reach_(std::move(reach)) {}

  TreeFeatures measure(const tree::KvTree &tree) {
    visible_.read(tree, reach_, /*step=*/1, view_);
    return featuresOf(view_);
  }
  TreeClass classify(const tree::KvTree &tree);

private:
  plan::Reach reach_;
  plan::VisibleTree visible_;
  plan::TreeView view_;
};

TreeClass classOf(const TreeFeatures &features);

/// The class of a tree that changes step by step. It leaves a bucket only when the tree is outside by a
/// margin, so a run that crosses an edge back and forth keeps one config.
class ClassFollower {
public:
  /// In buckets: a number that is a power of two must fall or rise by a factor of more than 1.58.
  static constexpr double kMargin = 1.0 / 6;

  /// The class of the next step's tree.
  TreeClass follow(const TreeFeatures &features);
  /// Forgets the run: the next step is the first of a new one.
  void restart() { hasClass_ = false; }

private:
  TreeClass class_;
  bool hasClass_ = false;
};

} // namespace deft::config_cache
