#include "tuner/session/SessionHead.h"

#include "compiler/config/DevicePrices.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <functional>

namespace deft::session {
namespace {

/// All that a session depends on, and what is beside.
struct Session {
  TuneInput input;
  TuneOptions options;
  TunedDevice device{config_cache::h200(), "580.00"};
  std::vector<space::AxisOverride> axes{{"prices", {"machine"}}};
  config::Config untuned = config_cache::someConfig();
  bool isHeldOut = false;

  Session() {
    input.variant = config_cache::VariantSignature{8, 2, spec::Tensors::alike(64)}.variant();
    input.variant.name = "mine";
    input.samples = {{"few", 0, test::levelTree({1, 4}, {40, 9}), false},
                     {"more", 0, test::levelTree({1, 4}, {42, 9}), false}};
  }
  nlohmann::json event() const {
    const space::Space space = *space::makeSpace(input.variant, {nullptr, config::processorPrices(2)}, axes);
    const std::vector<TreesOfClass> classes{
        {{7, 2, 2, 1, 4}, {&input.samples[0], &input.samples[1]}, isHeldOut ? 1 : 2}};
    return sessionEvent({input, options, device, space, space.size(), untuned, classes});
  }
};

std::string identityWith(const std::function<void(Session &)> &change) {
  Session session;
  change(session);
  return session.event().at("identity");
}

TEST(SessionHeadTest, AnythingThatResultsDependOnIsAnotherSession) {
  const std::string same = identityWith([](Session &) {});
  const std::function<void(Session &)> changes[] = {
      [](Session &s) { s.input.variant.tensors = spec::Tensors::alike(128); },
      [](Session &s) { s.input.params.push_back({{}, {7}}); },
      [](Session &s) { s.input.samples[1].tree = test::levelTree({1, 4}, {43, 9}); },
      [](Session &s) { s.isHeldOut = true; },
      [](Session &s) { s.device.key = config_cache::h100(); },
      [](Session &s) { s.options.strategy = search::StrategyKind::Random; },
      [](Session &s) { s.options.mostCandidates = 9; },
      [](Session &s) { s.options.seed = 2; },
      [](Session &s) { s.options.pages = tree::PlacementOrder::InOrder; },
      [](Session &s) { s.options.recordFolder = "folder"; },
      [](Session &s) { s.options.fromRelated = true; },
      [](Session &s) { s.axes.push_back({"chunk_tokens", {"0"}}); },
      [](Session &s) { s.untuned.chunkTokens += 64; },
  };
  std::set<std::string> identities{same};
  for (const auto &change : changes)
    identities.insert(identityWith(change));
  EXPECT_EQ(identities.size(), 1 + std::size(changes)) << "each is another one";
}

TEST(SessionHeadTest, WhatResultsDoNotDependOnIsTheSameSession) {
  const std::string same = identityWith([](Session &) {});
  const std::function<void(Session &)> changes[] = {
      [](Session &s) { s.input.variant.name = "another"; },
      [](Session &s) { s.input.samples[0].name = "another"; },
      [](Session &s) { s.device.driver = "590"; },
      [](Session &s) { s.options.budgetSeconds = 10; },
      [](Session &s) { s.options.threads = 7; },
      [](Session &s) { s.options.command = "deftc tune more"; },
      [](Session &s) { s.options.note = "a note"; },
      [](Session &s) { s.options.shard = Shard{1, 2}; },
  };
  for (const auto &change : changes)
    EXPECT_EQ(identityWith(change), same);
}

TEST(SessionHeadTest, TheEventTellsWhatTheSessionIsAbout) {
  Session session;
  session.options.command = "deftc tune mine";
  const nlohmann::json event = session.event();
  EXPECT_EQ(event.at("event"), "session");
  EXPECT_EQ(event.at("variant"), "mine");
  EXPECT_EQ(event.at("backend"), "cpu");
  EXPECT_EQ(event.at("driver"), "580.00");
  EXPECT_EQ(event.at("command"), "deftc tune mine");
  EXPECT_EQ(event.at("classes"), nlohmann::json::array({"c1-t7-q2-s2-d1-f4"}));
  long long broken = 0;
  for (const auto &[rule, count] : event.at("space_size").at("broken").items())
    broken += count.get<long long>();
  EXPECT_EQ(event.at("space_size").at("all"), event.at("space_size").at("legal").get<long long>() + broken);
}

TEST(SessionHeadTest, AJournalIsWhereItIsToldOrInTheCacheUnderTheSessionsName) {
  TuneOptions options;
  const nlohmann::json event = {{"signature", "q8-kv2"}, {"identity", "abc"}};
  options.journal = "here.jsonl";
  EXPECT_EQ(*journalPath(options, event), "here.jsonl");
  options.journal.clear();
  const char *const before = std::getenv("DEFT_CACHE_DIR");
  const std::string kept = before ? before : "";
  ::setenv("DEFT_CACHE_DIR", "/some/folder", 1);
  EXPECT_EQ(*journalPath(options, event), "/some/folder/tune/q8-kv2-abc.jsonl");
  options.shard = Shard{1, 4};
  EXPECT_EQ(*journalPath(options, event), "/some/folder/tune/q8-kv2-abc-shard-1-of-4.jsonl");
  if (before)
    ::setenv("DEFT_CACHE_DIR", kept.c_str(), 1);
  else
    ::unsetenv("DEFT_CACHE_DIR");
}

} // namespace
} // namespace deft::session
