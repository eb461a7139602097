#pragma once

#include <deft/c/beam_tree.h>
#include <deft/followers.hpp>
#include <deft/tree.hpp>

/// Wide beams: thousands of sequences over one history, which change their parents in each step.
///
///   auto beams = deft::BeamTree::make({.pageSize = 16}).value();
///   beams.start(2000, 4096).value();               // a prompt of 2,000 tokens in the cache's first pages;
///                                                  // beams decode into the 4,096 pages behind these
///   beams.advance(std::vector<int>(512, 0)).value(); // 512 beams, which all continue the prompt
///   auto plan = deft::Plan::make(attention, beams.tree()).value(); // or a GpuPlan
///   Plan *plans[] = {&plan};
///   for (each step) {
///     for (each layer) {
///       ... write K and V of each beam's token to beams.step().slots
///       runtime.run(attention, plan, {.q = q, .k = k, .v = v, .pageTable = beams.pageTable()}, {.out =
///       out});
///     }
///     beams.advance(parents, {.plans = plans}).value(); // beam i continues beam parents[i]
///   }
namespace deft {

struct BeamTreeOptions {
  int pageSize = 16; ///< Attention::pageSize(), at least 1
  int mostBeams = 0; ///< limit for a step; 0: the number of pages
};

/// The tokens that beams begin with, and the pages for their own. Read only during the call.
///
/// A history is the part of a search that is already in the cache: stretches in path order. Their locations
/// count tokens in a page table: token t is in slot t % pageSize of page entries[t / pageSize]. One prompt
/// whose pages are listed in `entries` is a single stretch, {0, tokens}. Histories of several searches share
/// nothing.
struct BeamHistories {
  std::span<const Stretch> stretches = {};
  /// History i has the stretches [indptr[i], indptr[i + 1]). Empty: all stretches are one history.
  std::span<const int> indptr = {};
  /// Page ids of the histories. Empty: page p of the table is page p of the cache.
  std::span<const int> entries = {};
  /// Pages of the cache for decoded tokens: all different, none in a history.
  std::span<const int> pages = {};
  /// Instead of `pages`: the first `pageCount` pages of the cache after those of the histories. An error if
  /// `entries` are given.
  std::size_t pageCount = 0;
};

/// A step of the beams. Spans are valid until the next change of the beams.
struct BeamStep {
  /// For each beam: the slot for K and V of its new token. Slot s is place s % pageSize of page s / pageSize
  /// of the cache. -1 before the first step.
  std::span<const std::int64_t> slots = {};
  std::span<const int> positions = {}; ///< of each beam's last token: the length of its path, minus one
  std::span<const int> newPages = {};  ///< page ids: pages that the step began to write
  /// Page ids: pages with tokens that beams saw before the step and no beam sees now. If the step reused a
  /// freed page for its own tokens, it is a new page instead.
  std::span<const int> freedPages = {};
};

/// The beams of one search or of several. Each begins as one history. In each step every beam continues any
/// beam of the step before and gains a token. A beam that no beam continues ends, and pages without visible
/// tokens are free at once. Nothing is copied. The host owns the bytes: it writes K and V of new tokens to
/// the slots of the step.
///
/// The time of a step depends on the decoded tokens: a fraction of a millisecond for thousands of beams. Each
/// step makes a new plan of the beams' tree, in about the same time, if no mask hides tokens (no window) and
/// the beams keep a GPU busy; otherwise it plans as for any tree.
///
/// A call that fails changes nothing, unless it says so. For one thread at a time; several may read at once.
class BeamTree {
public:
  static Result<BeamTree> make(const BeamTreeOptions &options = {}) {
    deft_beam_tree_options own{};
    own.size = sizeof own;
    own.page_size = options.pageSize;
    own.most_beams = options.mostBeams;
    return detail::made<BeamTree, deft_beam_tree>([&](auto to) { return deft_beam_tree_make(&own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit BeamTree(deft_beam_tree *handle)
      : handle_(handle), view_(Tree::view(deft_beam_tree_get_tree(handle))) {}

  /// Starts again, with a beam for each history. Page tables of the last search are no longer valid after
  /// it.
  Result<void> start(const BeamHistories &histories) {
    std::vector<deft_stretch> stretches;
    for (const Stretch &stretch : histories.stretches)
      stretches.push_back({stretch.location, stretch.tokens});
    deft_beam_histories own{};
    own.size = sizeof own;
    own.stretches = stretches.data();
    own.stretch_count = stretches.size();
    own.indptr = histories.indptr.empty() ? nullptr : histories.indptr.data();
    own.count = histories.indptr.empty() ? 1 : histories.indptr.size() - 1;
    own.entries = histories.entries.empty() ? nullptr : histories.entries.data();
    own.entry_count = histories.entries.size();
    own.pages = histories.pages.empty() ? nullptr : histories.pages.data();
    own.page_count = histories.pages.empty() ? histories.pageCount : histories.pages.size();
    return detail::done(deft_beam_tree_start(handle(), &own));
  }
  /// Starts one search whose history lies in the first pages of the cache, and whose beams decode into the
  /// next `pageCount` pages.
  Result<void> start(int tokens, std::size_t pageCount) {
    const Stretch history{0, tokens};
    BeamHistories histories;
    histories.stretches = {&history, 1};
    histories.pageCount = pageCount;
    return start(histories);
  }

  /// Takes the next step: beam i continues beam parents[i] of the step before (after start(): history
  /// parents[i]) and gains a token. The plans of `followers` advance too. If a plan cannot, this is an error,
  /// but the beams do advance. Returns the largest change of any plan.
  Result<Advanced> advance(std::span<const int> parents, const Followers &followers = {}) {
    detail::FollowersOfC of(followers);
    return of.after(deft_beam_tree_advance(handle(), parents.data(), parents.size(), of.get()));
  }
  BeamStep step() const {
    const auto own =
        detail::factsOf<deft_beam_step>([&](auto to) { return deft_beam_tree_get_step(handle(), to); });
    return {{own.slots, own.beams},
            {own.positions, own.beams},
            {own.new_pages, own.new_page_count},
            {own.freed_pages, own.freed_page_count}};
  }

  /// The beams' tree, for plans and for inspection: a node for each stretch of tokens with the same readers;
  /// query i is beam i. It is valid until this object is moved from. A plan that follows lengths, or that is
  /// for an attention with another page size, is an error. Make plans after the first step, since the choice
  /// of kernels depends on the tree at that time.
  const Tree &tree() const { return view_; }

  /// The page table for Inputs::pageTable: the entries of the histories, then those of the beams' pages. It
  /// does not change until the beams start again or pages are added or taken.
  std::span<const int> pageTable() const {
    const std::int32_t *entries = nullptr;
    std::size_t count = 0;
    (void)deft_beam_tree_get_page_table(handle(), &entries, &count);
    return {entries, count};
  }

  // Only the beams use their pages. A host that shares the cache with other work adds pages when the beams
  // need more, and takes free ones back.

  std::int64_t freePages() const { return deft_beam_tree_free_pages(handle()); }
  Result<void> addPages(std::span<const int> pages) {
    return detail::done(deft_beam_tree_add_pages(handle(), pages.data(), pages.size()));
  }
  /// Takes up to `most` free pages, to which the beams no longer write. On a GPU, earlier runs may still read
  /// them on their stream.
  Result<std::vector<int>> takePages(std::size_t most) {
    return detail::array<int, std::int32_t>(
        [&](auto to, auto count) { return deft_beam_tree_take_pages(handle(), most, to, count); },
        [](std::int32_t page) { return page; });
  }

  const deft_beam_tree *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_beam_tree *handle() { return handle_.get(); }

private:
  detail::Owned<deft_beam_tree, deft_beam_tree_destroy> handle_;
  Tree view_;
};

} // namespace deft
