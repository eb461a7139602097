#include "runtime/capture/StepJson.h"

#include "compiler/support/JsonFields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace deft::capture {
namespace {

using nlohmann::json;

std::string errorOf(const json &drafts) {
  try {
    (void)draftsOf(drafts);
    return "";
  } catch (const support::WrongField &wrong) {
    return wrong.what();
  }
}

TEST(StepJsonTest, ParametersKeepTypeAndInfinity) {
  NamedParam cap{"cap", {}}, rows{"rows", {}};
  cap.value.f32 = {std::numeric_limits<float>::infinity(), -1.5f};
  rows.value.i32 = {3};
  const auto read = paramsOf(json::parse(toJson({cap, rows}).dump()));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].value.f32, cap.value.f32);
  EXPECT_EQ(read[1].value.i32, rows.value.i32);
  EXPECT_THROW((void)paramsOf(json::parse(R"({"a": {"f32": []}})")), support::WrongField);
  EXPECT_THROW((void)paramsOf(json::parse(R"({"a": {"f32": [1e60]}})")), support::WrongField);
  EXPECT_THROW((void)paramsOf(json::parse(R"({"a": {"i32": [1.5]}})")), support::WrongField);
}

TEST(StepJsonTest, DraftsHaveARowEach) {
  const json right = {{"request", 0},  {"first_query", 0}, {"count", 2},           {"length", 5},
                      {"location", 5}, {"gained", 0},      {"sees", {{0}, {0, 1}}}};
  EXPECT_EQ(draftsOf(right).sees.size(), 2u);
  json wrong = right;
  wrong["sees"] = {{0}};
  EXPECT_EQ(errorOf(wrong), "`sees` has 1 rows, the request has 2 drafts");
  wrong["sees"] = {{0}, {2}};
  EXPECT_EQ(errorOf(wrong), "`sees` has 2, not an integer between 0 and 1");
  wrong = right;
  wrong["depths"] = {0};
  EXPECT_EQ(errorOf(wrong), "`depths` has 1 numbers, the request has 2 drafts");
}

} // namespace
} // namespace deft::capture
