#include "compiler/support/Render.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace deft::support {
namespace {

std::string render(const std::string &text, SourceRange range, RenderOptions options = {}) {
  SourceManager sources;
  sources.add("f.deft", text);
  Diagnostic diagnostic{Severity::Error, range, "wrong", {}, {}};
  return renderDiagnostic(sources, diagnostic, options);
}

TEST(RenderTest, CaretsStandUnderTheRangeThenHintThenNotes) {
  SourceManager sources;
  sources.add("my.deft", "attention a {\n  mask = x;\n");
  Diagnostic diagnostic{Severity::Error, {0, 23, 24}, "unknown name `x`", {}, {}};
  diagnostic.withHint("did you mean `s`?").withNote({0, 12, 13}, "in this block");
  EXPECT_EQ(renderDiagnostic(sources, diagnostic), "my.deft:2:10: error: unknown name `x`\n"
                                                   " 2 |   mask = x;\n"
                                                   "   |          ^\n"
                                                   "   = hint: did you mean `s`?\n"
                                                   "my.deft:1:13: note: in this block\n"
                                                   " 1 | attention a {\n"
                                                   "   |             ^\n");
}

TEST(RenderTest, TheGutterGrowsWithTheLineNumber) {
  std::string text(99, '\n');
  text += "abc";
  EXPECT_EQ(render(text, {0, 99, 102}), "f.deft:100:1: error: wrong\n"
                                        " 100 | abc\n"
                                        "     | ^~~\n");
}

TEST(RenderTest, ARangeOverSeveralLinesIsCutAtTheFirst) {
  EXPECT_EQ(render("a + b\n+ c", {0, 4, 9}), "f.deft:1:5: error: wrong\n 1 | a + b\n   |     ^\n");
}

TEST(RenderTest, AnEmptyRangeAndTheEndOfTheFileHaveOneCaret) {
  EXPECT_EQ(render("ab", {0, 2, 2}), "f.deft:1:3: error: wrong\n 1 | ab\n   |   ^\n");
  EXPECT_EQ(render("ab\n", {0, 3, 3}), "f.deft:2:1: error: wrong\n 2 | \n   | ^\n");
  EXPECT_EQ(render("", {0, 0, 0}), "f.deft:1:1: error: wrong\n 1 | \n   | ^\n");
}

TEST(RenderTest, TabsUmlautsAndControlBytesKeepTheCaretInPlace) {
  EXPECT_EQ(render("\tx", {0, 1, 2}), "f.deft:1:2: error: wrong\n 1 |  x\n   |  ^\n");
  EXPECT_EQ(render("\xc3\xa4 x", {0, 3, 4}), "f.deft:1:3: error: wrong\n 1 | \xc3\xa4 x\n   |   ^\n");
  EXPECT_EQ(render("\x1b[31m\xff x", {0, 7, 8}), "f.deft:1:8: error: wrong\n 1 | ?[31m? x\n   |        ^\n");
}

TEST(RenderTest, ALongLineIsAWindowAroundTheRange) {
  std::string line(100000, 'a');
  line[50000] = '!';
  std::string text = render(line, {0, 50000, 50001});
  EXPECT_LT(text.size(), 500u);
  std::size_t mark = text.find('!'), caret = text.find('^');
  std::size_t lineStart = text.rfind('\n', mark), caretStart = text.rfind('\n', caret);
  EXPECT_EQ(mark - lineStart, caret - caretStart);
}

TEST(RenderTest, ColourOnlyWhenAskedFor) {
  EXPECT_EQ(render("ab", {0, 0, 1}).find('\033'), std::string::npos);
  std::string coloured = render("ab", {0, 0, 1}, {true});
  EXPECT_NE(coloured.find("\033[1;31merror: \033[0m"), std::string::npos);
  EXPECT_EQ(std::count(coloured.begin(), coloured.end(), '\033') % 2, 0) << "each colour is ended";
}

} // namespace
} // namespace deft::support
