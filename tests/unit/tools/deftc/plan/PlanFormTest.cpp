#include "tools/deftc/plan/PlanForm.h"

#include <gtest/gtest.h>

namespace deft::cli {
namespace {

std::string formOf(const std::string &as, const std::string &file) {
  const auto form = choosePlanForm(as, file);
  return form ? form->name + (form->byFile.empty() ? "" : ", not " + form->byFile) : form.error().message;
}

TEST(PlanFormTest, TheEndingOfTheFileSaysIt) {
  EXPECT_EQ(formOf("", "plan.svg"), "svg");
  EXPECT_EQ(formOf("", "a.b/PLAN.JSON"), "json");
  EXPECT_EQ(formOf("", "plan.txt"), "text");
  EXPECT_EQ(formOf("", "plan.html"), "html");
}

TEST(PlanFormTest, WithoutAnEndingItIsText) {
  for (const char *file : {"", "-", "plan", "/dev/fd/63", "../plan", "a.svg/plan"})
    EXPECT_EQ(formOf("", file), "text") << file;
}

TEST(PlanFormTest, WhatIsAskedForGoesFirst) {
  EXPECT_EQ(formOf("json", ""), "json");
  EXPECT_EQ(formOf("json", "plan.dat"), "json");
  EXPECT_EQ(formOf("svg", "plan.svg"), "svg");
  EXPECT_EQ(formOf("json", "plan.svg"), "json, not svg");
}

TEST(PlanFormTest, AnUnknownEndingIsAnErrorThatListsTheKnownOnes) {
  const auto form = choosePlanForm("", "plan.pdf");
  ASSERT_FALSE(form);
  EXPECT_EQ(form.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(form.error().message, "`plan.pdf` ends in .pdf, which is not a known format");
  EXPECT_EQ(form.error().hint,
            "known endings are .txt, .json, .svg, .html; --as text|json|svg|html works with any name");
}

} // namespace
} // namespace deft::cli
