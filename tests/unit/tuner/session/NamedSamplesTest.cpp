#include "tuner/session/NamedSamples.h"

#include "tuner/workload/Families.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::session {
namespace {

spec::Variant withHeads(int queryHeads, int kvHeads) {
  spec::Variant variant;
  variant.queryHeads = queryHeads;
  variant.kvHeads = kvHeads;
  return variant;
}

std::vector<std::string> namesOf(std::string_view name, const spec::Variant &variant) {
  const auto samples = namedSamples(name, variant, 1, "");
  EXPECT_TRUE(samples.ok()) << samples.error().message;
  std::vector<std::string> names;
  for (const Sample &sample : *samples)
    names.push_back(sample.name);
  return names;
}

TEST(NamedSamplesTest, AllAreTheFamiliesOneAfterTheOther) {
  const spec::Variant variant = withHeads(32, 8);
  std::vector<std::string> families;
  for (const workload::WorkloadFamily &family : workload::families())
    for (std::string &name : namesOf(family.name, variant))
      families.push_back(std::move(name));
  EXPECT_FALSE(families.empty());
  EXPECT_EQ(namesOf("all", variant), families);
}

TEST(NamedSamplesTest, RowsAreThoseOfTheVariantsHeadsElseOfTheCommonOnes) {
  const auto common = namesOf("rows", withHeads(32, 8));
  EXPECT_NE(namesOf("rows", withHeads(16, 1)), common);
  EXPECT_EQ(namesOf("rows", withHeads(12, 3)), common); // no table has such heads
  const auto isRecorded = [](const std::string &name) { return name.starts_with("reasoning_"); };
  EXPECT_TRUE(std::none_of(common.begin(), common.end(), isRecorded)); // there is no folder of records
}

TEST(NamedSamplesTest, AnUnknownNameIsTheWorkloadsError) {
  EXPECT_FALSE(namedSamples("few_shots", withHeads(32, 8), 1, "").ok());
}

} // namespace
} // namespace deft::session
