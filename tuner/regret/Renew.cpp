#include "tuner/regret/Renew.h"

#include "compiler/config/ConfigJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace deft::regret {

using config_cache::Entry;

namespace {

/// Times of a config and of the untuned choice, on the same trees.
struct Raced {
  double us = 0, untunedUs = 0; ///< geometric means
  double worstGain = 0;
  int trees = 0;

  double gain() const { return untunedUs / us; }
  bool isFaster() const {
    return trees > 0 && gain() >= kLeastRenewedGain && worstGain >= kLeastRenewedGainOfTree;
  }
};

/// The rows of one entry, one for each tree.
class EntryTimes {
public:
  explicit EntryTimes(std::vector<const RegretRow *> rows) : rows_(std::move(rows)) {}

  Raced of(const config::Config &config) const {
    return race([&](const RegretRow &row) { return timeOf(row, config); });
  }
  Raced ofUntuned() const {
    return race([](const RegretRow &row) { return row.offers.back().us; });
  }

  /// The offers of nearby entries without duplicates.
  std::vector<config::Config> offered() const {
    std::vector<config::Config> configs;
    for (const RegretRow *row : rows_)
      for (const RegretOffer &offer : row->offers)
        if (!offer.candidate.isUntuned() && std::ranges::none_of(configs, [&](const config::Config &other) {
              return config::areEqual(other, offer.candidate.config);
            }))
          configs.push_back(offer.candidate.config);
    return configs;
  }

  const config::Config &untuned() const { return rows_.front()->offers.back().candidate.config; }

private:
  /// The time of a config that is for the tree.
  static std::optional<double> timeOf(const RegretRow &row, const config::Config &config) {
    const Entry &entry = row.hidden.entry;
    if (!entry.keepsDefault && config::areEqual(entry.config, config))
      return entry.isFor(row.at) ? row.us : std::nullopt;
    for (const RegretOffer &offer : row.offers)
      if (!offer.candidate.isUntuned() && config::areEqual(offer.candidate.config, config))
        return offer.us;
    return std::nullopt;
  }

  template <class TimeOf> Raced race(TimeOf &&time) const {
    Raced raced;
    double us = 0, untunedUs = 0;
    for (const RegretRow *row : rows_)
      if (const std::optional<double> own = time(*row), untuned = row->offers.back().us; own && untuned) {
        const double gain = *untuned / *own;
        raced.worstGain = raced.trees == 0 ? gain : std::min(raced.worstGain, gain);
        us += std::log(*own);
        untunedUs += std::log(*untuned);
        ++raced.trees;
      }
    raced.us = std::exp(us / std::max(raced.trees, 1));
    raced.untunedUs = std::exp(untunedUs / std::max(raced.trees, 1));
    return raced;
  }

  std::vector<const RegretRow *> rows_;
};

Renewal renewed(const Entry &old, const EntryTimes &times, const config_cache::Provenance &now) {
  Renewal renewal{old, old.measurement.gain(), true};
  Entry &entry = renewal.entry;
  const Raced untuned = times.ofUntuned();
  Raced best = old.keepsDefault ? Raced{} : times.of(old.config);
  if (!best.isFaster()) {
    renewal.isOwn = false;
    entry.onlyFor.clear();
    entry.within = config_cache::kLikeness;
    for (const config::Config &config : times.offered())
      if (const Raced raced = times.of(config); raced.isFaster() && raced.trees == untuned.trees &&
                                                (!best.isFaster() || raced.gain() > best.gain())) {
        best = raced;
        entry.config = config;
      }
  }
  entry.keepsDefault = !best.isFaster();
  if (entry.keepsDefault) {
    best = untuned;
    entry.config = times.untuned();
  }
  entry.measurement = {best.us, best.untunedUs, 0, best.trees};
  const std::string tuned = old.provenance.date.substr(0, 10);
  entry.provenance = now;
  entry.provenance.note = "tuned on " + tuned + " for other kernels, renewed";
  return renewal;
}

} // namespace

std::vector<Renewal> renew(const RegretReport &timed, const config_cache::Provenance &now) {
  std::vector<Renewal> renewals;
  for (auto row = timed.rows.begin(); row != timed.rows.end();) {
    const std::string key = keyOf(row->hidden.entry);
    std::vector<const RegretRow *> rows;
    const auto first = row;
    for (; row != timed.rows.end() && keyOf(row->hidden.entry) == key; ++row)
      if (row->us)
        rows.push_back(&*row);
    if (first->isStale && !rows.empty())
      renewals.push_back(renewed(first->hidden.entry, EntryTimes(std::move(rows)), now));
  }
  return renewals;
}

} // namespace deft::regret
