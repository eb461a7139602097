#include "tuner/regret/RegretSummary.h"

#include "compiler/support/Numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

namespace deft::regret {

using config_cache::Candidate;
using config_cache::Entry;
using config_cache::Rule;
using config_cache::TreeClass;

namespace {

bool isFirstOfRule(const std::vector<RegretOffer> &offers, std::size_t i) {
  return i == 0 || offers[i].candidate.rule != offers[i - 1].candidate.rule;
}

RuleRegret summarizeRule(Rule rule, const std::vector<RegretRow> &rows) {
  RuleRegret summary;
  summary.rule = rule;
  std::vector<double> regrets;
  for (const RegretRow &row : rows)
    for (std::size_t i = 0; i < row.offers.size(); ++i) {
      const RegretOffer &offer = row.offers[i];
      if (offer.candidate.rule != rule || !offer.regret || !isFirstOfRule(row.offers, i))
        continue;
      regrets.push_back(*offer.regret);
      summary.chosen += i == 0;
      const auto next = std::find_if(row.offers.begin() + static_cast<std::ptrdiff_t>(i), row.offers.end(),
                                     [&](const RegretOffer &other) { return other.candidate.rule != rule; });
      if (next != row.offers.end() && next->us) {
        ++summary.compared;
        summary.atLeastAsFast += *offer.us <= *next->us;
      }
    }
  summary.offers = static_cast<int>(regrets.size());
  if (regrets.empty())
    return summary;
  std::sort(regrets.begin(), regrets.end());
  summary.median = regrets[regrets.size() / 2];
  summary.worst = regrets.back();
  return summary;
}

/// Regrets of nearby entries, grouped by `nameOf`; an empty name: ignored.
template <typename NameOf>
std::vector<NearbyRegret> summarizeNearby(const std::vector<RegretRow> &rows, const NameOf &nameOf) {
  std::map<std::string, std::vector<double>> regrets;
  std::map<std::string, int> beat;
  for (const RegretRow &row : rows)
    for (const RegretOffer &offer : row.offers) {
      const bool isNear = offer.candidate.rule == Rule::Nearby && offer.regret;
      const std::string name = isNear ? nameOf(row.hidden.entry, offer.candidate) : std::string();
      if (name.empty())
        continue;
      regrets[name].push_back(*offer.regret);
      const RegretOffer &heuristic = row.offers.back();
      beat[name] += heuristic.us && *offer.us <= *heuristic.us;
    }
  std::vector<NearbyRegret> summaries;
  for (auto &[name, values] : regrets) {
    std::sort(values.begin(), values.end());
    summaries.push_back(
        {name, static_cast<int>(values.size()), values[values.size() / 2], values.back(), beat[name]});
  }
  return summaries;
}

std::string freshness(const Candidate &near) { return near.isStale ? ", stale" : ""; }

std::string bandOf(const Entry &, const Candidate &near) {
  return "distance up to " + support::rounded(std::ceil(2 * near.distance) / 2, 1) + freshness(near);
}

/// The number that differs, if exactly one differs by one step.
std::string stepOf(const Entry &hidden, const Candidate &near) {
  const Entry &other = near.from->entry;
  if (hidden.treeClass == other.treeClass)
    return "another variant" + freshness(near);
  if (hidden.signature != other.signature)
    return {};
  const auto a = hidden.treeClass.numbers(), b = other.treeClass.numbers();
  std::string name;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i])
      continue;
    if (std::abs(a[i] - b[i]) > 1 || !name.empty())
      return {};
    name = std::string("one step of ") + TreeClass::kLetters[i] + freshness(near);
  }
  return name;
}

/// A row's nearby offers that were timed, in the order of the rules.
using Near = std::vector<const RegretOffer *>;

/// Over timed rows, relative to the untuned choice. `usOf` returns the time of the replacing entry, if any.
template <typename UsOf>
OrderRegret judge(const std::string &name, const std::vector<RegretRow> &rows, const UsOf &usOf) {
  OrderRegret order{name};
  double logs = 0;
  for (const RegretRow &row : rows) {
    const std::optional<double> untunedUs = row.offers.back().us;
    if (!untunedUs)
      continue;
    const std::optional<double> us = usOf(row);
    const double ratio = us ? *us / *untunedUs : 1;
    logs += std::log(ratio);
    order.worst = order.rows == 0 ? ratio : std::max(order.worst, ratio);
    order.chosen += us.has_value();
    ++order.rows;
  }
  order.mean = order.rows > 0 ? std::exp(logs / order.rows) : 1;
  return order;
}

Near nearOffers(const RegretRow &row) {
  Near near;
  for (const RegretOffer &offer : row.offers)
    if (offer.candidate.rule == Rule::Nearby && offer.us)
      near.push_back(&offer);
  return near;
}

template <typename IsWanted> std::optional<double> usOfFirst(const Near &near, const IsWanted &isWanted) {
  const auto found = std::find_if(near.begin(), near.end(), isWanted);
  return found != near.end() ? (*found)->us : std::nullopt;
}

/// Judges the three possible orders of such entries.
template <typename IsWanted>
void judgeOrdersOf(const std::string &name, const RegretReport &report, const IsWanted &isWanted,
                   std::vector<OrderRegret> &orders) {
  orders.push_back(judge(name + ", fresh alone", report.rows, [&](const RegretRow &row) {
    return usOfFirst(nearOffers(row),
                     [&](const RegretOffer *o) { return !o->candidate.isStale && isWanted(row, *o); });
  }));
  orders.push_back(judge(name + ", fresh before stale", report.rows, [&](const RegretRow &row) {
    Near near = nearOffers(row);
    std::stable_partition(near.begin(), near.end(),
                          [](const RegretOffer *offer) { return !offer->candidate.isStale; });
    return usOfFirst(near, [&](const RegretOffer *o) { return isWanted(row, *o); });
  }));
  orders.push_back(judge(name + ", near before far", report.rows, [&](const RegretRow &row) {
    Near near = nearOffers(row);
    std::stable_sort(near.begin(), near.end(), [](const RegretOffer *a, const RegretOffer *b) {
      return a->candidate.distance < b->candidate.distance;
    });
    return usOfFirst(near, [&](const RegretOffer *o) { return isWanted(row, *o); });
  }));
}

std::vector<OrderRegret> judgeOrders(const RegretReport &report) {
  std::vector<OrderRegret> orders;
  for (const bool isStale : {false, true}) {
    std::vector<RegretRow> rows;
    std::copy_if(report.rows.begin(), report.rows.end(), std::back_inserter(rows),
                 [&](const RegretRow &row) { return row.isStale == isStale; });
    orders.push_back(judge(isStale ? "the entries themselves, stale" : "the entries themselves", rows,
                           [](const RegretRow &row) { return row.us; }));
  }
  const auto isOfClass = [](const RegretRow &row, const RegretOffer &offer) {
    return offer.candidate.from->entry.treeClass == row.hidden.entry.treeClass;
  };
  judgeOrdersOf("another variant", report, isOfClass, orders);
  for (const double limit : {0.5, 1.0, 1.5, 2.0})
    judgeOrdersOf(
        "distance up to " + support::rounded(limit, 1), report,
        [&](const RegretRow &, const RegretOffer &offer) { return offer.candidate.distance <= limit; },
        orders);
  std::erase_if(orders, [](const OrderRegret &order) { return order.chosen == 0; });
  return orders;
}

} // namespace

void summarize(RegretReport &report) {
  for (const Rule rule : {Rule::Override, Rule::Exact, Rule::Sibling, Rule::Nearby, Rule::Heuristic})
    if (const RuleRegret summary = summarizeRule(rule, report.rows); summary.offers > 0)
      report.rules.push_back(summary);
  report.distances = summarizeNearby(report.rows, bandOf);
  report.steps = summarizeNearby(report.rows, stepOf);
  report.orders = judgeOrders(report);
}

} // namespace deft::regret
