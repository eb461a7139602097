#include "tools/deftc/shell/ManPage.h"

#include "tests/support/RunDeftc.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

std::string made(const std::string &kind) { return test::runDeftc({"completions", kind}).out; }

/// What a reader sees of the language of man, as far as the page uses it.
std::string shown(const std::string &text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    ++i;
    result += text[i] == 'e' ? "\\" : text[i] == '&' ? "" : std::string(1, text[i]);
  }
  return result;
}

TEST(ManPageTest, WhatManWouldReadIsEscaped) {
  CLI::App app(".dots and 'quotes' - and \\", "prog");
  CLI::App *const command = app.add_subcommand("go", "Goes\n.to the end");
  command->add_option("-f,--far-away", "'How far': C:\\x")->check(CLI::IsMember({"a-b", "c"}));
  command->footer("Example:\n  prog go --far-away a-b");
  const std::string page = manPage(app, "1.2-3");
  EXPECT_THAT(page, HasSubstr(".TH DEFTC 1 \"\" \"deftc 1.2\\-3\"\n"));
  EXPECT_THAT(page, HasSubstr("\\&.dots and 'quotes' \\- and \\e.\n"));
  EXPECT_THAT(page, HasSubstr(".SS prog go\nGoes\n\\&.to the end.\n"));
  EXPECT_THAT(shown(page), HasSubstr(".TP\n.B -f, --far-away\n'How far': C:\\x: a-b, c\n"));
  EXPECT_THAT(shown(page), HasSubstr(".PP\n.nf\nExample:\n  prog go --far-away a-b\n.fi\n"));
  EXPECT_THAT(page, testing::Not(HasSubstr("--help"))) << "every command has it";
}

TEST(ManPageTest, ADescriptionOfSeveralLinesHasThemOneBelowTheOther) {
  CLI::App app("", "prog");
  app.add_subcommand("go")->add_option("--as", "What:\na: one\n.b: two")->type_name("TEXT:{a,.b}");
  EXPECT_THAT(manPage(app, "1"), HasSubstr(".B \\-\\-as\nWhat:\n.br\na: one\n.br\n\\&.b: two\n"));
}

TEST(ManPageTest, EveryCommandWithAKindListsItsKinds) {
  const std::string page = shown(made("man"));
  for (const char *kinds : {"What to show:\n.br\nast: ", "\n.br\njson: ", ": text, json, svg, html\n"})
    EXPECT_THAT(page, HasSubstr(kinds));
}

TEST(ManPageTest, NoLineIsTakenForARequestThatThereIsNot) {
  std::istringstream page(made("man"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("."))
      continue;
    EXPECT_THAT(line, testing::MatchesRegex("\\.(TH|SH|SS|TP|PP|B|I|br|nf|fi).*"));
  }
}

TEST(ManPageTest, ExitCodesAndTheEnvironmentAreInIt) {
  const std::string page = made("man");
  for (const char *part : {".SH EXIT STATUS", ".SH ENVIRONMENT", "DEFT_CONFIG_PATH", "128 + N"})
    EXPECT_THAT(page, HasSubstr(part));
}

} // namespace
} // namespace deft::cli
