#pragma once

#include <deft/c/beam_tree.h>
#include <deft/followers.hpp>
#include <deft/tree.hpp>

/// Wide beams: thousands of sequences over one history, which change their parents in each step.
///
///   auto beams = deft::BeamTree::make({.pageSize = 16}).value();
///   beams.start(2000, 4096).value();               // a prompt of 2,000 tokens in the cache's first pages;
///                                                  // beams decode into the 4,096 pages behind these
///   beams.advance(std::vector<int>(512, 0)).value(); // 512 beams, which all go on from the prompt
///   auto plan = deft::Plan::make(attention, beams.tree()).value(); // or a GpuPlan
///   Plan *plans[] = {&plan};
///   for (each step) {
///     for (each layer) {
///       ... write K and V of each beam's token to beams.step().slots
///       runtime.run(attention, plan, {.q = q, .k = k, .v = v, .pageTable = beams.pageTable()}, {.out =
///       out});
///     }
///     beams.advance(parents, {.plans = plans}).value(); // beam i goes on from beam parents[i]
///   }
namespace deft {

struct BeamTreeOptions {
  int pageSize = 16; ///< Attention::pageSize(), at least 1
  int mostBeams = 0; ///< that a step may have; 0: as many as there are pages for
};

/// What beams begin with, and where their tokens go. Read during the call only.
///
/// A history is what a search has in the cache already: stretches in the order of the path. Their locations
/// count tokens in a page table: token t is in slot t % pageSize of page entries[t / pageSize]. One prompt
/// whose pages are listed in `entries` is a single stretch, {0, tokens}. Histories of several searches share
/// nothing.
struct BeamHistories {
  std::span<const Stretch> stretches = {};
  /// History i has the stretches [indptr[i], indptr[i + 1]). Empty: all stretches are one history.
  std::span<const int> indptr = {};
  /// Page ids of the histories. Empty: page p of the table is page p of the cache.
  std::span<const int> entries = {};
  /// Pages for what the beams decode: of the cache, all different, none of a history.
  std::span<const int> pages = {};
  /// In place of `pages`: so many pages of the cache that follow those of the histories. An error where
  /// `entries` are given.
  std::size_t pageCount = 0;
};

/// A step of the beams. Spans are valid until the next change of the beams.
struct BeamStep {
  /// Of each beam: where K and V of its new token go. Slot s is place s % pageSize of page s / pageSize of
  /// the cache. -1 before the first step.
  std::span<const std::int64_t> slots = {};
  std::span<const int> positions = {}; ///< of each beam's last token: the tokens of its path, less one
  std::span<const int> newPages = {};  ///< page ids: those that the step has begun to write
  /// Page ids: those that beams saw tokens of before the step, and nobody does now. The step may have taken
  /// some pages that it made free for its own tokens; these are new pages instead.
  std::span<const int> freedPages = {};
};

/// The beams of a search, or of several. Each begins as one history. In each step every beam goes on from one
/// of the beams of the step before, whichever, and gains a token; a beam that nobody goes on from ends, and
/// pages without a token that a beam sees are free at once. Nothing is copied. The bytes are the host's:
/// it writes K and V of new tokens to the slots of the step.
///
/// A step takes time for what the beams have decoded, a fraction of a millisecond for thousands of them. A
/// plan of the beams' tree is made anew in each step, in about as long, if their attention hides no token
/// (no window) and they keep a GPU busy; else it is made as that of any tree.
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
  /// Takes what <deft/deft.h> made.
  explicit BeamTree(deft_beam_tree *handle)
      : handle_(handle), view_(Tree::view(deft_beam_tree_get_tree(handle))) {}

  /// Begins anew, with a beam for each history. A page table of the last search is no longer that of the
  /// beams.
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
  /// One search whose history lies in the cache's first pages, and whose beams decode into the `pageCount`
  /// pages behind these.
  Result<void> start(int tokens, std::size_t pageCount) {
    const Stretch history{0, tokens};
    BeamHistories histories;
    histories.stretches = {&history, 1};
    histories.pageCount = pageCount;
    return start(histories);
  }

  /// The next step: beam i goes on from beam parents[i] of the step before (after start(): from history
  /// parents[i]) and gains a token. Plans follow; where one cannot, the beams are those of the step all the
  /// same. Gives the most that any plan had to do.
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

  /// For Plan and for looking: a node for each stretch of tokens that the same beams see, and query i is beam
  /// i. It lives as long as this object is not moved from. Plans of attentions whose pages have another size
  /// are an error, and so are those that follow lengths. Make plans after the first step: kernels are chosen
  /// for the tree as it is then.
  const Tree &tree() const { return view_; }

  /// For Inputs::pageTable: the entries of the histories, then those of the beams' pages. It stays the same
  /// until the beams begin anew or pages are added or taken.
  std::span<const int> pageTable() const {
    const std::int32_t *entries = nullptr;
    std::size_t count = 0;
    (void)deft_beam_tree_get_page_table(handle(), &entries, &count);
    return {entries, count};
  }

  // The beams have their pages for themselves. A host that shares the cache with others adds pages when beams
  // need more, and takes those that are free.

  std::int64_t freePages() const { return deft_beam_tree_free_pages(handle()); }
  Result<void> addPages(std::span<const int> pages) {
    return detail::done(deft_beam_tree_add_pages(handle(), pages.data(), pages.size()));
  }
  /// Takes up to `most` free pages: from now on the beams do not write to them. On a GPU, runs from before
  /// may still read them, on their stream.
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
