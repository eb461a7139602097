#include "compiler/spec/Lexer.h"

#include <cmath>
#include <gtest/gtest.h>

namespace deft::spec {
namespace {

struct Lexed {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  std::vector<Token> tokens;
};

std::string words(Lexed &lexed, const std::string &text) {
  lexed.tokens = lex(lexed.sources, lexed.sources.add("f", text), lexed.sink);
  std::string out;
  for (const Token &token : lexed.tokens)
    out += (out.empty() ? "" : " ") + std::string(token.kind == TokenKind::End ? "<end>" : token.text);
  return out;
}

TEST(LexerTest, LongestPunctuatorWins) {
  Lexed lexed;
  EXPECT_EQ(words(lexed, "a<=b&&c==d!=!e"), "a <= b && c == d != ! e <end>");
  EXPECT_FALSE(lexed.sink.hasErrors());
}

// Rule E2.
TEST(LexerTest, NumbersAreIntegersWithoutPointAndExponent) {
  Lexed lexed;
  words(lexed, "16 1.5 1e3 2E-2 007");
  std::vector<double> values;
  for (const Token &token : lexed.tokens)
    values.push_back(token.number);
  EXPECT_EQ(values, (std::vector<double>{16, 1.5, 1000, 0.02, 7, 0}));
  EXPECT_EQ(lexed.tokens[0].kind, TokenKind::Integer);
  EXPECT_EQ(lexed.tokens[1].kind, TokenKind::Float);
  EXPECT_EQ(lexed.tokens[2].kind, TokenKind::Float);
  EXPECT_FALSE(lexed.sink.hasErrors());
}

TEST(LexerTest, NumbersOutOfRangeAreInfiniteOrZero) {
  Lexed lexed;
  words(lexed, "1e999 1e-999 " + std::string(400, '9'));
  EXPECT_TRUE(std::isinf(lexed.tokens[0].number));
  EXPECT_EQ(lexed.tokens[1].number, 0);
  EXPECT_TRUE(std::isinf(lexed.tokens[2].number));
}

TEST(LexerTest, CommentsEndWithTheLineAndTheFile) {
  Lexed lexed;
  EXPECT_EQ(words(lexed, "a // b \xff \n c // d"), "a c <end>");
  EXPECT_FALSE(lexed.sink.hasErrors()) << "rule F1: other bytes may stand in comments";
  EXPECT_TRUE(lexed.tokens[1].firstOnLine);
  EXPECT_EQ(lexed.tokens[1].range.begin, 11u);
}

TEST(LexerTest, ACommentLikeTheRestOfADivisionIsRemembered) {
  const auto follows = [](const std::string &text) {
    Lexed lexed;
    words(lexed, text);
    return lexed.tokens.back().followsDivision; // the end
  };
  for (const char *text : {"a // 16", "a //16;", "f(x) // 2 blocks", "p[i] // size;", "4 // page_size ;\r\n"})
    EXPECT_TRUE(follows(text)) << text;
  for (const char *text :
       {"a // pages", "a; // 16", "a +\n// 16;", "a\n// 16", "// 16", "a // \n", "a // 2\nb"})
    EXPECT_FALSE(follows(text)) << text;
}

TEST(LexerTest, WhatFollowsAHashIsTakenForAComment) {
  Lexed lexed;
  EXPECT_EQ(words(lexed, "a # b ? $\nc"), "a c <end>");
  ASSERT_EQ(lexed.sink.errorCount(), 1u);
  EXPECT_EQ(lexed.sink.diagnostics()[0].message, "`#` does not start a comment");
}

TEST(LexerTest, ARunOfWrongCharactersIsOneFinding) {
  Lexed lexed;
  EXPECT_EQ(words(lexed, "a @#$@# b"), "a b <end>");
  ASSERT_EQ(lexed.sink.diagnostics().size(), 1u);
  EXPECT_EQ(lexed.sink.diagnostics()[0].range.begin, 2u);
  EXPECT_EQ(lexed.sink.diagnostics()[0].range.end, 7u);
}

TEST(LexerTest, TheEndStandsAtTheLastByte) {
  Lexed lexed;
  EXPECT_EQ(words(lexed, ""), "<end>");
  Lexed blank;
  words(blank, "a \n");
  EXPECT_EQ(blank.tokens.back().range.begin, 3u);
}

} // namespace
} // namespace deft::spec
