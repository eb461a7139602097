#include "tests/unit/compiler/spec/SpecTesting.h"

namespace deft::spec::testing {
namespace {

const std::string kHeads = "query_heads = 8; kv_heads = 8; head_dim = 64;";

// Rules F2, F4.
TEST(CompileSpecTest, ImportsBringFunctionsLetsAndBases) {
  Compiled compiled =
      compile("import \"a.deft\"; attention mine : theirs { mask = near(width); }",
              {{"a.deft", "import \"b.deft\"; let width = 7; attention theirs { " + kHeads + " }"},
               {"b.deft", "mask near(w: i32) = kv_pos > w;"}});
  const Variant &v = compiled.only();
  EXPECT_EQ(v.name, "mine");
  EXPECT_EQ(describe(v, *v.mask), "(gt:bool kv_pos 7)");
}

// Rule F3.
TEST(CompileSpecTest, AFileIsReadOnceHoweverOftenItIsImported) {
  Compiled compiled = compile("import \"a.deft\"; import \"b.deft\"; import \"b.deft\"; attention x { " +
                                  kHeads + " mask = f(); }",
                              {{"a.deft", "import \"b.deft\";"}, {"b.deft", "mask f() = kv_pos > 1;"}});
  EXPECT_EQ(compiled.findings, "");
}

// Rule F3.
TEST(CompileSpecTest, AnImportCycleIsAnErrorWhereItCloses) {
  Compiled compiled = compile("import \"a.deft\"; attention x { " + kHeads + " }",
                              {{"a.deft", "import \"b.deft\";"}, {"b.deft", "import \"a.deft\";"}});
  EXPECT_EQ(compiled.findings, "b.deft:1:8: error: `a.deft` imports itself by way of this file\n"
                               " 1 | import \"a.deft\";\n"
                               "   |        ^~~~~~~~\n");
}

TEST(CompileSpecTest, ErrorsOfAnImportedFileAreInIt) {
  Compiled compiled =
      compile("import \"a.deft\"; attention x { " + kHeads + " mask = f(); }", {{"a.deft", "mask f() = 3;"}});
  EXPECT_EQ(compiled.findings, "a.deft:1:12: error: the value of a mask must be bool, this is i32\n"
                               " 1 | mask f() = 3;\n"
                               "   |            ^\n")
      << "and its use says nothing more";
}

// Rule F4.
TEST(CompileSpecTest, AttentionsOfImportedFilesAreNotCompiled) {
  Compiled compiled = compile("import \"a.deft\"; attention x : part { head_dim = 64; }",
                              {{"a.deft", "attention part { query_heads = 8; kv_heads = 8; }"}});
  EXPECT_EQ(compiled.only().name, "x");
}

TEST(CompileSpecTest, SeveralAttentionsComeInTheOrderOfTheFile) {
  Compiled compiled = compile("attention b : a { } attention a { " + kHeads + " } attention sigmoid : b { }");
  ASSERT_EQ(compiled.variants.size(), 3u) << compiled.findings;
  EXPECT_EQ(compiled.variants[0].name, "b");
  EXPECT_EQ(compiled.variants[2].name, "sigmoid");
}

TEST(CompileSpecTest, AFileOfFunctionsHasNoVariants) {
  Compiled compiled = compile("mask f() = kv_pos > 1;");
  EXPECT_EQ(compiled.errors, 0u);
  EXPECT_TRUE(compiled.variants.empty());
}

TEST(CompileSpecTest, WarningsDoNotHinder) {
  Compiled compiled = compile("attention a { " + kHeads + " mask = tree && false; }");
  EXPECT_EQ(compiled.variants.size(), 1u);
  EXPECT_EQ(compiled.findings,
            "my.deft:1:76: warning: this mask hides every token\n"
            " 1 | attention a { query_heads = 8; kv_heads = 8; head_dim = 64; mask = tree && false; }\n"
            "   |                                                                            ^~~~~\n"
            "   = hint: rule W1; `// allow W1` on its line silences it\n");
}

TEST(CompileSpecTest, OneErrorAndThereAreNoVariants) {
  EXPECT_TRUE(compile("attention a { " + kHeads + " } attention b { }").variants.empty());
}

} // namespace
} // namespace deft::spec::testing
