#pragma once

#include "runtime/sharing/IndexMap.h"
#include "runtime/sharing/PrefixForest.h"
#include "runtime/sharing/Requests.h"
#include "runtime/sharing/RowCopies.h"
#include "runtime/tree/DraftStandIn.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace deft::sharing {

/// The requests of a step with their forest and their queries, and how they become those of the next one.
/// Work is in what changed: a request that is known and has more tokens lengthens a leaf, one that comes or
/// goes edits the forest, and all others are passed over.
///
/// A call that fails changes nothing. (Where memory ends in the middle of one, no request is left.)
class Batch {
public:
  static constexpr int kLargestPage = std::numeric_limits<int>::max();

  /// With `checksEntries` pages that must not have changed are compared with what they were. `lastPage` is
  /// the largest that an entry may name. Requests share multiples of `step` tokens. With `seesPath` a step is
  /// an error that has drafts, or a request in pieces: a mask bound by `path` serves neither.
  Batch(PageSize pageSize, bool checksEntries, int lastPage = kLargestPage, int step = 1,
        bool seesPath = false)
      : forest_(pageSize, step), checksEntries_(checksEntries), lastPage_(lastPage), seesPath_(seesPath) {}

  /// Brings it to these requests, in their order. A request with the id of a known one is the same one, with
  /// the same pages and perhaps more, wherever its row is. Without ids a row's pages tell, compared with what
  /// they were.
  support::Result<void> update(const Requests &requests);

  /// The same requests with the same number of queries, none with fewer tokens. Pages that they had are
  /// where they were in their rows.
  support::Result<void> grow(const PageTable &table, std::span<const int> lengths);

  /// Where requests' tokens lie. Page numbers of the table are `pageNumbers` for each page of a rank's cache:
  /// messages have those of the cache.
  void setRanks(std::optional<tree::Ranks> ranks, int pageNumbers = 1) {
    forest_.setRanks(std::move(ranks));
    pageNumbers_ = pageNumbers;
  }

  const tree::KvTree &tree() const { return forest_.tree(); }
  const PrefixForest &forest() const { return forest_; }
  /// Those with drafts, for which the tree has stand-ins (tree::DraftStandIn): then all queries are drafts.
  const std::vector<tree::DraftedRequest> &drafted() const { return drafted_; }
  /// A request whose queries hang on several nodes, because others share the pages of some: its own path does
  /// not end where theirs do. -1: there is none.
  const int &requestInPieces() const { return requestInPieces_; }
  std::size_t size() const { return members_.size(); }
  /// The member of each request.
  std::span<const int> members() const { return members_; }

private:
  struct Known { ///< of each member
    std::uint64_t id = 0;
    std::uint64_t seen = 0; ///< the last step that has it
    int checkedTokens = 0;  ///< pages for so many tokens were looked at: the cache has all of them
  };

  Known &known(int member) { return known_[static_cast<std::size_t>(member)]; }
  bool keepsCopies() const { return checksEntries_ || !hasIds_; }
  void dropAll();
  support::Result<void> checkDrafts(std::span<const int> drafts) const;
  /// Changes forest and queries, in whole or not at all.
  template <typename Change> support::Result<void> edit(bool hasSeveralQueries, Change &&change);
  support::Result<void> findMembers(const Requests &requests);
  support::Result<void> findRewritten(const int *table, bool hasIds);
  support::Result<void> checkEntries(const int *table, const std::string &promise) const;
  support::Result<void> checkNewPages(const int *table) const;
  void keepKnown();
  void dropUnseen();
  void growKnown(const int *table);
  void addNew(const int *table, std::span<const std::uint64_t> ids);
  void takeOrder(const Requests &asked);
  void addStandIns();
  void makeQueries();

  PrefixForest forest_;
  bool checksEntries_;
  int lastPage_;
  int pageNumbers_ = 1;
  bool seesPath_;
  bool hasIds_ = true; ///< in the last step; else a request's id is its row
  std::uint64_t step_ = 0;
  std::vector<Known> known_;
  IndexMap byId_;
  IndexMap newIds_; ///< of those that nobody knew, while they are looked for
  std::vector<std::uint64_t> newcomers_;
  RowCopies copies_;
  std::vector<int> members_, rows_, queryCounts_; ///< of each request
  std::vector<int> draftCounts_;                  ///< likewise; empty: there are none
  std::vector<tree::DraftedRequest> drafted_;
  int requestInPieces_ = -1;
  bool hasSeveralQueries_ = false;               ///< any request
  bool needsQueries_ = false, hasGrown_ = false; ///< in the step under way
  std::vector<Request> requests_;                ///< of the step under way
  std::vector<tree::Query> queries_;
};

} // namespace deft::sharing
