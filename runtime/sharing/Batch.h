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

/// The requests of a step with their forest and queries, and the changes to the next step. The work is in the
/// changes: a known request with more tokens lengthens a leaf, one that comes or goes edits the forest, and
/// all others cost almost nothing.
///
/// A failed call changes nothing. (If memory runs out within a call, no requests are left.)
class Batch {
public:
  static constexpr int kLargestPage = std::numeric_limits<int>::max();

  /// With `checksEntries`, pages that must not have changed are compared with their earlier values.
  /// `lastPage` is the largest page of an entry. Requests share only multiples of `step` tokens. With
  /// `seesPath`, drafts or a request in pieces are an error, because a mask bound by `path` supports neither.
  Batch(PageSize pageSize, bool checksEntries, int lastPage = kLargestPage, int step = 1,
        bool seesPath = false)
      : forest_(pageSize, step), checksEntries_(checksEntries), lastPage_(lastPage), seesPath_(seesPath) {}

  /// Updates the batch to these requests, in their order. A request with a known id is the same request, with
  /// the same pages and perhaps more, in any row. Without ids, the pages of a row are compared with its
  /// earlier ones.
  support::Result<void> update(const Requests &requests);

  /// For the same requests with the same numbers of queries and at least as many tokens. Their earlier pages
  /// must be at the same places in their rows.
  support::Result<void> grow(const PageTable &table, std::span<const int> lengths);

  /// Which rank holds which tokens. The table uses `pageNumbers` numbers for each page of a rank's cache;
  /// messages use the cache's numbers.
  void setRanks(std::optional<tree::Ranks> ranks, int pageNumbers = 1) {
    forest_.setRanks(std::move(ranks));
    pageNumbers_ = pageNumbers;
  }

  const tree::KvTree &tree() const { return forest_.tree(); }
  const PrefixForest &forest() const { return forest_; }
  /// The requests with drafts, for which the tree has stand-ins; then all queries are drafts.
  const std::vector<tree::DraftedRequest> &drafted() const { return drafted_; }
  /// A request whose queries belong to several nodes, because others share the pages of some. Its queries do
  /// not all end where its path ends. -1: there is none.
  const int &requestInPieces() const { return requestInPieces_; }
  std::size_t size() const { return members_.size(); }
  /// The member of each request.
  std::span<const int> members() const { return members_; }

private:
  struct Known { ///< for each member
    std::uint64_t id = 0;
    std::uint64_t seen = 0; ///< the last step with this request
    int checkedTokens = 0;  ///< pages of this many tokens were checked: all lie in the cache
  };

  Known &known(int member) { return known_[static_cast<std::size_t>(member)]; }
  bool keepsCopies() const { return checksEntries_ || !hasIds_; }
  void dropAll();
  support::Result<void> checkDrafts(std::span<const int> drafts) const;
  /// Changes forest and queries, completely or not at all.
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
  bool hasIds_ = true; ///< in the last step; otherwise a request's id is its row
  std::uint64_t step_ = 0;
  std::vector<Known> known_;
  IndexMap byId_;
  IndexMap newIds_; ///< of unknown requests, during a search for them
  std::vector<std::uint64_t> newcomers_;
  RowCopies copies_;
  std::vector<int> members_, rows_, queryCounts_; ///< for each request
  std::vector<int> draftCounts_;                  ///< likewise; empty: no drafts
  std::vector<tree::DraftedRequest> drafted_;
  int requestInPieces_ = -1;
  bool hasSeveralQueries_ = false;               ///< of any request
  bool needsQueries_ = false, hasGrown_ = false; ///< in this step
  std::vector<Request> requests_;                ///< of this step
  std::vector<tree::Query> queries_;
};

} // namespace deft::sharing
