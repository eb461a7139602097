#pragma once

#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/session/Candidates.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Race.h"

#include <gtest/gtest.h>

#include <cmath>

/// What tests of a session's single steps are made of.
namespace deft::test {

/// A config that its chunk tells from others.
inline config::Config configOf(int chunkTokens, std::size_t phases = 1) {
  config::Config config;
  config.partition = spec::Partition::Node;
  config.chunkTokens = chunkTokens;
  config.phases.resize(phases);
  config.phases.front().name = "wide";
  return config;
}

/// A journal of no session that has just begun.
inline session::Journal newJournal(const module_cache::TestFolder &folder) {
  auto journal = session::Journal::open(
      folder.path("journal"),
      {{"event", "session"}, {"version", session::kJournalVersion}, {"identity", "x"}}, false);
  EXPECT_TRUE(journal.ok()) << journal.error().message;
  return std::move(*journal);
}

inline std::vector<nlohmann::json> eventsOf(const session::Journal &journal, const std::string &kind) {
  const auto all = session::readJournal(journal.path());
  EXPECT_TRUE(all.ok()) << all.error().message;
  std::vector<nlohmann::json> found;
  for (const nlohmann::json &event : *all)
    if (event["event"] == kind)
      found.push_back(event);
  return found;
}

/// A racer that took, in each of so many rounds, these times of the untuned choice's on its trees.
inline session::Racer racerOf(const std::string &id, const std::vector<double> &ratios, int rounds = 5) {
  session::Racer::Round round;
  for (const double ratio : ratios) {
    round.own.push_back(std::log(100 * ratio));
    round.reference.push_back(std::log(100));
  }
  return {id, std::vector(static_cast<std::size_t>(rounds), round), false};
}

} // namespace deft::test
