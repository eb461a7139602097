#include "compiler/spec/Format.h"

#include "compiler/spec/Lexer.h"
#include "specs/Embedded.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

std::string format(const std::string &text) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  return formatSpec(sources, sources.add("a.deft", text), sink).value_or("wrong");
}

std::vector<std::string> tokensOf(const std::string &text) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  std::vector<std::string> words;
  for (const Token &token : lex(sources, sources.add("a.deft", text), sink))
    words.emplace_back(token.text);
  return words;
}

TEST(FormatTest, ShippedSpecsAreInTheirUsualForm) {
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    EXPECT_EQ(format(std::string(spec.text)), spec.text) << spec.name;
}

TEST(FormatTest, ASpecWithoutFormGetsOneAndKeepsItsTokens) {
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs()) {
    std::string flat; // no indentation, two blanks for one
    for (const char c : spec.text)
      if (c == ' ') {
        if (!flat.empty() && flat.back() != '\n')
          flat += "  ";
      } else {
        flat += c;
      }
    const std::string formatted = format(flat);
    EXPECT_EQ(tokensOf(formatted), tokensOf(std::string(spec.text))) << spec.name;
    EXPECT_EQ(format(formatted), formatted) << spec.name;
  }
}

TEST(FormatTest, BlanksStandWhereTheyAreExpected) {
  EXPECT_EQ(format("attention a{\nscore=-s*( 1- x [ head ] )+f( a ,-2 );\n}\n"),
            "attention a {\n  score = -s * (1 - x[head]) + f(a, -2);\n}\n");
  EXPECT_EQ(format("mask  m ( w :i32 )=!( a&&b )||c?d:e ;"), "mask m(w: i32) = !(a && b) || c ? d : e;\n");
  EXPECT_EQ(format("attention b:a{ head_dim=64; }"), "attention b : a { head_dim = 64; }\n");
  EXPECT_EQ(format("attention a{\nkv_cache=latent( dim=512,rope = 64 );\nkey_dim=1;\n}\n"),
            "attention a {\n  kv_cache = latent(dim = 512, rope = 64);\n  key_dim  = 1;\n}\n");
}

TEST(FormatTest, DefinitionsOfOneStretchShareAColumn) {
  EXPECT_EQ(format("attention a {\nx = 1;\nlong_name = 2; // why\nparam p : f32;\n\ny = 3;\n}\n"),
            "attention a {\n  x         = 1;\n  long_name = 2; // why\n  param p   : f32;\n\n  y = 3;\n}\n");
}

TEST(FormatTest, ALineThatGoesOnIsFourColumnsFurtherIn) {
  EXPECT_EQ(format("attention a {\nmask = tree &&\nb;\n}\n"),
            "attention a {\n  mask = tree &&\n      b;\n}\n");
}

TEST(FormatTest, EmptyLinesAreNeverTwoAndNeverAtAnEnd) {
  EXPECT_EQ(format("\n\n// c\n\n\n\nimport \"x.deft\" ;\n\n\n"), "// c\n\nimport \"x.deft\";\n");
  EXPECT_EQ(format(""), "");
}

TEST(FormatTest, WhatIsNoTokenIsSaidInsteadOfLost) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  EXPECT_FALSE(formatSpec(sources, sources.add("a.deft", "attention a { $ }"), sink));
  EXPECT_TRUE(sink.hasErrors());
}

} // namespace
} // namespace deft::spec
