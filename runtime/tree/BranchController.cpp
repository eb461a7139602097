#include "runtime/tree/BranchController.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <optional>
#include <string>

namespace deft::tree {

using support::Result;

Result<BranchController> BranchController::make(const PoolOptions &options, BranchPolicy policy) {
  auto sequences = SequenceTree::make(options);
  if (!sequences)
    return sequences.error();
  return BranchController(std::move(*sequences), std::move(policy));
}

Result<int> BranchController::addPrompt(int tokens, int branches) {
  if (branches < 1)
    return wrong(std::to_string(branches) + " branches below a prompt, must be at least 1");
  const auto root = sequences_.addNode(-1, tokens);
  if (!root)
    return root;
  const int first = static_cast<int>(branches_.size());
  for (int i = 0; i < branches; ++i) {
    const auto node = sequences_.fork(*root);
    if (!node) {
      (void)sequences_.prune(*root);
      branches_.resize(static_cast<std::size_t>(first));
      return node;
    }
    branches_.push_back(
        {.parent = -1, .root = *root, .node = *node, .firstStep = step_ + 1, .lastStep = step_});
  }
  return first;
}

Result<bool> BranchController::step() {
  ++step_;
  const auto actions = policy_(*this);
  const auto done = actions ? decide(*actions) : Result<void>(actions.error());
  if (!done) {
    --step_;
    return done.error();
  }
  return !active_.empty();
}

/// Does all of a step or nothing.
Result<void> BranchController::decide(const std::vector<BranchAction> &actions) {
  // What was pruned cannot be brought back, so a copy is kept where anything might fail after it.
  std::optional<Saved> saved;
  if (!actions.empty() || !canOnlyGrow())
    saved.emplace(Saved{sequences_, branches_, events_});
  std::vector<TokenCopy> copies;
  std::vector<int> active;
  Result<void> done = act(actions);
  if (done)
    done = grow(copies, active);
  if (done) {
    copies_ = std::move(copies);
    active_ = std::move(active);
  } else if (saved) {
    sequences_ = std::move(saved->sequences);
    branches_ = std::move(saved->branches);
    events_ = std::move(saved->events);
  }
  return done;
}

/// Whether every active branch has room for a token, wherever the pool must take it.
bool BranchController::canOnlyGrow() const {
  const PagedPool &pool = sequences_.pool();
  std::int64_t active = 0, stretch = 0;
  for (const Branch &branch : branches_)
    if (branch.state == BranchState::Active) {
      ++active;
      if (!sequences_.tree().checkAppend(branch.node, 1))
        return false;
      // Where a branch moves, it takes its places in the table along; at worst all of them do, one by one.
      stretch += sequences_.tree().nodes()[branch.node].tokens + 2;
    }
  return pool.freePages() >= (pool.pageSize() == 0 ? stretch : active) && pool.largestStretch() >= stretch;
}

Result<void> BranchController::act(const std::vector<BranchAction> &actions) {
  for (const BranchAction &action : actions) {
    const int branch = action.branch;
    const auto named = [&] {
      return "branch " + std::to_string(branch) + " at step " + std::to_string(step_);
    };
    if (branch < 0 || branch >= static_cast<int>(branches_.size()))
      return wrong("there is no " + named() + ", only " + std::to_string(branches_.size()) + " branches");
    const BranchState state = branches_[branch].state;
    if (state == BranchState::Pruned || state == BranchState::Forked)
      return wrong(named() + (state == BranchState::Pruned ? " was pruned" : " was forked already"));
    switch (action.kind) {
    case BranchAction::Kind::Fork:
      if (auto forked = fork(branch, action.count); !forked)
        return forked;
      break;
    case BranchAction::Kind::Prune:
      prune(branch);
      break;
    case BranchAction::Kind::Accept:
      pruneBeside(branch, actions);
      break;
    case BranchAction::Kind::Finish:
      end(branch, BranchState::Finished);
      break;
    }
    events_.push_back({step_, action});
  }
  return {};
}

Result<void> BranchController::fork(int branch, int count) {
  if (count < 1)
    return wrong("branch " + std::to_string(branch) + " cannot fork into " + std::to_string(count) +
                 " branches");
  const int node = branches_[branch].node;
  const std::size_t before = branches_.size();
  for (int i = 0; i < count; ++i) {
    const auto child = sequences_.fork(node);
    if (!child) {
      for (std::size_t done = before; done < branches_.size(); ++done)
        (void)sequences_.prune(branches_[done].node);
      branches_.resize(before);
      return child.error();
    }
    branches_.push_back({.parent = branch,
                         .root = branches_[branch].root,
                         .node = *child,
                         .firstStep = step_,
                         .lastStep = step_ - 1});
  }
  end(branch, BranchState::Forked);
  return {};
}

void BranchController::end(int branch, BranchState state) {
  branches_[branch].state = state;
  if (branches_[branch].endStep == 0)
    branches_[branch].endStep = step_;
}

/// Takes the branch out of the tree, with the nodes above it that nothing else hangs on. Prompts stay while
/// some branch of theirs does.
void BranchController::prune(int branch) {
  int top = branches_[branch].node;
  const auto &nodes = sequences_.tree().nodes();
  const auto isOnlyChild = [&](int node) {
    const int parent = nodes[node].parent;
    return parent >= 0 && nodes[parent].firstChild == node && nodes[node].nextSibling < 0;
  };
  while (isOnlyChild(top))
    top = nodes[top].parent;
  (void)sequences_.prune(top);
  end(branch, BranchState::Pruned);
  // Forked branches that nobody goes on from are gone with it.
  for (int above = branches_[branch].parent; above >= 0; above = branches_[above].parent)
    if (!sequences_.tree().isAlive(branches_[above].node))
      end(above, BranchState::Pruned);
}

void BranchController::pruneBelow(int branch) {
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (branches_[i].state == BranchState::Pruned || branches_[i].state == BranchState::Forked)
      continue;
    int above = static_cast<int>(i);
    while (above >= 0 && above != branch)
      above = branches_[above].parent;
    if (above == branch)
      prune(static_cast<int>(i));
  }
}

void BranchController::pruneBeside(int branch, const std::vector<BranchAction> &actions) {
  const auto isAccepted = [&](int other) {
    return std::any_of(actions.begin(), actions.end(), [&](const BranchAction &action) {
      return action.branch == other && action.kind == BranchAction::Kind::Accept;
    });
  };
  for (int other = 0; other < static_cast<int>(branches_.size()); ++other)
    if (other != branch && branches_[other].parent == branches_[branch].parent &&
        branches_[other].root == branches_[branch].root && !isAccepted(other))
      pruneBelow(other);
}

/// A place for a token at the end of each active branch, and its query.
Result<void> BranchController::grow(std::vector<TokenCopy> &copies, std::vector<int> &active) {
  std::vector<Query> queries;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    Branch &branch = branches_[i];
    if (branch.state != BranchState::Active)
      continue;
    const auto made = sequences_.append(branch.node, 1);
    if (!made)
      return made.error();
    copies.insert(copies.end(), made->begin(), made->end());
    branch.lastStep = step_;
    active.push_back(static_cast<int>(i));
    queries.push_back({branch.node, Query::kWhole});
  }
  return sequences_.setQueries(queries);
}

Result<void> BranchController::record(std::span<const int> tokens) {
  if (tokens.size() != active_.size())
    return wrong(std::to_string(tokens.size()) + " tokens for " + std::to_string(active_.size()) +
                 " active branches");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    branches_[active_[i]].tokens.push_back(tokens[i]);
  return {};
}

std::vector<int> BranchController::text(int branch) const {
  std::vector<int> path;
  for (; branch >= 0; branch = branches_[branch].parent)
    path.push_back(branch);
  std::vector<int> tokens;
  for (auto it = path.rbegin(); it != path.rend(); ++it)
    tokens.insert(tokens.end(), branches_[*it].tokens.begin(), branches_[*it].tokens.end());
  return tokens;
}

BranchPolicy playScript(std::vector<BranchEvent> script) {
  return [script = std::move(script)](const BranchController &controller) {
    std::vector<BranchAction> actions;
    for (const BranchEvent &event : script)
      if (event.step == controller.stepNumber())
        actions.push_back(event.action);
    return Result<std::vector<BranchAction>>(std::move(actions));
  };
}

} // namespace deft::tree
