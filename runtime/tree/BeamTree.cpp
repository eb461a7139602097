#include "runtime/tree/BeamTree.h"

#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace deft::tree {

using support::Result;

namespace {

Result<void> checkRoom(const BeamRoom &room) {
  const std::int64_t end = std::int64_t{room.firstPage} + room.pages;
  if (room.pageSize < 1 || room.firstPage < 0 || room.pages < 0 || end > KvTree::kMaxTokens / room.pageSize)
    return wrong(std::to_string(room.pages) + " pages of " + std::to_string(room.pageSize) +
                 " tokens from page " + std::to_string(room.firstPage) + " on are no room for beams");
  return {};
}

} // namespace

Result<BeamTree> BeamTree::make(const BeamRoom &room) {
  const auto checked = checkRoom(room);
  return checked ? Result<BeamTree>(BeamTree(room)) : checked.error();
}

Result<void> BeamTree::checkHistories(std::span<const History> histories) {
  for (std::size_t i = 0; i < histories.size(); ++i) {
    std::int64_t tokens = 0;
    for (const Stretch &stretch : histories[i]) {
      tokens += stretch.tokens;
      if (stretch.tokens < 1 || stretch.location < 0 ||
          stretch.location > KvTree::kMaxTokens - stretch.tokens || tokens > KvTree::kMaxTokens)
        return wrong("history " + std::to_string(i) + " has " + std::to_string(stretch.tokens) +
                     " tokens at location " + std::to_string(stretch.location));
    }
    if (tokens == 0)
      return wrong("history " + std::to_string(i) + " has no token", "beams need one to go on from");
  }
  return {};
}

Result<void> BeamTree::start(std::span<const History> histories, const BeamRoom &room) {
  if (auto checked = checkHistories(histories); !checked)
    return checked;
  if (auto checked = checkRoom(room); !checked)
    return checked;
  room_ = room;
  stretches_.clear();
  order_.resize(histories.size());
  std::iota(order_.begin(), order_.end(), 0);
  lengths_.clear();
  depths_.clear();
  historyTokens_.clear();
  for (const int seat : order_) {
    int position = 0, depth = 0;
    for (const Stretch &stretch : histories[seat]) {
      stretches_.push_back({stretch.location, stretch.tokens, position, depth++, seat, seat + 1, -1});
      historyTokens_.push_back(stretch.tokens);
      position += stretch.tokens;
    }
    lengths_.push_back(position);
    depths_.push_back(depth);
  }
  stretchCount_ = stretches_.size();
  seatOf_ = searches_ = order_;
  live_.assign(static_cast<std::size_t>(room_.pages), 0);
  free_.resize(static_cast<std::size_t>(room_.pages));
  std::iota(free_.rbegin(), free_.rend(), 0);
  taken_.clear();
  pieces_.clear();
  newPages_.clear();
  freedPages_.clear();
  ++generation_;
  return {};
}

Result<void> BeamTree::checkParents(std::span<const int> parents) const {
  const auto before = static_cast<unsigned>(order_.size());
  const auto isWrong = [&](int parent) { return static_cast<unsigned>(parent) >= before; };
  bool areRight = true; // without an early end the compiler looks at several at a time
  for (const int parent : parents)
    areRight &= !isWrong(parent);
  if (areRight) [[likely]]
    return {};
  const auto found = std::find_if(parents.begin(), parents.end(), isWrong);
  return wrong("beam " + std::to_string(found - parents.begin()) + " goes on from beam " +
               std::to_string(*found) + " of " + std::to_string(before));
}

Result<std::vector<int>> BeamTree::addPages(int count) {
  const int again = std::min(count, static_cast<int>(taken_.size()));
  BeamRoom larger = room_;
  if (count > KvTree::kMaxTokens - room_.pages)
    return wrong(std::to_string(count) + " pages more are no room for beams");
  larger.pages += count - again;
  if (auto checked = checkRoom(larger); !checked)
    return checked.error();
  std::vector<int> added(taken_.end() - again, taken_.end());
  taken_.resize(taken_.size() - static_cast<std::size_t>(again));
  for (int page = room_.pages; page < larger.pages; ++page)
    added.push_back(page);
  room_ = larger;
  live_.resize(static_cast<std::size_t>(larger.pages));
  free_.insert(free_.begin(), added.rbegin(), added.rend());
  for (int &page : added)
    page += room_.firstPage;
  return added;
}

std::vector<int> BeamTree::takePages(int most) {
  const auto end = free_.begin() + std::min(most, static_cast<int>(free_.size()));
  std::vector<int> taken(free_.begin(), end);
  taken_.insert(taken_.end(), taken.begin(), taken.end());
  free_.erase(free_.begin(), end);
  for (int &page : taken)
    page += room_.firstPage;
  return taken;
}

/// Finds each beam's parent by its seat, and where the heirs of each seat begin.
void BeamTree::countHeirs(std::span<const int> parents) {
  const std::size_t before = order_.size(), beams = parents.size();
  begin_.assign(before + 1, 0);
  parentSeats_.resize(beams);
  int *const begin = begin_.data(), *const seats = parentSeats_.data();
  const int *const seatOf = seatOf_.data();
  for (std::size_t i = 0; i < beams; ++i) {
    seats[i] = seatOf[parents[i]];
    ++begin[seats[i] + 1];
  }
  for (std::size_t seat = 0; seat < before; ++seat)
    begin[seat + 1] += begin[seat];
}

/// Takes the tokens that no heir sees from their pages, and adds pages without a token to free_. Which
/// stretches end is as good as random, so nothing branches on it.
void BeamTree::freeUnseen() {
  const int *const begin = begin_.data();
  const auto none = static_cast<int>(live_.size()); // the page of histories, which are not of the room
  live_.push_back(0);
  if (unseen_.size() < live_.size())
    unseen_.resize(live_.size());
  int *const live = live_.data(), *unseen = unseen_.data();
  for (const BeamStretch &stretch : stretches()) {
    const bool isOfRoom = stretch.page >= 0;
    const int page = isOfRoom ? stretch.page : none;
    const int ends =
        static_cast<int>(isOfRoom) & static_cast<int>(begin[stretch.beamBegin] == begin[stretch.beamEnd]);
    live[page] -= ends;
    *unseen = page;
    unseen += ends & static_cast<int>(live[page] == 0);
  }
  live_.pop_back();
  free_.insert(free_.end(), unseen_.data(), unseen);
}

/// Frees pages of ended beams, then takes pages for new tokens.
Result<void> BeamTree::placeTokens(int beams) {
  const int *const begin = begin_.data();
  const std::size_t free = free_.size();
  freeUnseen();
  const bool goesOn = !pieces_.empty() && live_[pieces_.back().page] > 0;
  const int begun = goesOn ? pieces_.back().offset + pieces_.back().tokens : room_.pageSize;
  const int inBegun = std::min(room_.pageSize - begun, beams);
  const auto needed = static_cast<std::size_t>((beams - inBegun + room_.pageSize - 1) / room_.pageSize);
  if (needed > free_.size()) {
    const std::size_t left = free_.size();
    free_.resize(free);
    for (const BeamStretch &stretch : stretches())
      if (stretch.page >= 0 && begin[stretch.beamBegin] == begin[stretch.beamEnd])
        ++live_[stretch.page];
    return wrong("out of space: " + std::to_string(needed) + " pages of " + std::to_string(room_.pageSize) +
                     " tokens needed, " + std::to_string(left) + " of " + std::to_string(room_.pages) +
                     " free",
                 "go on from fewer beams, or make the room larger");
  }
  newPages_.assign(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(needed));
  free_.resize(free_.size() - needed);
  const int last = goesOn ? pieces_.back().page : -1;
  pieces_.clear();
  if (inBegun > 0)
    pieces_.push_back({last, begun, inBegun});
  int placed = inBegun;
  for (const int page : newPages_) {
    pieces_.push_back({page, 0, std::min(room_.pageSize, beams - placed)});
    placed += pieces_.back().tokens;
  }
  for (const Piece &piece : pieces_)
    live_[piece.page] += piece.tokens;
  freedPages_.assign(free_.begin() + static_cast<std::ptrdiff_t>(std::min(free, free_.size())), free_.end());
  for (std::vector<int> *pages : {&newPages_, &freedPages_})
    for (int &page : *pages)
      page += room_.firstPage;
  return {};
}

void BeamTree::seatHeirs() {
  const std::size_t beams = parentSeats_.size();
  next_ = begin_;
  newOrder_.resize(beams);
  newLengths_.resize(beams);
  newDepths_.resize(beams);
  seatOf_.resize(beams);
  int *const next = next_.data(), *const order = newOrder_.data(), *const seatOf = seatOf_.data();
  int *const lengths = newLengths_.data(), *const depths = newDepths_.data();
  for (std::size_t i = 0; i < beams; ++i) {
    const int parent = parentSeats_[i], seat = next[parent]++;
    order[seat] = static_cast<int>(i);
    seatOf[i] = seat;
    lengths[seat] = lengths_[parent] + 1;
    depths[seat] = depths_[parent] + 1;
  }
}

/// Each stretch keeps the heirs of its readers; new tokens come after everything that their beams see. So a
/// stretch that stays moves behind the new tokens of the seats before its own, and a new token behind the
/// stretches that begin at its seat or before. Which stretches stay is as good as random, so nothing branches
/// on it: one that ends is overwritten by whatever belongs there.
void BeamTree::moveStretches() {
  const int *const begin = begin_.data();
  const std::size_t beams = newOrder_.size();
  if (const std::size_t most = stretchCount_ + beams + 1; newStretches_.size() < most)
    newStretches_.resize(most + most / 8);
  stayBefore_.assign(beams + 1, 0);
  historyTokens_.clear();
  BeamStretch *const to = newStretches_.data();
  int *const stayBefore = stayBefore_.data();
  int stay = 0;
  for (const BeamStretch &stretch : stretches()) {
    const int first = begin[stretch.beamBegin], end = begin[stretch.beamEnd];
    BeamStretch &moved = to[stay + first];
    moved = stretch;
    moved.beamBegin = first;
    moved.beamEnd = end;
    stay += static_cast<int>(first != end);
    if (stretch.page < 0 && first != end) [[unlikely]]
      historyTokens_.push_back(stretch.tokens);
    stayBefore[first] = stay;
  }
  int seat = 0, before = 0;
  for (const Piece &piece : pieces_) {
    int location = (room_.firstPage + piece.page) * room_.pageSize + piece.offset;
    for (const int end = seat + piece.tokens; seat < end; ++seat) {
      before = std::max(before, stayBefore[seat]);
      to[before + seat] = {location++, 1,         newLengths_[seat] - 1, newDepths_[seat] - 1, seat,
                           seat + 1,   piece.page};
    }
  }
  stretchCount_ = static_cast<std::size_t>(stay) + beams;
}

Result<void> BeamTree::advance(std::span<const int> parents) {
  if (auto checked = checkParents(parents); !checked)
    return checked;
  countHeirs(parents);
  if (auto placed = placeTokens(static_cast<int>(parents.size())); !placed)
    return placed;
  seatHeirs();
  moveStretches();
  stretches_.swap(newStretches_);
  order_.swap(newOrder_);
  lengths_.swap(newLengths_);
  depths_.swap(newDepths_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    const int first = begin_[searches_[i]];
    const int end = i + 1 < searches_.size() ? begin_[searches_[i + 1]] : begin_.back();
    searches_[kept] = first;
    kept += first != end;
  }
  searches_.resize(kept);
  ++generation_;
  return {};
}

KvTree BeamTree::toTree() const {
  KvTree tree;
  std::vector<int> path, nodeAt(order_.size()); // of the current stretch; of each seat
  std::vector<int> ends;
  for (const BeamStretch &stretch : stretches()) {
    while (!ends.empty() && ends.back() <= stretch.beamBegin) {
      ends.pop_back();
      path.pop_back();
    }
    const int node = tree.addNode(path.empty() ? -1 : path.back(), stretch.tokens, stretch.location).value();
    path.push_back(node);
    ends.push_back(stretch.beamEnd);
    std::fill(nodeAt.begin() + stretch.beamBegin, nodeAt.begin() + stretch.beamEnd, node);
  }
  for (std::size_t beam = 0; beam < order_.size(); ++beam)
    (void)tree.addQuery(nodeAt[static_cast<std::size_t>(seatOf_[beam])]).value();
  return tree;
}

} // namespace deft::tree
