#include "tuner/workload/Parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const std::vector<Parameter> kKnown{{"prompt", "4000", ""}, {"nodes", "1,10", ""}, {"shape", "medusa", ""}};

TEST(ParametersTest, NamesAndValues) {
  const auto name = parseName("levels:nodes=1,10,tokens=4000,400");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->name, "levels");
  EXPECT_THAT(name->parameters, ElementsAre(Pair("nodes", "1,10"), Pair("tokens", "4000,400")));
  EXPECT_TRUE(parseName("few_shot")->parameters.empty());
}

TEST(ParametersTest, WhatIsNoKeyAndValueIsAnError) {
  EXPECT_EQ(parseName("").error().message, "a workload needs a name");
  EXPECT_EQ(parseName(":a=1").error().message, "a workload needs a name");
  for (const char *text : {"few_shot:", "few_shot:20", "few_shot:=20", "few_shot:a=1,", "few_shot:a=1,,b=2"})
    EXPECT_FALSE(parseName(text)) << text;
  EXPECT_EQ(parseName("few_shot:20").error().message, "`20` in workload `few_shot:20` is not key=value");
}

TEST(ParametersTest, GivenValuesBeforeDefaults) {
  auto parameters = Parameters::make("w", {{"nodes", "2,4,8"}}, kKnown);
  ASSERT_TRUE(parameters);
  EXPECT_EQ(parameters->integer("prompt", 0, 9999), 4000);
  EXPECT_THAT(parameters->integers("nodes", 1, 10), ElementsAre(2, 4, 8));
  EXPECT_EQ(parameters->choice("shape", {"random", "medusa"}), "medusa");
  EXPECT_FALSE(parameters->error());
}

TEST(ParametersTest, UnknownNamesSuggestTheNearest) {
  const auto near = Parameters::make("w", {{"promt", "1"}}, kKnown);
  EXPECT_EQ(near.error().message, "workload `w` has no parameter `promt`");
  EXPECT_EQ(near.error().hint, "did you mean `prompt`?");
  EXPECT_EQ(Parameters::make("w", {{"xyz", "1"}}, kKnown).error().hint, "it has `prompt`, `nodes`, `shape`");
}

TEST(ParametersTest, TwiceOrWithoutValueIsAnError) {
  EXPECT_EQ(Parameters::make("w", {{"prompt", "1"}, {"prompt", "1"}}, kKnown).error().message,
            "parameter `prompt` of workload `w` is given twice");
  EXPECT_EQ(Parameters::make("w", {{"prompt", ""}}, kKnown).error().message,
            "parameter `prompt` of workload `w` has no value");
}

TEST(ParametersTest, ValuesAreStrict) {
  for (const char *value : {"-1", "10000", "4k", "1.5", " 1", "0x10", "99999999999", "1,2"}) {
    auto parameters = Parameters::make("w", {{"prompt", value}}, kKnown);
    (void)parameters->integer("prompt", 0, 9999);
    ASSERT_TRUE(parameters->error()) << value;
    EXPECT_EQ(parameters->error()->message,
              "parameter `prompt` is `" + std::string(value) + "`, must be an integer from 0 to 9999");
  }
  auto list = Parameters::make("w", {{"nodes", "1,x"}}, kKnown);
  (void)list->integers("nodes", 1, 10);
  EXPECT_EQ(list->error()->message,
            "parameter `nodes` is `1,x`, must be integers from 1 to 10 with commas between them");
  auto choice = Parameters::make("w", {{"shape", "medsua"}}, kKnown);
  (void)choice->choice("shape", {"medusa", "random"});
  EXPECT_EQ(choice->error()->message, "parameter `shape` is `medsua`, must be one of `medusa`, `random`");
  EXPECT_EQ(choice->error()->hint, "did you mean `medusa`?");
}

TEST(ParametersTest, TheFirstErrorIsKept) {
  auto parameters = Parameters::make("w", {{"prompt", "x"}, {"nodes", "y"}}, kKnown);
  (void)parameters->integer("prompt", 0, 9);
  (void)parameters->integers("nodes", 0, 9);
  EXPECT_THAT(parameters->error()->message, ::testing::HasSubstr("`prompt`"));
}

} // namespace
} // namespace deft::workload
