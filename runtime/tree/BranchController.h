#pragma once

#include "runtime/tree/SequenceTree.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

/// Tree search over a decode loop: somebody decides before each step which branches fork, are pruned,
/// accepted or through; the controller does it to the tree and its cache and keeps a record.
///
///   auto controller = BranchController::make({.pageSize = 16, .pages = 4096}, policy).value();
///   controller.addPrompt(promptTokens, 3);
///   while (controller.step().value()) {
///     // make controller.copies() in the cache; attention over controller.sequences().tree(), in which query
///     i
///     // is branch controller.active()[i]; sample a token for each
///     controller.record(sampled);
///   }
namespace deft::tree {

enum class BranchState {
  Active,   ///< decodes a token a step
  Forked,   ///< others go on from its end
  Finished, ///< decodes no more; its tokens stay
  Pruned,   ///< gone, and its tokens where nobody else reads them
};

struct Branch {
  int parent = -1; ///< the branch that it was forked from; -1: begins at a prompt
  int root = -1;   ///< node of the prompt
  int node = -1;   ///< of the tree; not to be used when the branch is pruned
  BranchState state = BranchState::Active;
  int firstStep = 0;
  int lastStep = 0;             ///< at which it decoded; before firstStep: none
  int endStep = 0;              ///< before whose token it ceased to be active; 0: it has not
  std::vector<int> tokens = {}; ///< what record() was given, for each step
};

struct BranchAction {
  enum class Kind {
    Fork,   ///< `count` branches go on from its end
    Prune,  ///< it goes, and what only it read
    Accept, ///< those beside it, of the same parent, that are not accepted at this step are pruned
    Finish, ///< it decodes no more
  };

  int branch = -1;
  Kind kind = Kind::Fork;
  int count = 2; ///< of Fork

  bool operator==(const BranchAction &) const = default;
};

/// What was done, and at which step: before the tokens of that step.
struct BranchEvent {
  int step = 0;
  BranchAction action;

  bool operator==(const BranchEvent &) const = default;
};

class BranchController;

/// Decides what happens before a step; sees everything that the controller knows. An error ends the step.
using BranchPolicy = std::function<support::Result<std::vector<BranchAction>>(const BranchController &)>;

class BranchController {
public:
  static support::Result<BranchController> make(const PoolOptions &options, BranchPolicy policy);

  /// A prompt, a tree of its own, and the branches that begin at its end. Returns the first; the others
  /// follow it.
  support::Result<int> addPrompt(int tokens, int branches = 1);

  /// The next step: does what the policy says, gives each active branch a token's place and a query. False
  /// when no branch is active any more. After an error (of the policy, a wrong action, no space) everything
  /// is as it was before, the last step's queries too; the next call asks the policy anew.
  support::Result<bool> step();

  /// The tokens that were sampled at this step, one for each of active(); optional, for policies that read
  /// them and for text().
  support::Result<void> record(std::span<const int> tokens);

  int stepNumber() const { return step_; } ///< of the last step, or of the one being decided
  /// Whose queries the step has, in their order: by number.
  const std::vector<int> &active() const { return active_; }
  const std::vector<Branch> &branches() const { return branches_; }
  /// What the branch has decoded, from the prompt on.
  std::vector<int> text(int branch) const;

  const SequenceTree &sequences() const { return sequences_; }
  /// To be made in the cache, in order, before the step's tokens are written.
  const std::vector<TokenCopy> &copies() const { return copies_; }
  /// For who keeps a copy of the page table.
  void markTableRead() { sequences_.markTableRead(); }

  const std::vector<BranchEvent> &events() const { return events_; }

private:
  BranchController(SequenceTree sequences, BranchPolicy policy)
      : sequences_(std::move(sequences)), policy_(std::move(policy)) {}

  struct Saved { ///< what a step changes
    SequenceTree sequences;
    std::vector<Branch> branches;
    std::vector<BranchEvent> events;
  };
  support::Result<void> decide(const std::vector<BranchAction> &actions);
  bool canOnlyGrow() const;
  support::Result<void> act(const std::vector<BranchAction> &actions);
  support::Result<void> fork(int branch, int count);
  void end(int branch, BranchState state);
  void prune(int branch);
  void pruneBelow(int branch);
  void pruneBeside(int branch, const std::vector<BranchAction> &actions);
  support::Result<void> grow(std::vector<TokenCopy> &copies, std::vector<int> &active);

  SequenceTree sequences_;
  BranchPolicy policy_;
  std::vector<Branch> branches_;
  std::vector<int> active_;
  std::vector<TokenCopy> copies_;
  std::vector<BranchEvent> events_;
  int step_ = 0;
};

/// Does what is written, step by step, and nothing else.
BranchPolicy playScript(std::vector<BranchEvent> script);

/// What each branch did, a line each:
///   branch 0: from a prompt, steps 1 to 3, forked at step 4 into 1, 2
///   branch 1: from branch 0, steps 4 to 8, pruned at step 9
std::string describeBranches(const BranchController &controller);

/// What happened, as a script that does it again (JSON, one event a line):
///   {"format": "deftc-branches", "version": 1, "events": [
///     {"step": 4, "branch": 0, "action": "fork", "count": 2}]}
/// Actions are fork, prune, accept and finish.
std::string formatScript(std::span<const BranchEvent> events);
support::Result<std::vector<BranchEvent>> parseScript(std::string_view json);

} // namespace deft::tree
