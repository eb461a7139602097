// Each limit of LANGUAGE.md from both sides: at the limit all is well, one more is an error and not a crash.
#include "compiler/spec/Limits.h"
#include "tests/unit/compiler/spec/SpecTesting.h"

namespace deft::spec::testing {
namespace {

std::string repeat(const std::string &text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

void expectLimit(const std::string &atLimit, const std::string &above, const std::string &message,
                 std::map<std::string, std::string> files = {}) {
  EXPECT_EQ(compile(atLimit, files).findings, "");
  Compiled compiled = compile(above, files);
  EXPECT_GE(compiled.errors, 1u);
  EXPECT_NE(compiled.findings.find(message), std::string::npos) << compiled.findings.substr(0, 1000);
}

// Rule L1.
TEST(LimitsTest, FileSize) {
  std::string spec = attention("");
  expectLimit(spec + std::string(kMaxFileBytes - spec.size(), ' '), spec + std::string(kMaxFileBytes, ' '),
              "the limit is 1048576");
}

// Rule L2.
TEST(LimitsTest, ImportDepth) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 20; ++i)
    files["f" + std::to_string(i) + ".deft"] =
        i == 0 ? "" : "import \"f" + std::to_string(i - 1) + ".deft\";";
  expectLimit("import \"f15.deft\";" + attention(""), "import \"f16.deft\";" + attention(""),
              "deeper than the limit of 16", files);
}

// Rule L2.
TEST(LimitsTest, ImportedFiles) {
  std::map<std::string, std::string> files;
  auto imports = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "import \"f" + std::to_string(i) + ".deft\";\n";
    return text + attention("");
  };
  for (int i = 0; i < 70; ++i)
    files["f" + std::to_string(i) + ".deft"] = "";
  expectLimit(imports(63), imports(64), "more than the limit of 64 files", files);
}

// Rule L3.
TEST(LimitsTest, NameLength) {
  auto let = [](std::size_t length) { return attention("let " + std::string(length, 'n') + " = 1;"); };
  expectLimit(let(64), let(65), "the name has 65 characters, the limit is 64");
}

// Rule L4.
TEST(LimitsTest, Nesting) {
  auto chain = [](std::size_t operators) { return attention("score = s" + repeat(" + s", operators) + ";"); };
  expectLimit(chain(199), chain(200), "nested deeper than the limit of 200");
  auto parentheses = [](std::size_t count) {
    return attention("score = " + repeat("(", count) + "s" + repeat(")", count) + ";");
  };
  expectLimit(parentheses(199), parentheses(200), "nested deeper than the limit of 200");
}

// Rule L4.
TEST(LimitsTest, AMillionOfAnythingIsAnErrorAndNoStackOverflow) {
  for (const char *text : {"(",
                           "-",
                           "!",
                           "a?",
                           "f(",
                           "a[",
                           "a+",
                           "a?b:",
                           "1-",
                           "{",
                           "attention a {",
                           "schedule {",
                           "phase p otherwise {",
                           "[",
                           "}",
                           ";",
                           "\"",
                           "let x =",
                           "mask f(",
                           "tune(",
                           "import \"x\";"}) {
    for (const std::string &prefix :
         {std::string(), std::string("let x = "), std::string("attention a { mask = ")}) {
      Compiled compiled = compile(prefix + repeat(text, 200000 / std::string(text).size()));
      EXPECT_TRUE(compiled.variants.empty());
      EXPECT_GE(compiled.errors, 1u) << prefix << text;
    }
  }
}

// Rule L5.
TEST(LimitsTest, DepthWithFunctionsAndLetsFollowed) {
  auto functions = [](int count) {
    std::string text = "score fn0(x: f32) = x + 1;";
    for (int i = 1; i < count; ++i)
      text += "score fn" + std::to_string(i) + "(x: f32) = fn" + std::to_string(i - 1) + "(x);";
    return text + attention("score = fn" + std::to_string(count - 1) + "(s);");
  };
  expectLimit(functions(900), functions(1010), "nested deeper than the limit of 1000");
  std::string lets;
  for (int i = 0; i < 3000; ++i)
    lets += "let l" + std::to_string(i) + " = " + (i ? "l" + std::to_string(i - 1) : "kv_pos") + " + 1;";
  EXPECT_EQ(compile(attention(lets + "mask = l2999 > 0;")).findings, "")
      << "a let in its order adds no depth";
}

// Rule L6.
TEST(LimitsTest, Operations) {
  auto lets = [](int count) {
    std::string text = "let l0 = kv_pos;";
    for (int i = 1; i <= count; ++i)
      text += "let l" + std::to_string(i) + " = l" + std::to_string(i - 1) + " + " + std::to_string(i) + ";";
    return attention(text + "mask = l" + std::to_string(count) + " > 0;");
  };
  expectLimit(lets(2040), lets(2060), "more operations than the limit of 4096");
}

// Rule L6.
TEST(LimitsTest, DoublingDoesNoHarm) {
  std::string lets = "let l0 = s;", functions = "score fn0(x: f32) = x + 1;";
  for (int i = 1; i < 300; ++i) {
    std::string before = std::to_string(i - 1), now = std::to_string(i);
    lets += "let l" + now + " = l" + before + " * l" + before + ";";
    functions += "score fn" + now + "(x: f32) = fn" + before + "(x) + fn" + before + "(x);";
  }
  Compiled compiled = compile(functions + attention(lets + "score = l299 + fn299(s);"));
  EXPECT_EQ(compiled.findings, "");
  EXPECT_LT(compiled.only().exprs.size(), 700u);
  // Arguments that differ cannot be shared: this is an error, and soon.
  std::string tree = "score fn0(x: f32) = x;";
  for (int i = 1; i < 60; ++i)
    tree += "score fn" + std::to_string(i) + "(x: f32) = fn" + std::to_string(i - 1) + "(x + 1) + fn" +
            std::to_string(i - 1) + "(x * 3);";
  EXPECT_GE(compile(tree + attention("score = fn59(s);")).errors, 1u);
}

// Rule L7.
TEST(LimitsTest, AttentionsAndFunctions) {
  auto attentions = [](int count) {
    std::string text = attention("");
    for (int i = 1; i < count; ++i)
      text += "attention b" + std::to_string(i) + " : a { }";
    return text;
  };
  expectLimit(attentions(256), attentions(257), "more than the limit of 256 attentions");
  auto functions = [](int count) {
    std::string text = attention("");
    for (int i = 0; i < count; ++i)
      text += "mask fn" + std::to_string(i) + "() = true;";
    return text;
  };
  expectLimit(functions(1024), functions(1025), "1025 functions, the limit is 1024");
}

// Rule L8.
TEST(LimitsTest, Inheritance) {
  auto chain = [](int count) {
    std::string text = "attention a0 { query_heads = 8; kv_heads = 8; head_dim = 64; }";
    for (int i = 1; i <= count; ++i)
      text += "attention a" + std::to_string(i) + " : a" + std::to_string(i - 1) + " { }";
    return text;
  };
  expectLimit(chain(16), chain(17), "inheritance is deeper than the limit of 16");
}

// Rule L9.
TEST(LimitsTest, ParametersAndArguments) {
  auto params = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "param p" + std::to_string(i) + " : f32;";
    return attention(text + " // allow W3\n");
  };
  expectLimit(params(32), params(33), "more than the limit of 32 parameters");
  auto arguments = [](int count) {
    std::string formals = "x0: f32", values = "s";
    for (int i = 1; i < count; ++i) {
      formals += ", x" + std::to_string(i) + ": f32";
      values += ", s";
    }
    return attention("score f(" + formals + ") = x0; score = f(" + values + ");");
  };
  expectLimit(arguments(16), arguments(17), "more than the limit of 16 arguments");
}

// Rule L10.
TEST(LimitsTest, PhasesAndTuneValues) {
  auto phases = [](int count) {
    std::string text;
    for (int i = 1; i < count; ++i)
      text += "phase p" + std::to_string(i) + " when rows > " + std::to_string(100 - i) + " { }";
    return attention("schedule { " + text + "phase last otherwise { } }");
  };
  expectLimit(phases(8), phases(9), "more than the limit of 8 phases");
  auto values = [](int count) {
    std::string text = "16";
    for (int i = 2; i <= count; ++i)
      text += ", " + std::to_string(16 * i);
    return attention("schedule { chunk = tune(" + text + "); }");
  };
  expectLimit(values(64), values(65), "more than the limit of 64 values to tune");
}

} // namespace
} // namespace deft::spec::testing
