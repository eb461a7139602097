#pragma once

#include "tests/unit/tuner/session/FakeBackend.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/session/Journal.h"

#include <gtest/gtest.h>

namespace deft::session {

/// Sessions on a machine whose times are made up.
class TuneTest : public testing::Test {
protected:
  TuneTest() {
    input.variant = test::Scalar::variant();
    input.samples = test::fakeSamples();
    behaviour.time = test::landscape;
    options.journal = folder.path("journal.jsonl");
    options.configPath = folder.path("configs.json");
    options.mostCandidates = 24;
    options.addsSimilar = false;
    options.axes = {{"chunk_tokens", {"16", "32", "64", "128"}}, {"tile_q", {"16"}}, {"prices", {"machine"}}};
  }

  support::Result<TuneReport> run() {
    input.backend = test::fakeBackend(input.variant, behaviour);
    Listener listener;
    listener.note = [this](const std::string &line) { notes.push_back(line); };
    listener.progress = [this](const Status &status) { statuses.push_back(status); };
    listener.isCancelled = isCancelled;
    return tune(input, options, listener);
  }

  std::vector<nlohmann::json> events(const std::string &kind) const {
    std::vector<nlohmann::json> found;
    const auto all = readJournal(options.journal);
    EXPECT_TRUE(all.ok()) << all.error().message;
    for (const nlohmann::json &event : *all)
      if (event["event"] == kind)
        found.push_back(event);
    return found;
  }

  module_cache::TestFolder folder;
  TuneInput input;
  test::FakeBehaviour behaviour;
  TuneOptions options;
  std::vector<std::string> notes;
  std::vector<Status> statuses;
  std::function<bool()> isCancelled;
};

} // namespace deft::session
