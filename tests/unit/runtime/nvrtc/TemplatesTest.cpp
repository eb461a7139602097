#include "runtime/nvrtc/Templates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::nvrtc {
namespace {

bool holds(const std::vector<TemplateHeader> &headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(), [&](const auto &header) { return header.name == name; });
}

TEST(TemplatesTest, HeadersAreEmbeddedWhole) {
  const auto all = templateHeaders();
  EXPECT_GE(all.size(), 3u);
  EXPECT_TRUE(
      std::is_sorted(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.name < b.name; }));
  for (const TemplateHeader &header : all) {
    EXPECT_NE(header.text.find("#pragma once"), std::string_view::npos) << header.name;
    EXPECT_NE(header.text.find("namespace deft"), std::string_view::npos) << header.name;
  }
}

TEST(TemplatesTest, OnlyReachedHeadersAreTaken) {
  const auto merge = reachedHeaders("#include \"deft/merge.cuh\"\n");
  EXPECT_TRUE(holds(merge, "deft/merge.cuh"));
  EXPECT_TRUE(holds(merge, "deft/abi.h"));
  EXPECT_FALSE(holds(merge, "deft/attend_sm80.cuh"));
  EXPECT_TRUE(holds(reachedHeaders("#include \"deft/attend_sm80.cuh\"\n"), "deft/sm80/softmax.cuh"));
  EXPECT_TRUE(reachedHeaders("int x;").empty());
  EXPECT_TRUE(reachedHeaders("#include \"deft/none.cuh\"\n").empty());
}

} // namespace
} // namespace deft::nvrtc
