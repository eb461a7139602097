// The language document against the tests and the words of the compiler.
#include "compiler/spec/Names.h"
#include "compiler/support/AtomicFile.h"
#include "specs/Embedded.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <set>

namespace deft::specs {
namespace {

namespace fs = std::filesystem;

std::string document() {
  return *support::readFile((fs::path(DEFT_SOURCE_FOLDER) / "specs" / "LANGUAGE.md").string());
}

std::set<std::string> rulesOf(const std::string &text, const std::regex &pattern) {
  std::set<std::string> rules;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    rules.insert((*it)[1]);
  return rules;
}

/// The rules that the comment above a test names: "// Rule E3." or "// Rules A4, A7: words".
std::set<std::string> rulesNamedByTests() {
  std::set<std::string> rules;
  const std::regex line("rules? ((?:[A-Z][0-9]+(?:, )?)+)", std::regex::icase), rule("([A-Z][0-9]+)");
  for (const auto &entry : fs::recursive_directory_iterator(fs::path(DEFT_SOURCE_FOLDER) / "tests")) {
    std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".deft")
      continue;
    std::string text = *support::readFile(entry.path().string());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it)
      rules.merge(rulesOf((*it)[1], rule));
  }
  return rules;
}

TEST(LanguageTest, EveryRuleHasATestThatNamesIt) {
  std::set<std::string> rules = rulesOf(document(), std::regex("- \\*\\*([A-Z][0-9]+)\\.\\*\\*"));
  EXPECT_GE(rules.size(), 50u);
  std::set<std::string> named = rulesNamedByTests();
  for (const std::string &rule : rules)
    EXPECT_TRUE(named.count(rule)) << "no test names rule " << rule;
  for (const std::string &rule : named)
    EXPECT_TRUE(rules.count(rule)) << "a test names rule " << rule << ", which LANGUAGE.md lacks";
}

TEST(LanguageTest, TheDocumentKnowsEveryWordOfTheLanguage) {
  std::string text = document();
  std::vector<std::string> words = spec::attentionKeys();
  for (const auto &more :
       {spec::functionNames(), spec::builtinNames(), spec::partitionNames(), spec::dtypeNames()})
    words.insert(words.end(), more.begin(), more.end());
  for (const std::string &word : words)
    EXPECT_TRUE(std::regex_search(text, std::regex("\\b" + word + "\\b"))) << word;
}

TEST(LanguageTest, TheDocumentListsTheLibrary) {
  std::string text = document(), library(findEmbeddedSpec("library")->text);
  std::set<std::string> functions = rulesOf(library, std::regex("\n(?:mask|score) ([^=]*\\)) ="));
  EXPECT_EQ(functions.size(), 8u);
  for (const std::string &function : functions)
    EXPECT_NE(text.find("`" + function + "`"), std::string::npos) << function;
}

TEST(LanguageTest, TheExamplesOfTheDocumentCompile) {
  std::string text = document();
  std::size_t examples = 0;
  for (std::size_t at = text.find("```\nattention"); at != std::string::npos;
       at = text.find("```\nattention", at + 4)) {
    std::string example = text.substr(at + 4, text.find("```", at + 4) - at - 4);
    support::SourceManager sources;
    support::DiagnosticSink sink;
    EXPECT_FALSE(
        spec::compileSpec(sources, sources.add("example.deft", example), importResolver(), sink).empty());
    ++examples;
  }
  EXPECT_GE(examples, 1u);
}

} // namespace
} // namespace deft::specs
