#include "compiler/spec/Parser.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

struct Parsed {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  AstArena arena;
  AstFile file;

  explicit Parsed(const std::string &text) { file = parse(sources, sources.add("f", text), arena, sink); }
};

std::string expression(const std::string &text) {
  Parsed parsed("let x = " + text + ";");
  EXPECT_FALSE(parsed.sink.hasErrors()) << text;
  if (parsed.file.declarations.empty())
    return "nothing";
  return printAst(parsed.arena, std::get<AstLet>(parsed.file.declarations.front()).value);
}

std::string rangeOf(const std::string &text) {
  Parsed parsed("let x = " + text + ";");
  AstExprId id = std::get<AstLet>(parsed.file.declarations.at(0)).value;
  return std::string(parsed.sources.text(parsed.arena[id].range));
}

TEST(ParserTest, OperatorsBindAsInC) {
  EXPECT_EQ(expression("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(expression("a || b && c == d < e + f % g"), "(|| a (&& b (== c (< d (+ e (% f g))))))");
  EXPECT_EQ(expression("-a * !b"), "(* (- a) (! b))");
  EXPECT_EQ(expression("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(expression("a ? b : c ? d : e"), "(? a b (? c d e))");
  EXPECT_EQ(expression("a > 1 ? b + 1 : c"), "(? (> a 1) (+ b 1) c)");
  EXPECT_EQ(expression("f(a, g(), b[head])"), "(call f a (call g) (index b head))");
  EXPECT_EQ(expression("1.0 + 2"), "(+ 1.0 2)");
}

// Rule D1.
TEST(ParserTest, ExpressionsReachFromTheFirstOperandToTheLastWithoutParentheses) {
  EXPECT_EQ(rangeOf("  (a + b) * c  "), "a + b) * c");
  EXPECT_EQ(rangeOf("((a))"), "a");
  EXPECT_EQ(rangeOf("f(a, b)"), "f(a, b)");
  EXPECT_EQ(rangeOf("c ? -a : x[head]"), "c ? -a : x[head]");
}

TEST(ParserTest, PrintsEveryPartOfAFile) {
  Parsed parsed(
      "import \"library.deft\";\n"
      "mask near(x: i32, a: f32[kv_heads]) = x < 3;\n"
      "let one = 1;\n"
      "attention base { query_heads = 8; normalize = softmax with sink(1.5); }\n"
      "attention l { kv_cache = latent(rope = 16, dim = 2 * 32, dtype = f16, scales = 8); key_dim = 3; }\n"
      "attention a : base {\n"
      "  param p : f32 = 0.5; param q : i32[query_heads];\n"
      "  kv_cache = paged(page_size = 2 * 8, order = hnd); dtype = f16;\n"
      "  normalize = sigmoid(-1.0); output = bf16 with lse;\n"
      "  query half(f: f32) = x_half * f; query = half(2.0);\n"
      "  schedule { partition = tune(node, union); chunk = 64;\n"
      "    phase w when rows > 8 { tile_q = tune(16, 32); } phase n otherwise { } }\n"
      "  select { budget = tune(2 * 8, 64); by = query; keep_first = 4; keep_last = n; }\n"
      "}\n");
  EXPECT_FALSE(parsed.sink.hasErrors());
  EXPECT_EQ(printAst(parsed.file, parsed.arena),
            "import \"library.deft\"\n"
            "mask near(x : i32, a : f32[kv_heads]) = (< x 3)\n"
            "let one = 1\n"
            "attention base\n"
            "  query_heads = 8\n"
            "  normalize = softmax with sink 1.5\n"
            "attention l\n"
            "  kv_cache = latent dim = (* 2 32) rope = 16 scales = 8 dtype = f16\n"
            "  key_dim = 3\n"
            "attention a : base\n"
            "  param p : f32 = 0.5\n"
            "  param q : i32[query_heads]\n"
            "  query half(f : f32) = (* x_half f)\n"
            "  kv_cache = paged page_size = (* 2 8) order = hnd\n"
            "  dtype = f16\n"
            "  normalize = sigmoid (- 1.0)\n"
            "  output = bf16 with lse\n"
            "  query = (call half 2.0)\n"
            "  schedule\n"
            "    partition = node union\n"
            "    chunk = 64\n"
            "    phase w when rows > 8\n"
            "      tile_q = (tune 16 32)\n"
            "    phase n otherwise\n"
            "  select\n"
            "    budget = (tune (* 2 8) 64)\n"
            "    by = query\n"
            "    keep_first = 4\n"
            "    keep_last = n\n");
}

// Rules A7, H3.
TEST(ParserTest, AnOutputIsADtypeOrAnElementOfOne) {
  for (const auto &[written, printed] : {std::pair("f16", "f16"),
                                         {"f16 with lse", "f16 with lse"},
                                         {"x * 2", "(* x 2)"},
                                         {"x * 2 as f16", "(* x 2) as f16"},
                                         {"x as bf16 with lse", "x as bf16 with lse"},
                                         {"(x) with lse", "x with lse"}}) {
    Parsed parsed("attention a { output = " + std::string(written) + "; }");
    EXPECT_FALSE(parsed.sink.hasErrors()) << written;
    EXPECT_EQ(printAst(parsed.file, parsed.arena), "attention a\n  output = " + std::string(printed) + "\n");
  }
}

// Rule D2.
TEST(ParserTest, WhatFollowsAnErrorIsStillRead) {
  Parsed parsed("attention a { head_dim = ; mask = tree; }\n"
                "nonsense here;\n"
                "attention b { kv_heads = 8 head_dim = 64; }\n"
                "attention c { dtype = f16; }\n");
  EXPECT_EQ(parsed.sink.errorCount(), 3u);
  ASSERT_EQ(parsed.file.attentions.size(), 3u);
  EXPECT_EQ(parsed.file.attentions[0].properties.at(0).key.text, "mask");
  EXPECT_EQ(parsed.file.attentions[2].properties.size(), 1u);
}

TEST(ParserTest, EveryPrefixOfAFileIsReadToItsEnd) {
  const std::string text =
      "import \"l.deft\"; mask f(w: i32) = kv_pos > w;\n"
      "attention a : b { param p : f32[query_heads]; let x = -1 * (p[head] + 2.0); mask = tree && f(3);\n"
      "kv_cache = paged(page_size = 4); schedule { phase p when rows > 1 { tile_q = tune(1, 2); } } }";
  for (std::size_t length = 0; length < text.size(); ++length) {
    Parsed parsed(text.substr(0, length));
    EXPECT_LE(parsed.sink.errorCount(), 3u) << text.substr(0, length);
  }
  EXPECT_FALSE(Parsed(text).sink.hasErrors());
}

} // namespace
} // namespace deft::spec
