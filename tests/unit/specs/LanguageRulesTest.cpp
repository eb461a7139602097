#include "specs/LanguageRules.h"

#include "specs/Embedded.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::specs {
namespace {

TEST(LanguageRulesTest, EveryRuleOfTheDocumentIsFoundOnceWithItsText) {
  std::set<std::string> names;
  for (const LanguageRule &rule : languageRules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands twice";
    EXPECT_FALSE(rule.text.empty()) << rule.name;
    EXPECT_FALSE(rule.section.empty()) << rule.name;
  }
  std::size_t marks = 0;
  for (std::size_t at = 0; (at = languageText().find("\n- **", at)) != std::string_view::npos; ++at)
    ++marks;
  EXPECT_EQ(names.size(), marks);
  EXPECT_GT(names.size(), 50u);
}

TEST(LanguageRulesTest, ARuleThatGoesOnIsOneLine) {
  for (const LanguageRule &rule : languageRules())
    EXPECT_EQ(rule.text.find('\n'), std::string::npos) << rule.name;
}

TEST(LanguageRulesTest, NamesOfRulesAreALetterAndDigits) {
  EXPECT_TRUE(isRuleName("V4"));
  EXPECT_TRUE(isRuleName("S12"));
  for (const char *word : {"V", "v4", "4", "V4a", "", "llama3_8b"})
    EXPECT_FALSE(isRuleName(word)) << word;
}

} // namespace
} // namespace deft::specs
