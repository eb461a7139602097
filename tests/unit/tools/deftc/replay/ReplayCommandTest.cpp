// replay, called as the program calls it, of steps that the library has captured.
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace deft::cli {
namespace {

using test::runDeftc;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kSpec[] = R"(attention pages {
  query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16;
  param slope : f32[query_heads];
  score = s - slope[head] * (q_pos - kv_pos);
  output = f16 with lse;
})";

class ReplayCommandTest : public testing::Test {
protected:
  ReplayCommandTest()
      : cache_("DEFT_CACHE_DIR", folder_.path("cache")), configs_("DEFT_CONFIG_PATH", std::nullopt) {}
  ~ReplayCommandTest() override { stopCapture(); }

  /// The file of a step of three requests whose first two share a page.
  std::string captured(CaptureWhat what, const char *spec = kSpec, bool isInvariant = false) {
    startCapture({.folder = folder_.path("steps"), .what = what}).value();
    const Attention attention = compileSpec(spec).value();
    const Runtime runtime = Runtime::create({.threads = 2}).value();
    const std::vector<int> rows{7, 1, -1, 7, 2, -1, 4, 5, 6}, lengths{20, 30, 41};
    PagedBatch batch = PagedBatch::make({.pageSize = 16, .invariantChunk = isInvariant ? 512 : 0}).value();
    batch.update({.table = {.entries = rows, .rowStride = 3}, .lengths = lengths}).value();
    Params params(attention);
    for (const ParamInfo &param : attention.params())
      if (!param.hasDefault)
        params.set(param.name, std::vector<float>(static_cast<std::size_t>(param.length), 0.125f)).value();
    const auto plan = batch.plan(attention, {.invariant = isInvariant, .params = &params}).value();
    std::vector<std::uint16_t> q(std::size_t{3} * 4 * 64, 0x3800), k(std::size_t{8} * 16 * 2 * 64, 0x3400),
        out(q.size());
    runtime
        .run(attention, plan,
             {.q = q.data(), .k = k.data(), .v = k.data(), .pageTable = rows, .params = &params},
             {.out = out.data()})
        .value();
    stopCapture();
    for (const std::string &name : module_cache::namesIn(folder_.path("steps")))
      if (name.ends_with(".json"))
        return folder_.path("steps/" + name);
    return {};
  }
  test::Outcome replay(const std::string &path, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"replay", path, "--backend", "cpu", "--repeat", "2", "--threads", "2"});
    return runDeftc(more);
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_, configs_;
};

TEST_F(ReplayCommandTest, ACapturedStepIsCheckedTimedAndPlanned) {
  const test::Outcome outcome = replay(captured(CaptureWhat::Host));
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("captured  by deftc "), HasSubstr("after its first run"),
                                 HasSubstr("replay    q, K and V are random\n"),
                                 HasSubstr("pages as captured"), HasSubstr("check    right: error "),
                                 HasSubstr("plan of "), HasSubstr("4 nodes"), HasSubstr("3 queries")));
  EXPECT_THAT(outcome.out, HasSubstr("chosen   override: given by "));
}

TEST_F(ReplayCommandTest, CapturedTensorsAreRunAgain) {
  const std::string path = captured(CaptureWhat::Tensors);
  const test::Outcome outcome = replay(path);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(", inputs of "));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("are random")));
  EXPECT_THAT(replay(path, {"--random"}).out, HasSubstr("q, K and V are random"));
}

TEST_F(ReplayCommandTest, TheConfigMayBeChosenAnew) {
  const std::string path = captured(CaptureWhat::Host);
  EXPECT_THAT(replay(path, {"--choose"}).out, HasSubstr("chosen   heuristic: "));
  EXPECT_THAT(replay(path, {"--partition", "query"}).out, HasSubstr("with your changes"));
}

TEST_F(ReplayCommandTest, AnInvariantPlanIsCutAsItWas) {
  const test::Outcome outcome = replay(captured(CaptureWhat::Host, kSpec, true));
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("; invariant\n"));
}

TEST_F(ReplayCommandTest, AsJsonForPrograms) {
  const test::Outcome outcome = replay(captured(CaptureWhat::Host), {"--json", "-"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["format"], "deftc-replay");
  EXPECT_TRUE(report["run"]["check"]["passed"]);
  EXPECT_GT(report["plan"]["items"].size(), 0u);
  EXPECT_EQ(report["differences"][0], "q, K and V are random");
}

TEST_F(ReplayCommandTest, ThePlanIsAPageForABrowser) {
  const std::string page = folder_.path("plan.html");
  ASSERT_EQ(replay(captured(CaptureWhat::Host), {"--html", page}).code, kExitOk);
  EXPECT_THAT(module_cache::readText(page), AllOf(HasSubstr("<html"), HasSubstr("captured run")));
}

TEST_F(ReplayCommandTest, FilesThatAreNoStepsAreErrors) {
  module_cache::writeText(folder_.path("x.json"), "{\"format\": \"deftc-step\", \"version\": 9}");
  const test::Outcome future = replay(folder_.path("x.json"));
  EXPECT_EQ(future.code, kExitDiagnostics);
  EXPECT_THAT(future.err, HasSubstr("captured step of version 9, this program reads version 1"));
  EXPECT_EQ(replay(folder_.path("none.json")).code, kExitEnvironment);
  EXPECT_EQ(replay(folder_.path("x.json"), {"-o", folder_.path("y")}).code, kExitUsage);
}

TEST_F(ReplayCommandTest, AnInputIsNotWrittenOver) {
  const std::string path = captured(CaptureWhat::Host);
  EXPECT_NE(replay(path, {"--program", "cpp", "-o", path}).code, kExitOk);
}

} // namespace
} // namespace deft::cli
