#include "tools/deftc/replay/ReplayProgram.h"

#include "runtime/capture/StepFile.h"
#include "tests/unit/runtime/capture/Steps.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

class ReplayProgramTest : public testing::Test {
protected:
  /// branches() with this spec, opened.
  ReplayStep open(const std::string &spec, const std::function<void(capture::Step &)> &change = {}) {
    capture::Step step = test::branches();
    step.spec[0].text = spec;
    step.params.clear();
    step.paramsLeftOut.clear();
    if (change)
      change(step);
    module_cache::writeText(folder_.path("step.json"), capture::formatStep(step));
    return openStep(context_, folder_.path("step.json"), false).value();
  }
  std::string cppOf(const ReplayStep &step) {
    return cppProgram(step, paramsOf(context_, step, {}).value()).value();
  }
  std::string pythonOf(const ReplayStep &step) {
    return pythonProgram(step, paramsOf(context_, step, {}).value()).value();
  }

  std::ostringstream out_, err_;
  Context context_{out_, err_, false, false, {}};
  module_cache::TestFolder folder_;
};

constexpr char kSpec[] = "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = bf16; "
                         "param slope : f32[query_heads]; param doc : i32[tokens]; "
                         "score = s * slope[head]; mask = tree && doc[token] < 4; }";

void giveSlopes(capture::Step &step) {
  exec::ParamValue slopes;
  slopes.f32 = {0.5f, 0.25f, 1, 2};
  step.params = {{"slope", slopes}};
  step.paramsLeftOut = {"doc"};
}

TEST_F(ReplayProgramTest, ACppProgramCompilesAndRuns) {
  module_cache::writeText(folder_.path("step.cpp"), cppOf(open(kSpec, giveSlopes)));
  const std::string compile = std::string(DEFT_CXX) + " -std=c++20 -Wall -Werror " +
                              folder_.path("step.cpp") + " -I " DEFT_INCLUDE " " DEFT_LIBRARY " -o " +
                              folder_.path("step") + " 2> " + folder_.path("log");
  ASSERT_EQ(std::system(compile.c_str()), 0) << module_cache::readText(folder_.path("log"));
  const std::string run =
      "LD_LIBRARY_PATH=$(dirname " DEFT_LIBRARY ") " + folder_.path("step") + " > " + folder_.path("out");
  ASSERT_EQ(std::system(run.c_str()), 0);
  EXPECT_THAT(module_cache::readText(folder_.path("out")),
              testing::MatchesRegex("[0-9]+ items, [0-9.]+ us\n"));
}

TEST_F(ReplayProgramTest, ProgramsSayWhatTheStepSays) {
  const ReplayStep step = open(kSpec, giveSlopes);
  const std::string cpp = cppOf(step), python = pythonOf(step);
  EXPECT_THAT(cpp, HasSubstr("{-1, 40, 0}, {0, 6, 40}, {0, 9, 50}};"));
  EXPECT_THAT(cpp, HasSubstr("kPageTable = {\n    2, 3, 0, 1};"));
  EXPECT_THAT(cpp, HasSubstr("params.set(\"slope\", std::vector<float>{0.5, 0.25, 1, 2}).value();"));
  EXPECT_THAT(python,
              HasSubstr("NODES = [  # parent, tokens, location\n    (-1, 40, 0), (0, 6, 40), (0, 9, 50)]"));
  EXPECT_THAT(python, HasSubstr("\"doc\": numpy.full(64, 1, \"int32\"),"));
  EXPECT_THAT(python,
              HasSubstr("q = random_bits((2, 4, 64), \"uint16\", \"uint16\", 0x3e00, 0x1ff, 0x8000)"));
}

TEST_F(ReplayProgramTest, LayersThatReadListsSelectFirst) {
  const ReplayStep step =
      open("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; select { budget = 8; } }",
           [](capture::Step &one) {
             one.run->kind = capture::RunKind::Sparse;
             one.run->budget = 8;
           });
  EXPECT_THAT(cppOf(step),
              HasSubstr("runtime.runSparse(attention, plan, selection, inputs, outputs).value();"));
  EXPECT_THAT(pythonOf(step), HasSubstr("out = plan.run_sparse(selection, q, k, v, PAGE_TABLE)"));
}

TEST_F(ReplayProgramTest, ASpecOfSeveralFilesIsNamed) {
  const ReplayStep step = open("import \"own.deft\";\nattention a : mine {}", [](capture::Step &one) {
    one.spec.push_back({"own.deft", "attention mine { query_heads = 4; kv_heads = 2; head_dim = 64; }"});
  });
  EXPECT_THAT(cppProgram(step, {}).error().message,
              HasSubstr("the spec imports `own.deft`, which is not shipped"));
}

} // namespace
} // namespace deft::cli
