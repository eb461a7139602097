#include "runtime/exec/Params.h"
#include "tests/support/VariantBuilder.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

namespace deft::exec {
namespace {

using spec::ScalarType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Shape = spec::Param::Shape;

class ParamsTest : public ::testing::Test {
protected:
  ParamsTest() : build_(4, 2) {
    build_.param("cap", ScalarType::F32, Shape::Scalar);
    build_.param("slope", ScalarType::F32, Shape::PerQueryHead);
    build_.param("window", ScalarType::I32, Shape::PerKvHead);
    build_.variant.params[0].defaultValue = 30;
  }

  support::Result<std::vector<ParamValue>> bind(std::vector<std::string> assignments) {
    return bindParams(build_.variant, assignments);
  }
  std::string messageOf(std::vector<std::string> assignments) {
    const auto bound = bind(std::move(assignments));
    return bound ? "none" : bound.error().message;
  }
  void writeNpy(const std::string &descr, int count, std::optional<float> last = {}) {
    std::string header =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }\n";
    std::string bytes = "\x93NUMPY\x01";
    bytes += '\0';
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    bytes += header;
    for (int i = 0; i < count; ++i) {
      const float value = last && i == count - 1 ? *last : static_cast<float>(i) / 2;
      bytes.append(reinterpret_cast<const char *>(&value), 4);
    }
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  test::VariantBuilder build_;
  module_cache::TestFolder folder_; // its own: tests run beside each other
  const std::string path_ = folder_.path("params.npy");
};

TEST_F(ParamsTest, NumbersAndDefaults) {
  const auto bound = bind({"slope=0.25", "window=-3"});
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_THAT((*bound)[0].f32, ElementsAre(30));
  EXPECT_THAT((*bound)[1].f32, ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT((*bound)[2].i32, ElementsAre(-3, -3));
  EXPECT_THAT((*bind({"cap=1e2", "slope=0", "window=0"}))[0].f32, ElementsAre(100));
}

TEST_F(ParamsTest, FilesGiveArrays) {
  writeNpy("<f4", 4);
  const auto bound = bind({"slope=" + path_, "window=0"});
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_THAT((*bound)[1].f32, ElementsAre(0, 0.5, 1, 1.5));
}

TEST_F(ParamsTest, ArraysOverTokensAndQueriesTakeOneValueOrAsManyAsAFileHasOrNone) {
  build_.param("doc", ScalarType::F32, Shape::PerToken);
  build_.param("own", ScalarType::I32, Shape::PerQuery);
  writeNpy("<f4", 5);
  const auto bound = bind({"slope=1", "window=0", "doc=" + path_, "own=4"});
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_THAT((*bound)[3].f32, ElementsAre(0, 0.5, 1, 1.5, 2));
  EXPECT_THAT((*bound)[4].i32, ElementsAre(4));
  EXPECT_TRUE((*bind({"slope=1", "window=0"}))[3].f32.empty());
  EXPECT_EQ(paramTypeName(build_.variant.params[3]), "f32[tokens]");
  EXPECT_EQ(paramTypeName(build_.variant.params[4]), "i32[queries]");
}

TEST_F(ParamsTest, ErrorsSayWhatIsExpected) {
  EXPECT_EQ(messageOf({"slope=1"}), "parameter `window` (i32[kv_heads]) needs a value");
  EXPECT_EQ(messageOf({"slop=1"}), "`test` has no parameter `slop`");
  EXPECT_EQ(bind({"slop=1"}).error().hint, "did you mean `slope`?");
  EXPECT_EQ(messageOf({"slope"}), "`slope` gives no value");
  EXPECT_EQ(messageOf({"slope=1", "slope=2"}), "parameter `slope` is given twice");
  EXPECT_EQ(messageOf({"slope=often"}), "parameter `slope` cannot be `often`");
  EXPECT_EQ(messageOf({"slope="}), "parameter `slope` cannot be ``");
  EXPECT_EQ(messageOf({"slope=inf"}), "parameter `slope` cannot be `inf`");
  EXPECT_EQ(messageOf({"slope=1e99"}), "parameter `slope` must be a finite f32, `1e99` is not");
  EXPECT_EQ(messageOf({"window=1.5"}), "parameter `window` is an i32, `1.5` is not");
  EXPECT_THAT(messageOf({"slope=missing_file.npy"}), HasSubstr("missing_file.npy"));
  writeNpy("<f4", 3);
  EXPECT_EQ(messageOf({"slope=" + path_}), "parameter `slope` has 4 values, " + path_ + " holds 3");
  writeNpy("<i4", 4);
  EXPECT_EQ(messageOf({"slope=" + path_}), "parameter `slope` is f32, " + path_ + " holds i32");
}

TEST_F(ParamsTest, FilesObeyTheRulesOfNumbers) {
  for (const auto &[value, text] :
       {std::pair(std::numeric_limits<float>::quiet_NaN(), "nan"), std::pair(-INFINITY, "-inf")}) {
    writeNpy("<f4", 4, value);
    EXPECT_EQ(messageOf({"slope=" + path_}),
              "parameter `slope` must be finite f32s, " + path_ + " holds " + text + " at index 3");
  }
  writeNpy("<f4", 2);
  EXPECT_EQ(messageOf({"slope=0", "window=" + path_}), "parameter `window` is i32, " + path_ + " holds f32");
  writeNpy("<i4", 3);
  EXPECT_EQ(messageOf({"slope=0", "window=" + path_}),
            "parameter `window` has 2 values, " + path_ + " holds 3");
  EXPECT_THAT((*bind({"slope=0", "window=-2147483648"}))[2].i32, ElementsAre(INT_MIN, INT_MIN));
  EXPECT_EQ(messageOf({"slope=0", "window=2147483648"}), "parameter `window` is an i32, `2147483648` is not");
}

TEST_F(ParamsTest, AMissingArrayTellsHowToGiveIt) {
  EXPECT_EQ(
      bind({"window=1"}).error().hint,
      "give it 4 values, on the command line with --param slope=FILE.npy, or =VALUE for all heads alike");
}

} // namespace
} // namespace deft::exec
