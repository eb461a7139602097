#include "compiler/support/Diagnostic.h"
#include "compiler/support/Render.h"

#include <gtest/gtest.h>

namespace deft::support {
namespace {

TEST(DiagnosticSinkTest, CountsErrorsButNotWarnings) {
  DiagnosticSink sink;
  sink.warning({}, "odd");
  EXPECT_FALSE(sink.hasErrors());
  sink.error({}, "wrong");
  EXPECT_EQ(sink.errorCount(), 1u);
  EXPECT_EQ(sink.diagnostics().size(), 2u);
}

// Rule L11.
TEST(DiagnosticSinkTest, KeepsTheFirstFindingsAndCountsTheRest) {
  SourceManager sources;
  sources.add("f", "text");
  DiagnosticSink sink;
  for (int i = 0; i < 53; ++i)
    sink.error({0, 0, 1}, "error " + std::to_string(i)).withHint("h").withNote({0, 0, 1}, "n");
  EXPECT_EQ(sink.diagnostics().size(), 50u);
  EXPECT_EQ(sink.diagnostics().back().message, "error 49");
  EXPECT_EQ(sink.errorCount(), 53u);
  std::string text = renderDiagnostics(sources, sink);
  EXPECT_EQ(text.substr(text.size() - 20), "and 3 more findings\n");
}

TEST(DiagnosticSinkTest, SortsByPlaceAndKeepsTheOrderOfEquals) {
  DiagnosticSink sink;
  sink.error({1, 5, 6}, "d");
  sink.error({0, 9, 9}, "b");
  sink.error({0, 9, 12}, "c");
  sink.error({0, 1, 2}, "a");
  sink.sortByPosition();
  std::string order;
  for (const Diagnostic &diagnostic : sink.diagnostics())
    order += diagnostic.message;
  EXPECT_EQ(order, "abcd");
}

} // namespace
} // namespace deft::support
