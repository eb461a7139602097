#include "tools/deftc/RunTrees.h"

#include "runtime/tree/TreeFile.h"

#include <algorithm>
#include <utility>

namespace deft::cli {

using support::Result;

namespace {

/// Room behind a leaf: some steps' growth, and no more than a little of a large tree.
constexpr int kRoomToGrow = 64;

} // namespace

Result<TreeSteps> TreeSteps::ofFile(const std::string &path) {
  auto tree = tree::readTreeFile(path);
  if (!tree)
    return tree.error();
  TreeSteps steps;
  steps.name_ = path;
  steps.file_ = std::move(*tree);
  return steps;
}

Result<TreeSteps> TreeSteps::ofWorkload(const std::string &name, std::uint64_t seed,
                                        const std::string &recordsFolder) {
  auto workload = workload::make(name, seed, recordsFolder);
  if (!workload)
    return workload.error();
  TreeSteps steps;
  steps.name_ = workload->name();
  steps.workload_.emplace(std::move(*workload));
  return steps;
}

Result<bool> TreeSteps::next() { return workload_ ? workload_->next() : Result<bool>(false); }

Result<void> TreeSteps::seek(int step) { return workload_ ? workload_->seek(step) : Result<void>(); }

const std::vector<tree::TreeEdit> &TreeSteps::edits() const {
  static const std::vector<tree::TreeEdit> none;
  return workload_ ? workload_->edits() : none;
}

PlacedTree::PlacedTree(tree::KvTree first, int begin) : tree_(std::move(first)), end_(begin) {
  (void)placeAll(); // an error, a table too long, comes again at the first follow
}

Result<void> PlacedTree::follow(const std::vector<tree::TreeEdit> &edits, const tree::KvTree &workload) {
  for (const tree::TreeEdit &edit : edits) {
    if (auto applied = tree::apply(edit, tree_); !applied)
      return applied;
    noteEdit(edit);
  }
  if (auto set = tree_.setQueries(workload.queries()); !set)
    return set;
  return placeAll();
}

void PlacedTree::noteEdit(const tree::TreeEdit &edit) {
  rooms_.resize(tree_.nodes().size());
  if (edit.kind == tree::TreeEdit::Kind::Prune || edit.kind == tree::TreeEdit::Kind::Accept)
    freeDead();
  if (edit.kind != tree::TreeEdit::Kind::Split)
    return;
  Room &below = rooms_[static_cast<std::size_t>(edit.node)];
  const int above = tree_.nodes()[static_cast<std::size_t>(edit.node)].parent;
  rooms_[static_cast<std::size_t>(above)] = {below.begin, edit.value};
  below = {below.begin + edit.value, below.tokens - edit.value};
}

void PlacedTree::freeDead() {
  for (std::size_t node = 0; node < rooms_.size(); ++node)
    if (!tree_.nodes()[node].isAlive && rooms_[node].tokens > 0)
      free_.push_back(std::exchange(rooms_[node], {}));
}

/// First fit, else the end of the table.
PlacedTree::Room PlacedTree::take(int tokens) {
  const auto fits =
      std::find_if(free_.begin(), free_.end(), [&](const Room &room) { return room.tokens >= tokens; });
  if (fits == free_.end()) {
    end_ += tokens;
    return {end_ - tokens, tokens};
  }
  const Room room{fits->begin, tokens};
  *fits = {fits->begin + tokens, fits->tokens - tokens};
  return room;
}

Result<void> PlacedTree::placeAll() {
  rooms_.resize(tree_.nodes().size());
  for (int node = tree_.firstRoot(); node >= 0; node = tree_.nextInPreorder(node)) {
    Room &room = rooms_[static_cast<std::size_t>(node)];
    const tree::Node &own = tree_.nodes()[static_cast<std::size_t>(node)];
    if (room.tokens >= own.tokens && (room.tokens > 0 || own.firstChild >= 0))
      continue;
    if (room.tokens > 0)
      free_.push_back(room);
    const int wanted = own.tokens + (own.firstChild < 0 ? kRoomToGrow : 0);
    if (end_ > tree::KvTree::kMaxTokens - wanted)
      return support::Error{support::ErrorCode::Diagnostics,
                            "the steps' tokens do not fit one cache of " +
                                std::to_string(tree::KvTree::kMaxTokens) + " tokens",
                            "run fewer steps"};
    room = take(wanted);
    if (auto placed = tree_.place(node, room.begin); !placed)
      return placed;
  }
  return {};
}

} // namespace deft::cli
