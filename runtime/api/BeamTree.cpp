#include "runtime/api/BeamTree.h"

#include "runtime/api/Checks.h"
#include "runtime/api/Followers.h"
#include "runtime/api/Sized.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace deft;
using namespace deft::api;
using deft::tree::BeamTree;
using deft::tree::KvTree;

namespace {

constexpr int kNoPage = -1; ///< an entry whose page was taken away

std::string text(std::int64_t number) { return std::to_string(number); }

Result<std::vector<BeamTree::History>> historiesOf(const deft_beam_histories &given) {
  if (auto checked = checkArray("deft_beam_histories::stretches", given.stretches, given.stretch_count);
      !checked)
    return checked.error();
  const std::span stretches(given.stretches, given.stretch_count);
  const std::int32_t ofOne[] = {0, static_cast<std::int32_t>(stretches.size())};
  const std::span<const std::int32_t> indptr =
      given.indptr ? std::span(given.indptr, given.count + 1) : std::span<const std::int32_t>(ofOne);
  if (!given.indptr && given.count > 1)
    return wrong("deft_beam_histories::indptr", "is null, and there are " + text(given.count) + " histories");
  if (indptr.front() != 0 || !std::is_sorted(indptr.begin(), indptr.end()) ||
      static_cast<std::size_t>(indptr.back()) != stretches.size())
    return wrong("deft_beam_histories::indptr",
                 "does not rise from 0 to the number of stretches, " + text(stretches.size()));
  std::vector<BeamTree::History> histories(indptr.size() - 1);
  for (std::size_t i = 0; i < histories.size(); ++i)
    for (const deft_stretch &stretch : stretches.subspan(static_cast<std::size_t>(indptr[i]),
                                                         static_cast<std::size_t>(indptr[i + 1] - indptr[i])))
      histories[i].push_back({stretch.location, stretch.tokens});
  return histories;
}

/// Pages that the histories need of a table: an error where one of theirs is not there, or is none.
Result<int> pagesOf(const std::vector<BeamTree::History> &histories, const deft_beam_histories &given,
                    int pageSize) {
  int pages = 0;
  for (std::size_t i = 0; i < histories.size(); ++i)
    for (const tree::Stretch &stretch : histories[i]) {
      const int first = stretch.location / pageSize,
                last = (stretch.location + stretch.tokens - 1) / pageSize;
      pages = std::max(pages, last + 1);
      if (!given.entries)
        continue;
      if (static_cast<std::size_t>(last) >= given.entry_count)
        return wrong("deft_beam_histories::entries", "has " + text(given.entry_count) +
                                                         " pages, and history " + text(i) + " ends in page " +
                                                         text(last));
      for (int page = first; page <= last; ++page)
        if (given.entries[page] < 0)
          return wrong("deft_beam_histories::entries", "has " + text(given.entries[page]) + " at " +
                                                           text(page) + ", and history " + text(i) +
                                                           " has tokens there");
    }
  return pages;
}

/// Notes that these are in use from now on. After an error none is that was not before.
Result<void> takeIntoUse(std::span<const std::int32_t> pages, std::unordered_set<std::int32_t> &inUse,
                         const char *field) {
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (pages[i] < 0 || !inUse.insert(pages[i]).second) {
      for (const std::int32_t page : pages.first(i))
        inUse.erase(page);
      return wrong(field, "has page " + text(pages[i]) + " at " + text(i) +
                              (pages[i] < 0 ? ", which is none" : ", which the beams have already"));
    }
  return {};
}

} // namespace

Result<void> deft_beam_tree::start(const deft_beam_histories &given) {
  const auto histories = historiesOf(given);
  if (!histories)
    return histories.error();
  if (auto checked = checkArray("deft_beam_histories::entries", given.entries, given.entry_count); !checked)
    return checked;
  constexpr std::size_t kMost = KvTree::kMaxTokens;
  for (const auto &[field, count] : {std::pair("deft_beam_histories::entry_count", given.entry_count),
                                     std::pair("deft_beam_histories::page_count", given.page_count)})
    if (auto checked = checkRange(field, static_cast<long long>(std::min(count, kMost + 1)), 0, kMost);
        !checked)
      return checked;
  if (given.entries && !given.pages && given.page_count > 0)
    return wrong("deft_beam_histories::pages", "is null, and the histories' entries are given");
  if (auto checked = BeamTree::checkHistories(*histories); !checked)
    return wrong("deft_beam_histories::stretches", "are wrong: " + checked.error().message);
  const int pageSize = beams_.room().pageSize;
  const auto pages = pagesOf(*histories, given, pageSize);
  if (!pages)
    return pages.error();
  const int first = given.entries ? static_cast<int>(given.entry_count) : *pages;
  const tree::BeamRoom room{pageSize, first, static_cast<int>(given.page_count)};
  if (auto checked = BeamTree::make(room); !checked)
    return wrong("deft_beam_histories::page_count", "is too large: " + checked.error().message);
  std::vector<std::int32_t> table(static_cast<std::size_t>(first) + given.page_count);
  if (given.entries)
    std::copy_n(given.entries, first, table.begin());
  else
    std::iota(table.begin(), table.end(), 0); // where pages are null, also theirs
  if (given.pages)
    std::copy_n(given.pages, given.page_count, table.begin() + first);
  std::unordered_set<std::int32_t> inUse(table.begin(), table.begin() + first);
  if (auto taken = takeIntoUse(std::span(table).subspan(static_cast<std::size_t>(first)), inUse,
                               "deft_beam_histories::pages");
      !taken)
    return taken;
  const NotedChange noted(view);
  if (auto started = beams_.start(*histories, room); !started)
    return started;
  table_ = std::move(table);
  inUse_ = std::move(inUse);
  noteStep();
  return {};
}

Result<void> deft_beam_tree::advance(std::span<const std::int32_t> parents) {
  const std::size_t most = mostBeams_ > 0 ? static_cast<std::size_t>(mostBeams_) : KvTree::kMaxQueries;
  if (parents.size() > most)
    return wrong("parents", "has " + text(parents.size()) + " beams, there are at most " + text(most));
  if (auto checked = beams_.checkParents(parents); !checked)
    return wrong("parents", "are wrong: " + checked.error().message);
  const NotedChange noted(view);
  if (auto advanced = beams_.advance(parents); !advanced)
    return advanced;
  noteStep();
  return {};
}

void deft_beam_tree::noteStep() {
  const auto pagesOf = [&](std::span<const int> places, std::vector<std::int32_t> &to) {
    to.clear();
    for (const int place : places)
      to.push_back(table_[static_cast<std::size_t>(place)]);
  };
  pagesOf(beams_.newPages(), newPages_);
  pagesOf(beams_.freedPages(), freedPages_);
  const tree::BeamRoom &room = beams_.room();
  const std::span<const int> order = beams_.order(), lengths = beams_.lengths();
  slots_.assign(order.size(), -1);
  positions_.resize(order.size());
  for (std::size_t seat = 0; seat < order.size(); ++seat)
    positions_[static_cast<std::size_t>(order[seat])] = lengths[seat] - 1;
  std::size_t seat = 0;
  for (const BeamTree::Piece &piece : beams_.pieces()) {
    const auto place = static_cast<std::size_t>(room.firstPage + piece.page);
    std::int64_t slot = std::int64_t{table_[place]} * room.pageSize + piece.offset;
    for (const std::size_t end = seat + static_cast<std::size_t>(piece.tokens); seat < end; ++seat)
      slots_[static_cast<std::size_t>(order[seat])] = slot++;
  }
}

Result<void> deft_beam_tree::addPages(std::span<const std::int32_t> pages) {
  if (pages.size() > static_cast<std::size_t>(KvTree::kMaxTokens))
    return wrong("count", "is " + text(static_cast<std::int64_t>(pages.size())) + ", more than a cache has");
  if (auto taken = takeIntoUse(pages, inUse_, "pages"); !taken)
    return taken;
  const auto added = beams_.addPages(static_cast<int>(pages.size()));
  if (!added) {
    for (const std::int32_t page : pages)
      inUse_.erase(page);
    return wrong("count", "is too large: " + added.error().message);
  }
  table_.resize(static_cast<std::size_t>(beams_.room().firstPage + beams_.room().pages), kNoPage);
  for (std::size_t i = 0; i < pages.size(); ++i)
    table_[static_cast<std::size_t>((*added)[i])] = pages[i];
  return {};
}

std::vector<std::int32_t> deft_beam_tree::takePages(std::size_t most) {
  std::vector<std::int32_t> taken;
  for (const int place :
       beams_.takePages(static_cast<int>(std::min<std::size_t>(most, KvTree::kMaxTokens)))) {
    std::int32_t &entry = table_[static_cast<std::size_t>(place)];
    inUse_.erase(entry);
    taken.push_back(std::exchange(entry, kNoPage));
  }
  return taken;
}

deft_beam_step deft_beam_tree::step() const {
  deft_beam_step known{};
  known.beams = slots_.size();
  known.slots = slots_.data();
  known.positions = positions_.data();
  known.new_pages = newPages_.data();
  known.new_page_count = newPages_.size();
  known.freed_pages = freedPages_.data();
  known.freed_page_count = freedPages_.size();
  return known;
}

deft_status deft_beam_tree_make(const deft_beam_tree_options *options, deft_beam_tree **beams) {
  return make({{"options", options}}, beams, [&]() -> Result<std::unique_ptr<deft_beam_tree>> {
    const auto known = readSized("deft_beam_tree_options", options);
    if (!known)
      return known.error();
    if (auto checked = checkRange("deft_beam_tree_options::page_size", known->page_size, 1, kLargestPage,
                                  "a cache without pages is one with pages of 1 token");
        !checked)
      return checked.error();
    if (auto checked =
            checkRange("deft_beam_tree_options::most_beams", known->most_beams, 0, KvTree::kMaxQueries);
        !checked)
      return checked.error();
    auto made = BeamTree::make({.pageSize = known->page_size});
    if (!made)
      return made.error();
    return std::make_unique<deft_beam_tree>(std::move(*made), known->most_beams);
  });
}

void deft_beam_tree_destroy(deft_beam_tree *beams) { delete beams; }

deft_status deft_beam_tree_start(deft_beam_tree *beams, const deft_beam_histories *histories) {
  return call({{"beams", beams}, {"histories", histories}}, [&]() -> Result<void> {
    const auto known = readSized("deft_beam_histories", histories);
    return known ? beams->start(*known) : known.error();
  });
}

deft_status deft_beam_tree_advance(deft_beam_tree *beams, const int32_t *parents, size_t count,
                                   deft_followers *followers) {
  return call({{"beams", beams}}, [&]() -> Result<void> {
    if (auto checked = checkArray("parents", parents, count); !checked)
      return checked;
    const auto take = [&] { return beams->advance(spanOf(parents, count)); };
    return followers ? takeStep(beams->view, followers, take) : take();
  });
}

deft_status deft_beam_tree_get_step(const deft_beam_tree *beams, deft_beam_step *step) {
  return call({{"beams", beams}, {"step", step}},
              [&] { return writeSized("deft_beam_step", beams->step(), step); });
}

const deft_tree *deft_beam_tree_get_tree(const deft_beam_tree *beams) {
  return ask<const deft_tree *>({"beams", beams}, nullptr, [&] { return &beams->view; });
}

deft_status deft_beam_tree_get_page_table(const deft_beam_tree *beams, const int32_t **entries,
                                          size_t *count) {
  return call({{"beams", beams}, {"entries", entries}, {"count", count}}, [&] {
    *entries = beams->table().data();
    *count = beams->table().size();
    return Result<void>();
  });
}

int64_t deft_beam_tree_free_pages(const deft_beam_tree *beams) {
  return ask<int64_t>({"beams", beams}, 0, [&] { return beams->beams().freePages(); });
}

deft_status deft_beam_tree_add_pages(deft_beam_tree *beams, const int32_t *pages, size_t count) {
  return call({{"beams", beams}}, [&]() -> Result<void> {
    const auto checked = checkArray("pages", pages, count);
    return checked ? beams->addPages(spanOf(pages, count)) : checked;
  });
}

deft_status deft_beam_tree_take_pages(deft_beam_tree *beams, size_t most, int32_t **pages, size_t *count) {
  clear(pages);
  return call({{"beams", beams}, {"pages", pages}, {"count", count}}, [&] {
    giveArray(beams->takePages(most), pages, count, [](std::int32_t page) { return page; });
    return Result<void>();
  });
}
