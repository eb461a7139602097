// check, specs and emit --as ast|json, called as the program calls them.
#include "specs/Embedded.h"
#include "tests/support/RunDeftc.h"
#include "tools/deftc/common/Context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace deft::cli {
namespace {

using test::Outcome;

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Outcome run(std::vector<std::string> arguments, bool colour = false) {
  return test::runDeftc(std::move(arguments), {.hasColour = colour});
}

class FrontCommandsTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "deft-front-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string &name, const std::string &text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  fs::path folder_;
};

TEST_F(FrontCommandsTest, ATreeInTheSpecsPlaceIsRecognisedAndTheOtherWayRound) {
  const std::string tree =
      write("t.json", R"({"format": "deftc-tree", "version": 1, "nodes": [], "queries": []})");
  const std::string spec = write("s.deft", "attention a { query_heads = 8; kv_heads = 8; head_dim = 64; }");
  EXPECT_EQ(run({"check", tree}).err, "error: `" + tree +
                                          "` is JSON, not the text of a spec\n"
                                          "  = hint: a tree is given with --tree\n");
  EXPECT_EQ(run({"plan", "llama3_8b", "--tree", spec}).err,
            "error: `" + spec + "` is a spec, not a tree\n  = hint: a tree is a file of JSON\n");
}

Outcome runWithInput(std::vector<std::string> arguments, const std::string &input) {
  std::istringstream in(input);
  return test::runDeftc(std::move(arguments), {.input = &in});
}

constexpr char kPiped[] = "attention piped { query_heads = 8; kv_heads = 8; head_dim = 64; }";

TEST(CheckTest, ADashIsWhatIsPipedIn) {
  const Outcome right = runWithInput({"check", "-"}, kPiped);
  EXPECT_EQ(right.code, kExitOk) << right.err;
  EXPECT_THAT(right.out, StartsWith("<stdin>: ok, piped: 8 query heads"));
  const Outcome wrong = runWithInput({"check", "-"}, "attention a { query_heads = x; }");
  EXPECT_EQ(wrong.code, kExitDiagnostics);
  EXPECT_THAT(wrong.err, HasSubstr("<stdin>:1:29: error:"));
  EXPECT_EQ(runWithInput({"check", "-"}, "import \"library.deft\";").code, kExitOk);
  for (const char *command : {"check", "fmt"}) {
    const Outcome twice = runWithInput({command, "-", "-"}, kPiped);
    EXPECT_EQ(twice.code, kExitUsage) << command;
    EXPECT_THAT(twice.err, HasSubstr("which can be read only once")) << command;
  }
}

TEST_F(FrontCommandsTest, CheckAsJsonGivesFindingsAndAttentions) {
  const std::string wrong = write("w.deft", "attention a {\n  query_heads = x;\n}\n");
  const Outcome outcome = run({"check", "--json", "gemma2_9b", wrong, "none.deft"});
  EXPECT_EQ(outcome.code, kExitEnvironment) << "a file is missing";
  EXPECT_EQ(outcome.err, "");
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0]["ok"]);
  EXPECT_EQ(all[0]["attentions"].size(), 2u);
  EXPECT_EQ(all[0]["attentions"][0]["name"], "gemma2_9b");
  EXPECT_FALSE(all[1]["ok"]);
  const auto &findings = all[1]["findings"];
  const auto unknown = std::find_if(findings.begin(), findings.end(),
                                    [](const nlohmann::json &finding) { return finding["line"] == 2; });
  ASSERT_NE(unknown, findings.end());
  EXPECT_EQ((*unknown)["column"], 17);
  EXPECT_EQ((*unknown)["severity"], "error");
  EXPECT_EQ(all[2]["findings"][0]["message"], "cannot read `none.deft`: No such file or directory");
}

TEST(ExplainTest, ARuleOfTheLanguageIsTold) {
  const Outcome rule = run({"explain", "V4"});
  EXPECT_EQ(rule.code, kExitOk) << rule.err;
  EXPECT_THAT(rule.out, StartsWith("V4 (Visibility): `head` counts query heads"));
  const nlohmann::json told = nlohmann::json::parse(run({"explain", "V4", "--json"}).out);
  EXPECT_EQ(told["rule"], "V4");
  EXPECT_EQ(told["section"], "Visibility");
  EXPECT_THAT(std::string(told["text"]), StartsWith("`head` counts query heads"));
  const Outcome none = run({"explain", "V"
                                       "99"});
  EXPECT_EQ(none.code, kExitUsage);
  EXPECT_THAT(none.err, HasSubstr("the language has no rule V"
                                  "99\n  = hint: the last one of its letter is V"));
}

TEST_F(FrontCommandsTest, FmtWritesTheUsualFormAndCheckOnlyNamesFiles) {
  const std::string right = write("r.deft", "attention a {\n  head_dim = 64;\n}\n");
  const std::string loose = write("l.deft", "attention a {\n head_dim=64;\n}");
  const Outcome check = run({"fmt", "--check", right, loose});
  EXPECT_EQ(check.code, kExitDiagnostics);
  EXPECT_EQ(check.out, loose + "\n");
  EXPECT_EQ(run({"fmt", right, loose}).code, kExitOk);
  EXPECT_EQ(run({"fmt", "--check", right, loose}).code, kExitOk);
  std::ifstream file(loose);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "attention a {\n  head_dim = 64;\n}\n");
  EXPECT_EQ(runWithInput({"fmt", "-"}, "attention  a{ }").out, "attention a { }\n");
  const std::string broken = write("b.deft", "attention a { $ }");
  EXPECT_EQ(run({"fmt", broken}).code, kExitDiagnostics);
  const Outcome shipped = run({"fmt", "llama3_8b"});
  EXPECT_EQ(shipped.code, kExitUsage);
  EXPECT_THAT(shipped.err, HasSubstr("`llama3_8b` is a shipped spec and no file"));
}

TEST_F(FrontCommandsTest, ANameThatIsNotUtf8IsNoBugOfDeftc) {
  const std::string tree = write("t\xff.json", R"({"format": "deftc-tree", "version": 1, "nodes":
    [{"parent": -1, "tokens": 20}], "queries": [{"node": 0}]})");
  const Outcome outcome = run({"explain", "llama3_8b", "--tree", tree, "--backend", "cpu", "--json"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("a given name is not UTF-8"));
  EXPECT_EQ(run({"explain", "llama3_8b", "--tree", tree, "--backend", "cpu"}).code, kExitOk);
}

TEST_F(FrontCommandsTest, CheckPrintsALineForEachAttention) {
  Outcome outcome = run({"check", "llama3_8b", "gemma2_9b", "library"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "<deftc>/llama3_8b.deft: ok, llama3_8b: 32 query heads, 8 kv heads, head dim 128, "
                         "bf16, pages of 16 nhd\n"
                         "<deftc>/gemma2_9b.deft: ok, gemma2_9b: 16 query heads, 8 kv heads, head dim 256, "
                         "bf16, pages of 16 nhd, "
                         "score, param cap\n"
                         "<deftc>/gemma2_9b.deft: ok, gemma2_9b_window: 16 query heads, 8 kv heads, head dim "
                         "256, bf16, pages of 16 "
                         "nhd, mask, score, param cap\n"
                         "<deftc>/library.deft: ok, no attention\n");
}

TEST(CheckTest, WhatAnAttentionHasIsNamed) {
  EXPECT_THAT(run({"check", "qwen3_8b"}).out,
              HasSubstr("qwen3_8b_raw_q: 32 query heads, 8 kv heads, head dim 128, bf16, "
                        "pages of 16 nhd, query hook, param weight"));
  EXPECT_THAT(run({"check", "llama3_8b_raw_k"}).out, HasSubstr("pages of 16 nhd, query hook, key hook\n"));
  EXPECT_THAT(run({"check", "prefix_lm"}).out, HasSubstr("pages of 16 nhd, path, mask"));
  EXPECT_THAT(run({"check", "gpt_oss"}).out, HasSubstr(", sink, param "));
  EXPECT_THAT(run({"check", "llama3_8b_sparse"}).out, HasSubstr(", select\n"));
}

TEST_F(FrontCommandsTest, CheckGoesOnAfterAWrongFile) {
  std::string wrong = write("wrong.deft", "attention a {\n  query_heads = y;\n}\n");
  EXPECT_EQ(run({"check", wrong, "llama3_8b"}).code, kExitDiagnostics);
  Outcome outcome = run({"check", wrong, (folder_ / "absent.deft").string(), "llama3_8b"});
  EXPECT_EQ(outcome.code, kExitEnvironment);
  EXPECT_THAT(outcome.out, HasSubstr("llama3_8b: 32 query heads"));
  EXPECT_THAT(outcome.err, HasSubstr(wrong + ":2:17: error: unknown name `y`\n 2 |   query_heads = y;\n"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot read `"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\033"))) << "plain text in a pipe";
}

TEST_F(FrontCommandsTest, ATerminalGetsColours) {
  std::string wrong = write("wrong.deft", "attention a { query_heads = x; }");
  EXPECT_THAT(run({"check", wrong}, /*colour=*/true).err, HasSubstr("\033[1;31merror: \033[0m"));
}

TEST_F(FrontCommandsTest, ImportsAreFoundBesideTheFile) {
  write("mine.deft", "mask near(w: i32) = kv_pos > q_pos - w;");
  std::string spec = write("spec.deft", "import \"mine.deft\"; import \"library.deft\";\n"
                                        "attention a { query_heads = 8; kv_heads = 8; head_dim = 64;"
                                        " mask = near(4); score = softcap(s, 30); }");
  Outcome outcome = run({"check", spec});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
}

TEST_F(FrontCommandsTest, ADiagnosticNeverQuotesAFileOutsideOfTheFolder) {
  write("secret.txt", "root:x:0:0\n");
  fs::create_directory(folder_ / "spec");
  fs::create_symlink("../secret.txt", folder_ / "spec" / "lib.deft");
  const std::string spec = write("spec/main.deft", "import \"lib.deft\";\n");
  const Outcome outcome = run({"check", spec});
  EXPECT_EQ(outcome.code, kExitDiagnostics);
  EXPECT_THAT(outcome.err, HasSubstr("main.deft:1:8: error: `lib.deft` lies outside of the folder"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("root:")));
}

TEST_F(FrontCommandsTest, SpecsListsAllAndPrintsOne) {
  Outcome list = run({"specs"});
  EXPECT_EQ(list.code, kExitOk);
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    EXPECT_THAT(list.out, HasSubstr(std::string(spec.name) + " "));
  EXPECT_THAT(list.out, HasSubstr("Llama 3 8B: grouped queries (ratio 4), plain causal softmax."));
  EXPECT_EQ(run({"specs", "llama3_8b"}).out, specs::findEmbeddedSpec("llama3_8b")->text);

  std::string copy = (folder_ / "copy.deft").string();
  EXPECT_EQ(run({"specs", "mistral_7b", "-o", copy}).code, kExitOk);
  EXPECT_EQ(run({"check", copy}).code, kExitOk) << "a printed spec is a start";
  EXPECT_THAT(run({"specs", "mistral"}).err, HasSubstr("did you mean `mistral_7b`?"));
  EXPECT_THAT(run({"specs", "nothing_like_it"}).err, HasSubstr("`deftc specs` lists them"));
}

TEST_F(FrontCommandsTest, EmitJsonAndAst) {
  Outcome json = run({"emit", "gemma2_9b", "--as", "json", "--variant", "gemma2_9b_window"});
  ASSERT_EQ(json.code, kExitOk) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out).at("name"), "gemma2_9b_window");
  EXPECT_EQ(run({"emit", "gemma2_9b#gemma2_9b_window", "--as", "json"}).out, json.out);
  Outcome ast = run({"emit", "gemma2_9b", "--as", "ast"});
  EXPECT_EQ(ast.code, kExitOk) << "the tree is the file's, no variant need be chosen";
  EXPECT_THAT(
      ast.out,
      HasSubstr("attention gemma2_9b_window : gemma2_9b\n  mask = (&& tree (call sliding_window 4096))\n"));
}

TEST_F(FrontCommandsTest, EmitSaysWhichVariantsThereAre) {
  Outcome several = run({"emit", "gemma2_9b", "--as", "json"});
  EXPECT_THAT(several.err, HasSubstr("choose one with --variant: gemma2_9b, gemma2_9b_window"));
  Outcome unknown = run({"emit", "gemma2_9b", "--as", "json", "--variant", "gemma2_9b_windw"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean `gemma2_9b_window`?"));
  Outcome none = run({"emit", "library", "--as", "json"});
  EXPECT_EQ(none.code, kExitDiagnostics);
  EXPECT_THAT(none.err, HasSubstr("defines no attention"));
}

} // namespace
} // namespace deft::cli
