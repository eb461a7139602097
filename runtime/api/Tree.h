#pragma once

#include "runtime/tree/BeamTree.h"
#include "runtime/tree/DraftStandIn.h"
#include "runtime/tree/KvTree.h"

#include <deft/c/tree.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace deft::api {

/// A plan's record of its tree: the identity and the generation. Separate from the tree, so that a plan may
/// outlive it; atomic, so that a run on another thread may read it while the tree changes.
class TreeStamp {
public:
  using Word = std::atomic<std::uint64_t>;

  std::uint64_t generation() const { return generation_.load(); }

  void set(std::uint64_t generation) {
    generation_.store(generation);
    if (followerCount_.load() == 0) // either this sees a follower, or the follower sees the generation
      return;
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Word> &word : followers_)
      word->store(generation);
  }

  /// From now on, also writes the generation to the word: for followers that cannot ask, like a kernel.
  void follow(const std::shared_ptr<Word> &word) {
    const std::lock_guard lock(mutex_);
    followers_.push_back(word);
    followerCount_.store(followers_.size());
    word->store(generation_.load());
  }

  void unfollow(const Word *word) {
    const std::lock_guard lock(mutex_);
    std::erase_if(followers_, [&](const auto &follower) { return follower.get() == word; });
    followerCount_.store(followers_.size());
  }

private:
  Word generation_ = 0;
  std::atomic<std::size_t> followerCount_ = 0;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Word>> followers_;
};

/// The tree of beams, made on demand: in most steps, plans do not need it.
class TreeOfBeams {
public:
  explicit TreeOfBeams(const tree::BeamTree &of) : beams(of) {}

  const tree::BeamTree &beams;

  /// For the current beams; valid until they change.
  const tree::KvTree &tree() const {
    const std::lock_guard lock(mutex_);
    if (madeAt_ != beams.generation()) {
      tree_ = beams.toTree();
      madeAt_ = beams.generation();
    }
    return tree_;
  }

private:
  mutable std::mutex mutex_; ///< for concurrent calls
  mutable tree::KvTree tree_;
  mutable std::optional<std::uint64_t> madeAt_;
};

} // namespace deft::api

/// A tree of its own, or a view of that of sequences, a batch or beams; only they change it.
struct deft_tree {
  std::shared_ptr<deft::api::TreeStamp> stamp = std::make_shared<deft::api::TreeStamp>();

  deft_tree() = default;
  explicit deft_tree(deft::tree::KvTree of) : own_(std::move(of)) { noteChange(); }
  /// A copy is a different tree, so it has another stamp; a copy of a view is a tree of its own.
  deft_tree(const deft_tree &other) : deft_tree(other.tree()) {
    ownDrafted_ = other.drafted();
    ownInPieces_ = other.requestInPieces();
    sharingStep_ = other.sharingStep();
  }
  deft_tree &operator=(const deft_tree &) = delete;

  const deft::tree::KvTree &tree() const { return beams_ ? beams_->tree() : viewed_ ? *viewed_ : own_; }
  std::uint64_t generation() const { return beams_ ? beams_->beams.generation() : tree().generation(); }
  /// Null: it is not a tree of beams.
  const deft::tree::BeamTree *beams() const { return beams_ ? &beams_->beams : nullptr; }
  bool isView() const { return viewed_ || beams_; }
  /// Not for views. A changed copy of a view is a tree like any other: its stand-ins are tokens.
  deft::tree::KvTree &change() {
    ownDrafted_.clear();
    ownInPieces_ = -1;
    sharingStep_ = {};
    return own_;
  }
  /// Requests with drafts, which have stand-ins in the tree.
  const std::vector<deft::tree::DraftedRequest> &drafted() const {
    return viewedDrafted_ ? *viewedDrafted_ : ownDrafted_;
  }

  /// A request of a batch whose new tokens are in several nodes, or -1: with the visibility `path`, they
  /// would see each other.
  int requestInPieces() const { return viewedInPieces_ ? *viewedInPieces_ : ownInPieces_; }

  /// For a batch: its requests share multiples of this number of tokens.
  const std::optional<int> &sharingStep() const { return sharingStep_; }

  /// Becomes a view of a tree that lives at least as long.
  void look(const deft::tree::KvTree &at, const std::vector<deft::tree::DraftedRequest> *drafted = nullptr,
            const int *requestInPieces = nullptr, std::optional<int> sharingStep = {}) {
    viewed_ = &at;
    sharingStep_ = sharingStep;
    viewedDrafted_ = drafted;
    viewedInPieces_ = requestInPieces;
    noteChange();
  }

  /// The same for beams.
  void look(const deft::tree::BeamTree &beams) {
    beams_ = std::make_unique<deft::api::TreeOfBeams>(beams);
    noteChange();
  }

  void noteChange() { stamp->set(generation()); }

private:
  deft::tree::KvTree own_;
  const deft::tree::KvTree *viewed_ = nullptr;
  std::unique_ptr<deft::api::TreeOfBeams> beams_;
  std::vector<deft::tree::DraftedRequest> ownDrafted_;
  int ownInPieces_ = -1;
  std::optional<int> sharingStep_;
  const std::vector<deft::tree::DraftedRequest> *viewedDrafted_ = nullptr;
  const int *viewedInPieces_ = nullptr;
};

namespace deft::api {

/// At its end, plans of the tree see that it has changed, even if the change threw an exception.
class NotedChange {
public:
  explicit NotedChange(deft_tree &tree) : tree_(tree) {}
  ~NotedChange() { tree_.noteChange(); }
  NotedChange(const NotedChange &) = delete;
  NotedChange &operator=(const NotedChange &) = delete;

private:
  deft_tree &tree_;
};

} // namespace deft::api
