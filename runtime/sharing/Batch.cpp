#include "runtime/sharing/Batch.h"

#include "runtime/sharing/CausalQueries.h"
#include "runtime/sharing/SamePages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace deft::sharing {

using support::Result;

namespace {

/// What is to happen where a scope is left, in whichever way, unless it is called off.
template <typename Action> class OnLeave {
public:
  explicit OnLeave(Action action) : action_(std::move(action)) {}
  OnLeave(const OnLeave &) = delete;
  OnLeave &operator=(const OnLeave &) = delete;
  ~OnLeave() {
    if (!isCalledOff_)
      action_();
  }
  void callOff() { isCalledOff_ = true; }

private:
  Action action_;
  bool isCalledOff_ = false;
};

/// Whether a request has more than one query.
bool haveSeveral(std::span<const int> queryIndptr) {
  return std::adjacent_find(queryIndptr.begin(), queryIndptr.end(),
                            [](int begin, int end) { return end - begin > 1; }) != queryIndptr.end();
}

} // namespace

Result<void> Batch::update(const Requests &asked) {
  const auto rows = RowReader::make(asked.table, forest_.pageSize());
  if (!rows)
    return rows.error();
  if (auto read = readRequests(asked, *rows, requests_); !read)
    return read;
  if (auto checked = checkDrafts(asked.drafts); !checked)
    return checked;
  const int *const table = asked.table.entries.data();
  ++step_;
  if (auto found = findMembers(asked); !found)
    return found;
  if (auto found = findRewritten(table, !asked.ids.empty()); !found)
    return found;
  if (auto checked = checkNewPages(table); !checked)
    return checked;

  return edit(haveSeveral(asked.queryIndptr), [&] {
    hasIds_ = !asked.ids.empty();
    dropUnseen();
    keepKnown();
    growKnown(table);
    addNew(table, asked.ids);
    takeOrder(asked);
  });
}

Result<void> Batch::grow(const PageTable &pages, std::span<const int> lengths) {
  const auto rows = RowReader::make(pages, forest_.pageSize());
  if (!rows)
    return rows.error();
  if (lengths.size() != members_.size())
    return support::Error{support::ErrorCode::Usage,
                          std::to_string(lengths.size()) + " lengths, but there are " +
                              std::to_string(members_.size()) + " requests",
                          "update() is for requests that come and go"};
  requests_.resize(members_.size());
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    Request &request = requests_[i];
    request.row = rows_[i];
    request.tokens = lengths[i];
    request.drafts = draftCounts_.empty() ? 0 : draftCounts_[i];
    request.member = members_[i];
    if (!rows->place(request)) [[unlikely]]
      return rows->whyNotPlaced(i, request);
    if (const int before = forest_.tokens(request.member); request.tokens < before) [[unlikely]]
      return wrongRequest(
          i, std::to_string(request.tokens) + " tokens, and there were " + std::to_string(before),
          "update() is for requests that become shorter");
  }
  const int *const table = pages.entries.data();
  if (checksEntries_)
    if (auto checked = checkEntries(table, "grow() needs requests whose pages stay; call update()"); !checked)
      return checked;
  if (auto checked = checkNewPages(table); !checked)
    return checked;

  return edit(hasSeveralQueries_, [&] {
    keepKnown();
    growKnown(table);
  });
}

template <typename Change> Result<void> Batch::edit(bool hasSeveralQueries, Change &&change) {
  std::optional<Batch> before; // whether a request is in pieces the changed forest says
  if (seesPath_ && hasSeveralQueries)
    before = *this;
  OnLeave undo([&] { dropAll(); }); // half of an edit is worse than nothing
  needsQueries_ = hasGrown_ = false;
  forest_.removeStandIns();
  change();
  makeQueries();
  undo.callOff();
  if (!before || requestInPieces_ < 0)
    return {};
  const int refused = requestInPieces_;
  *this = std::move(*before);
  return wrongRequest(static_cast<std::size_t>(refused),
                      "others share pages with its new tokens, so its queries are in several nodes: under "
                      "`path` each would see only its own node's tokens",
                      "give new tokens that see each other their own pages");
}

Result<void> Batch::checkDrafts(std::span<const int> drafts) const {
  const auto drafted = std::find_if(drafts.begin(), drafts.end(), [](int count) { return count > 0; });
  if (!seesPath_ || drafted == drafts.end())
    return {};
  return wrongRequest(static_cast<std::size_t>(drafted - drafts.begin()),
                      "it has drafts, but the batch is for masks bound by `path`",
                      "add each draft as a node with a query to a Tree");
}

/// Who the requests are among those that are known. Nothing is changed but what only this step means.
Result<void> Batch::findMembers(const Requests &asked) {
  const bool hasIds = !asked.ids.empty();
  const bool isComparable = hasIds == hasIds_; // else nobody is known: ids and rows are numbers of two kinds
  const auto idOf = [&](std::size_t i) {
    return hasIds ? asked.ids[i] : static_cast<std::uint64_t>(requests_[i].row);
  };
  std::optional<std::size_t> twice;
  newcomers_.clear();
  const OnLeave forgetNewcomers([&] { // one by one: the map may be as large as the largest batch was
    for (const std::uint64_t id : newcomers_)
      if (newIds_.find(id) >= 0)
        newIds_.erase(id);
  });
  for (std::size_t i = 0; i < requests_.size() && !twice; ++i) {
    const std::uint64_t id = idOf(i);
    const bool isWhereItWas = isComparable && i < members_.size() && known(members_[i]).id == id;
    const int member = isWhereItWas ? members_[i] : isComparable ? byId_.find(id) : -1;
    if (member < 0) {
      if (newIds_.find(id) >= 0)
        twice = i;
      newcomers_.push_back(id);
      newIds_.set(id, static_cast<int>(i));
      continue;
    }
    if (known(member).seen == step_)
      twice = i;
    known(member).seen = step_;
    requests_[i].member = member;
  }
  if (twice)
    return wrongRequest(*twice, (hasIds ? "its id " : "its row ") + std::to_string(idOf(*twice)) +
                                    " is also that of an earlier request");
  return {};
}

/// What became shorter, or has other pages than it had, is no member that is known.
Result<void> Batch::findRewritten(const int *table, bool hasIds) {
  const auto forget = [&](Request &request) {
    known(request.member).seen = 0;
    request.member = -1;
  };
  for (Request &request : requests_)
    if (request.member >= 0 && request.tokens < forest_.tokens(request.member))
      forget(request);
  if (hasIds)
    return checksEntries_ ? checkEntries(table, "give a request another id if its pages change")
                          : Result<void>();
  for (Request &request : requests_)
    if (request.member >= 0 && copies_.firstChange(request.member, table + request.firstEntry) >= 0)
      forget(request);
  return {};
}

Result<void> Batch::checkEntries(const int *table, const std::string &promise) const {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Request &request = requests_[i];
    if (request.member < 0)
      continue;
    const int *const row = table + request.firstEntry;
    if (const int changed = copies_.firstChange(request.member, row); changed >= 0)
      return wrongRequest(i,
                          "page " + std::to_string(changed) + " of its row was " +
                              std::to_string(copies_.page(request.member, changed)) + " and is " +
                              std::to_string(row[changed]),
                          promise);
  }
  return {};
}

/// Those that no step before has read.
Result<void> Batch::checkNewPages(const int *table) const {
  const PageSize pageSize = forest_.pageSize();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Request &request = requests_[i];
    const int checked =
        request.member < 0 ? 0 : known_[static_cast<std::size_t>(request.member)].checkedTokens;
    const int tokens = request.tokens + request.drafts;
    if (tokens <= checked)
      continue;
    const int *const row = table + request.firstEntry;
    const int end = pageSize.pagesFor(tokens);
    const int last = static_cast<int>(
        std::min<std::int64_t>((std::int64_t{lastPage_} + 1) * pageNumbers_ - 1, kLargestPage));
    const int outside = firstOutside(row, pageSize.pageOf(std::min(checked, request.tokens)), end, last);
    if (outside == end)
      continue;
    const std::string page =
        "page " + std::to_string(outside) + " of row " + std::to_string(request.row) + " is " +
        std::to_string(row[outside] < 0 ? row[outside] : row[outside] / pageNumbers_) + ", and ";
    return wrongRequest(
        i,
        page + (row[outside] < 0 ? std::to_string(tokens) + " tokens are in " + std::to_string(end) + " pages"
                                 : "the cache has " + std::to_string(lastPage_ + 1) + " pages"));
  }
  return {};
}

void Batch::dropUnseen() {
  for (const int member : members_)
    if (known(member).seen != step_) {
      byId_.erase(known(member).id);
      copies_.forget(member);
      forest_.remove(member);
    }
}

/// Rows of those that stay may be elsewhere.
void Batch::keepKnown() {
  bool hasMoved = false;
  for (const Request &request : requests_)
    if (request.member >= 0 && forest_.firstEntry(request.member) != request.firstEntry) {
      forest_.move(request.member, request.firstEntry);
      hasMoved = true;
    }
  if (hasMoved)
    forest_.placeMoved();
}

void Batch::growKnown(const int *table) {
  const PageSize pageSize = forest_.pageSize();
  for (const Request &request : requests_) {
    if (request.member < 0 || request.tokens == forest_.tokens(request.member))
      continue;
    forest_.grow(table, request.member, request.tokens);
    hasGrown_ = true;
    Known &own = known(request.member);
    if (request.tokens <= own.checkedTokens)
      continue;
    const int pages = pageSize.pagesFor(request.tokens);
    own.checkedTokens = pages * pageSize.tokens();
    if (keepsCopies())
      copies_.extend(request.member, table + request.firstEntry, pages);
  }
}

void Batch::addNew(const int *table, std::span<const std::uint64_t> ids) {
  const PageSize pageSize = forest_.pageSize();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    Request &request = requests_[i];
    if (request.member >= 0)
      continue;
    request.member = forest_.insert(table, request.firstEntry, request.tokens);
    known_.resize(std::max(known_.size(), static_cast<std::size_t>(request.member) + 1));
    const int pages = pageSize.pagesFor(request.tokens);
    const std::uint64_t id = ids.empty() ? static_cast<std::uint64_t>(request.row) : ids[i];
    known(request.member) = {.id = id, .seen = step_, .checkedTokens = pages * pageSize.tokens()};
    byId_.set(id, request.member);
    if (keepsCopies())
      copies_.extend(request.member, table + request.firstEntry, pages);
  }
}

/// The batch's order, and how many queries each request has.
void Batch::takeOrder(const Requests &asked) {
  const std::span<const int> queryIndptr = asked.queryIndptr;
  const int queriesOfEach = asked.drafts.empty() ? 1 : 0; // drafts are their request's queries, all of them
  draftCounts_.assign(asked.drafts.begin(), asked.drafts.end());
  const std::size_t count = requests_.size();
  needsQueries_ |= count != members_.size();
  members_.resize(count);
  rows_.resize(count);
  queryCounts_.resize(count);
  hasSeveralQueries_ = false;
  for (std::size_t i = 0; i < count; ++i) {
    const int queries = queryIndptr.empty() ? queriesOfEach : queryIndptr[i + 1] - queryIndptr[i];
    needsQueries_ |= members_[i] != requests_[i].member || queryCounts_[i] != queries;
    members_[i] = requests_[i].member;
    rows_[i] = requests_[i].row;
    queryCounts_[i] = queries;
    hasSeveralQueries_ |= queries > 1;
  }
}

/// A leaf for each block of a request's drafts, and their queries.
void Batch::addStandIns() {
  for (std::size_t i = 0; i < draftCounts_.size(); ++i) {
    const int count = draftCounts_[i], member = members_[i];
    if (count == 0)
      continue;
    const int length = forest_.tokens(member);
    drafted_.push_back({.request = static_cast<int>(i),
                        .firstQuery = static_cast<int>(queries_.size()),
                        .count = count,
                        .length = length,
                        .location = static_cast<int>(forest_.locationIn(member, length))});
    for (int block = 0; block < tree::DraftStandIn::blocks(count); ++block) {
      const auto standIn = tree::DraftStandIn::of(count, block);
      const int node = forest_.addStandIn(member, standIn.tokens());
      queries_.insert(queries_.end(), static_cast<std::size_t>(standIn.count), {node, tree::Query::kWhole});
    }
  }
}

/// The same queries as before are left alone: then a tree of which only leaves grew is one to plans, too.
void Batch::makeQueries() {
  queries_.clear();
  drafted_.clear();
  addStandIns();
  if (!forest_.settle() && !needsQueries_ && !(hasSeveralQueries_ && hasGrown_))
    return;
  requestInPieces_ = -1;
  if (draftCounts_.empty())
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::size_t first = queries_.size();
      addCausalQueries(forest_.tree(), forest_.endNode(members_[i]), forest_.tokens(members_[i]),
                       queryCounts_[i], queries_);
      if (first < queries_.size() && queries_[first].node != queries_.back().node && requestInPieces_ < 0)
        requestInPieces_ = static_cast<int>(i);
    }
  forest_.setQueries(queries_);
}

void Batch::dropAll() {
  forest_.clear();
  (void)forest_.settle();
  known_.clear();
  byId_.clear();
  copies_.clear();
  members_.clear();
  rows_.clear();
  queryCounts_.clear();
  draftCounts_.clear();
  drafted_.clear();
  requestInPieces_ = -1;
}

} // namespace deft::sharing
