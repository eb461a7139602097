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

/// A tree in the numbers that its class is made of. Only what some query sees counts.
struct TreeFeatures {
  std::int64_t tokens = 0;     ///< that must be read at least once
  std::int64_t pathTokens = 0; ///< sum over the queries' paths
  int queries = 0;
  int levels = 0;
  double shortTokens = 0; ///< tokens in short nodes; a node of kShortFrom tokens counts half

  /// Nodes of at most kShortAll tokens are short, those of kShortNone are not, and between the two the share
  /// falls evenly: else a step in which all branches reach the length of a tile would move a tree from one
  /// end of the scale to the other.
  static constexpr int kShortAll = 32, kShortFrom = 64, kShortNone = 96;

  double sharing() const { return tokens > 0 ? static_cast<double>(pathTokens) / tokens : 0; }
  double shortShare() const { return tokens > 0 ? shortTokens / static_cast<double>(tokens) : 0; }

  Coordinates coordinates() const;
  Coordinates place() const; ///< the coordinates to a thousandth: a file need not say more
};

/// The features of a tree that has been read.
TreeFeatures featuresOf(const plan::TreeView &view);
/// The features of beams as a tree, where each beam sees all its tokens.
TreeFeatures featuresOf(const tree::BeamTree &beams);

/// Takes features of what a mask shows, in time for nodes and queries; allocates nothing once it has seen a
/// tree of the size.
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

/// The class of a tree that changes step by step. It lets go of a bucket only where the tree has left it by a
/// margin, so a run that goes to and fro over an edge stays with one config.
class ClassFollower {
public:
  /// Sixths of a bucket: a number that is a power of two has to fall or rise by more than 1.58 times.
  static constexpr double kMargin = 1.0 / 6;

  /// The class of the next step's tree.
  TreeClass follow(const TreeFeatures &features);
  /// Forgets the run: the next step is a first one.
  void restart() { hasClass_ = false; }

private:
  TreeClass class_;
  bool hasClass_ = false;
};

} // namespace deft::config_cache
