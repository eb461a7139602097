#include "runtime/reference/Selecting.h"

#include "runtime/reference/Oracle.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace deft::reference {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr double kLowest = -static_cast<double>(std::numeric_limits<float>::max());

bool isKept(const spec::SelectSpec &select, std::size_t position, std::size_t tokens) {
  return position < static_cast<std::size_t>(select.keepFirst) ||
         position + static_cast<std::size_t>(select.keepLast) >= tokens;
}

/// Judges the lists of one query after the other.
class Judge {
public:
  Judge(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
        const exec::Selection &selection)
      : variant_(variant), tree_(tree), inputs_(inputs), selection_(selection) {}

  void judge(int query) {
    for (int list = 0; list < variant_.lists(); ++list) {
      const std::string fault = faultOf(query, list);
      ++report.lists;
      if (fault.empty())
        continue;
      ++report.wrongLists;
      if (firstQuery_ < 0) {
        firstQuery_ = query;
        report.fault = "query " + std::to_string(query) + ", list " + std::to_string(list) + ": " + fault;
      }
    }
  }

  void join(const Judge &other) {
    report.lists += other.report.lists;
    report.wrongLists += other.report.wrongLists;
    report.tokens += other.report.tokens;
    report.common += other.report.common;
    if (other.firstQuery_ >= 0 && (firstQuery_ < 0 || other.firstQuery_ < firstQuery_)) {
      firstQuery_ = other.firstQuery_;
      report.fault = other.report.fault;
    }
  }

  SelectionReport report;

private:
  std::string faultOf(int query, int list) {
    const Worth worth = worthOf(variant_, tree_, inputs_, query, list);
    const std::size_t tokens = worth.values.size();
    const std::vector<int> exact = selectBySort(worth.values, *variant_.select, selection_.budget);
    const auto count = selection_.counts[selection_.listAt(query, list)];
    if (count != static_cast<std::int32_t>(exact.size()))
      return "it has " + std::to_string(count) + " tokens, not " + std::to_string(exact.size());
    const auto positions = selection_.of(query, list);
    report.tokens += count;
    std::vector<bool> isListed(tokens, false);
    int before = -1;
    for (const std::int32_t position : positions) {
      if (position <= before)
        return "position " + std::to_string(position) + " stands behind " + std::to_string(before);
      if (position >= static_cast<std::int32_t>(tokens))
        return "position " + std::to_string(position) + " is not on the path of " + std::to_string(tokens);
      if (worth.values[static_cast<std::size_t>(position)] == kHidden)
        return "position " + std::to_string(position) + " is hidden";
      isListed[static_cast<std::size_t>(position)] = true;
      before = position;
    }
    for (const int position : exact)
      report.common += isListed[static_cast<std::size_t>(position)];
    return faultOfOrder(worth, isListed);
  }

  std::string faultOfOrder(const Worth &worth, const std::vector<bool> &isListed) const {
    const std::size_t tokens = isListed.size();
    // The best that is left out, if roundings are against it, and the worst that is in, if they are for it.
    double out = kHidden, in = std::numeric_limits<double>::infinity();
    std::size_t outAt = 0, inAt = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      if (worth.values[t] == kHidden)
        continue;
      if (isKept(*variant_.select, t, tokens)) {
        if (!isListed[t])
          return "position " + std::to_string(t) + ", which is kept, is not in it";
      } else if (isListed[t] && worth.values[t] + worth.bounds[t] < in) {
        in = worth.values[t] + worth.bounds[t];
        inAt = t;
      } else if (!isListed[t] && worth.values[t] - worth.bounds[t] > out) {
        out = worth.values[t] - worth.bounds[t];
        outAt = t;
      }
    }
    if (out <= in)
      return {};
    return "position " + std::to_string(inAt) + " is worth " + std::to_string(worth.values[inAt]) +
           " and in it, position " + std::to_string(outAt) + " " + std::to_string(worth.values[outAt]) +
           " and not";
  }

  const spec::Variant &variant_;
  const tree::KvTree &tree_;
  const exec::Inputs &inputs_;
  const exec::Selection &selection_;
  int firstQuery_ = -1;
};

} // namespace

Worth worthOf(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs, int query,
              int list) {
  Worth worth;
  for (int head = 0; head < variant.queryHeads; ++head) {
    if (variant.listOf(head) != list)
      continue;
    std::vector<double> bounds;
    std::vector<double> scores = evaluateScores(variant, tree, inputs, query, head, &bounds);
    for (double &score : scores)
      score = std::isnan(score) ? kLowest : score;
    if (worth.values.empty()) {
      worth = {std::move(scores), std::move(bounds)};
      continue;
    }
    for (std::size_t t = 0; t < scores.size(); ++t) {
      worth.values[t] = std::max(worth.values[t], scores[t]);
      worth.bounds[t] = std::max(worth.bounds[t], bounds[t]);
    }
  }
  return worth;
}

std::vector<int> selectBySort(const std::vector<double> &worth, const spec::SelectSpec &select, int budget) {
  std::vector<int> order;
  for (std::size_t t = 0; t < worth.size(); ++t)
    if (worth[t] != kHidden)
      order.push_back(static_cast<int>(t));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const bool keepsA = isKept(select, static_cast<std::size_t>(a), worth.size());
    const bool keepsB = isKept(select, static_cast<std::size_t>(b), worth.size());
    return keepsA != keepsB
               ? keepsA
               : !keepsA && worth[static_cast<std::size_t>(a)] > worth[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(budget)));
  std::sort(order.begin(), order.end());
  return order;
}

exec::Selection select(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                       int budget) {
  exec::Selection selection;
  selection.resize(static_cast<int>(tree.queries().size()), variant.lists(), budget);
  std::fill(selection.positions.begin(), selection.positions.end(), -1);
  for (int query = 0; query < selection.queries; ++query)
    for (int list = 0; list < selection.lists; ++list) {
      const std::vector<int> positions =
          selectBySort(worthOf(variant, tree, inputs, query, list).values, *variant.select, budget);
      const std::size_t at = selection.listAt(query, list);
      selection.counts[at] = static_cast<std::int32_t>(positions.size());
      std::copy(positions.begin(), positions.end(),
                selection.positions.begin() + static_cast<std::ptrdiff_t>(at) * budget);
    }
  return selection;
}

SelectionReport checkSelection(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, const exec::Selection &selection,
                               const std::vector<int> &queries, int threads) {
  const auto count = static_cast<std::size_t>(std::max(threads, 1));
  std::vector<Judge> judges(count, Judge(variant, tree, inputs, selection));
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Judge &judge) {
    for (std::size_t i; (i = next.fetch_add(1)) < queries.size();)
      judge.judge(queries[i]);
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < count; ++t)
    others.emplace_back(work, std::ref(judges[t]));
  work(judges[0]);
  for (std::thread &thread : others)
    thread.join();
  for (std::size_t t = 1; t < count; ++t)
    judges[0].join(judges[t]);
  return judges[0].report;
}

} // namespace deft::reference
