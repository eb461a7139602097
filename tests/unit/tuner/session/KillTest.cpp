#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tests/unit/tuner/session/FakeBackend.h"
#include "tuner/session/Journal.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sys/wait.h>

namespace deft::session {
namespace {

using nlohmann::json;

/// One session in a process of its own; its exit code says how it ended.
class KilledSession {
public:
  explicit KilledSession(const std::string &folder) : folder_(folder) {}

  pid_t start() const {
    const pid_t child = ::fork();
    if (child != 0)
      return child;
    TuneInput input;
    input.variant = test::Scalar::variant();
    input.samples = test::fakeSamples();
    test::FakeBehaviour behaviour;
    behaviour.time = test::landscape;
    behaviour.sleepSeconds = 0.003;
    input.backend = test::fakeBackend(input.variant, behaviour);
    TuneOptions options;
    options.journal = journal();
    options.configPath = configs();
    options.mostCandidates = 8;
    options.axes = {{"chunk_tokens", {"0", "64"}}, {"tile_q", {"16"}}, {"prices", {"machine"}}};
    const auto report = tune(input, options);
    ::_exit(report && report->ended == Ended::Complete ? 0 : 1);
  }

  std::string journal() const { return folder_ + "/journal.jsonl"; }
  std::string configs() const { return folder_ + "/configs.json"; }

private:
  std::string folder_;
};

TEST(KillTest, ASessionThatIsKilledAtAnyMomentGoesOnAndMeasuresNothingTwice) {
  const unsigned seed = std::random_device()();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  const module_cache::TestFolder folder;
  const KilledSession session(folder.path());

  int kills = 0;
  for (bool isDone = false; !isDone;) {
    const pid_t child = session.start();
    ASSERT_GT(child, 0);
    // The first ones early, so that openings and headers are hit; then anywhere. In the end it gets its time.
    const double most = kills < 8 ? 0.03 : 0.6;
    if (kills < 25) {
      const double seconds = std::uniform_real_distribution<double>(0, most)(engine);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
      ++kills;
      continue;
    }
    ASSERT_EQ(WEXITSTATUS(status), 0);
    isDone = true;
  }
  EXPECT_GE(kills, 5);

  const auto events = readJournal(session.journal());
  ASSERT_TRUE(events.ok()) << events.error().message;
  std::set<std::string> seen;
  int done = 0;
  for (json event : *events) {
    done += event["event"] == "done";
    if (event["event"] != "measured")
      continue;
    event.erase("us");
    EXPECT_TRUE(seen.insert(event.dump()).second) << "measured twice: " << event.dump();
  }
  EXPECT_GE(done, 2);
  const json &end = events->back();
  ASSERT_EQ(end["event"], "end");
  EXPECT_EQ(end["reason"], "complete");
  // What earlier processes had measured was used, but for classes that were done as a whole.
  EXPECT_LE(end["made"].get<int>(), static_cast<int>(seen.size()));
  EXPECT_EQ(config_cache::readConfigFile(session.configs()).file.entries.size(), 2U);
}

} // namespace
} // namespace deft::session
