// Rules W1, W2, W3, W4: what is allowed and hardly meant.
#include "compiler/spec/Warnings.h"

#include "compiler/spec/CompileSpec.h"
#include "specs/Embedded.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

constexpr char kHeads[] = "query_heads = 8; kv_heads = 8; head_dim = 64;\n";

std::vector<std::string> warnings(const std::string &text) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  compileSpec(sources, sources.add("a.deft", text), specs::importResolver(), sink);
  std::vector<std::string> messages;
  for (const support::Diagnostic &finding : sink.diagnostics()) {
    EXPECT_EQ(finding.severity, support::Severity::Warning) << finding.message;
    messages.push_back(std::to_string(sources.lineColumn(finding.range.file, finding.range.begin).line) +
                       ": " + finding.message);
  }
  return messages;
}

std::vector<std::string> warningsOf(const std::string &body) {
  return warnings("attention a { " + std::string(kHeads) + body + "\n}\n");
}

using Lines = std::vector<std::string>;

TEST(WarningsTest, AMaskThatHidesEveryTokenIsW1) {
  EXPECT_EQ(warningsOf("mask = false;"), Lines{"2: this mask hides every token"});
  EXPECT_EQ(warningsOf("mask = tree && 1 > 2;"), Lines{"2: this mask hides every token"});
  EXPECT_EQ(warningsOf("mask = tree && kv_pos < q_pos;"), Lines{});
}

TEST(WarningsTest, EqualityOfFloatsIsW2) {
  EXPECT_EQ(warningsOf("score = s == 0.5 ? 1.0 : s;"),
            Lines{"2: floats are compared for equality, which rounding decides"});
  EXPECT_EQ(warningsOf("score = s != 0.5 ? 1.0 : s;").size(), 1u);
  EXPECT_EQ(warningsOf("mask = tree && floor(kv_pos / 7.0) == 2.0;"), Lines{});
  EXPECT_EQ(warningsOf("mask = tree && kv_pos / 7.0 == 2.0;").size(), 1u);
  EXPECT_EQ(warningsOf("score = kv_pos == 0 ? 1.0 : s;"), Lines{});
}

TEST(WarningsTest, AParameterThatNothingReadsIsW3) {
  EXPECT_EQ(warningsOf("param cap : f32 = 1.0;"), Lines{"2: parameter `cap` is never read"});
  EXPECT_EQ(warningsOf("param cap : f32 = 1.0; score = s * cap;"), Lines{});
  EXPECT_EQ(warningsOf("param slope : f32[query_heads]; score = s * slope[head];"), Lines{});
}

TEST(WarningsTest, ABudgetThatIsKeptWhollyIsW4) {
  EXPECT_EQ(warningsOf("select { budget = tune(64, 12); keep_first = 4; keep_last = 8; }"),
            Lines{"2: `keep_first` and `keep_last` use up this budget, so nothing is selected"});
  EXPECT_EQ(warningsOf("select { budget = 13; keep_first = 4; keep_last = 8; }"), Lines{});
}

TEST(WarningsTest, AnHeirMayReadItOrInheritTheFindingOnce) {
  const std::string parent = "attention a { " + std::string(kHeads) + "param cap : f32 = 1.0;\n}\n";
  EXPECT_EQ(warnings(parent + "attention b : a { score = s * cap; }"), Lines{});
  EXPECT_EQ(warnings(parent + "attention b : a { }").size(), 1u);
}

TEST(WarningsTest, ALineMayAllowItsOwn) {
  EXPECT_EQ(warningsOf("param cap : f32 = 1.0; // allow W3, a host sets it"), Lines{});
  EXPECT_EQ(warningsOf("param cap : f32 = 1.0; // allow W2").size(), 1u);
}

TEST(WarningsTest, ShippedSpecsHaveNone) {
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    EXPECT_EQ(warnings(std::string(spec.text)), Lines{}) << spec.name;
}

} // namespace
} // namespace deft::spec
