#pragma once

#include "runtime/tree/DraftStandIn.h"
#include "runtime/tree/KvTree.h"

#include <deft/tree.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace deft {

/// What plans remember of the tree they were made for: who it is, and its generation. Apart from the tree, so
/// that a plan may outlive it; atomic, so that a run on another thread may look while the tree is changed.
class TreeStamp {
public:
  using Word = std::atomic<std::uint64_t>;

  std::uint64_t generation() const { return generation_.load(); }

  void set(std::uint64_t generation) {
    generation_.store(generation);
    if (followerCount_.load() == 0) // either this sees a follower, or it sees the generation
      return;
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Word> &word : followers_)
      word->store(generation);
  }

  /// From now on the word has the generation, too: for those who cannot ask, as a kernel.
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

struct Tree::Impl {
  std::shared_ptr<TreeStamp> stamp = std::make_shared<TreeStamp>();

  Impl() = default;
  explicit Impl(tree::KvTree of) : own_(std::move(of)) { noteChange(); }
  /// A copy is another tree from now on, so it has another stamp; a copy of a view is a tree of its own.
  Impl(const Impl &other) : Impl(other.tree()) {
    ownDrafted_ = other.drafted();
    ownInPieces_ = other.requestInPieces();
    sharingStep_ = other.sharingStep();
  }
  Impl &operator=(const Impl &) = delete;

  const tree::KvTree &tree() const { return viewed_ ? *viewed_ : own_; }
  /// Not of a view: programs get views as const only. A copy of one that is changed is a tree like any other:
  /// its stand-ins are tokens.
  tree::KvTree &change() {
    ownDrafted_.clear();
    ownInPieces_ = -1;
    sharingStep_ = {};
    return own_;
  }
  /// Requests with drafts, for which it has stand-ins.
  const std::vector<tree::DraftedRequest> &drafted() const {
    return viewedDrafted_ ? *viewedDrafted_ : ownDrafted_;
  }

  /// A request of a batch whose new tokens are in several nodes, or -1: under `path` they would see each
  /// other.
  int requestInPieces() const { return viewedInPieces_ ? *viewedInPieces_ : ownInPieces_; }

  /// Of a batch: its requests share multiples of so many tokens.
  const std::optional<int> &sharingStep() const { return sharingStep_; }

  /// Becomes a view of a tree that lives at least as long.
  void look(const tree::KvTree &at, const std::vector<tree::DraftedRequest> *drafted = nullptr,
            const int *requestInPieces = nullptr, std::optional<int> sharingStep = {}) {
    viewed_ = &at;
    sharingStep_ = sharingStep;
    viewedDrafted_ = drafted;
    viewedInPieces_ = requestInPieces;
    noteChange();
  }

  void noteChange() { stamp->set(tree().generation()); }

private:
  tree::KvTree own_;
  const tree::KvTree *viewed_ = nullptr;
  std::vector<tree::DraftedRequest> ownDrafted_;
  int ownInPieces_ = -1;
  std::optional<int> sharingStep_;
  const std::vector<tree::DraftedRequest> *viewedDrafted_ = nullptr;
  const int *viewedInPieces_ = nullptr;
};

inline std::vector<tree::Query> toInternal(std::span<const Query> queries) {
  std::vector<tree::Query> own;
  own.reserve(queries.size());
  for (const Query &query : queries)
    own.push_back({query.node, query.position});
  return own;
}

} // namespace deft
