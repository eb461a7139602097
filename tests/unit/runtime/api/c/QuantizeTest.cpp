#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

namespace deft::c_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two tokens of two KV heads of one value each: 1, 2, 1, -2 in bf16.
class CQuantizeTest : public testing::Test {
protected:
  static deft_quantize_shape shapeOf() {
    auto made = sized<deft_quantize_shape>();
    made.tokens = 2;
    made.kv_heads = 2;
    made.dim = 1;
    made.from = DEFT_BF16;
    made.to = DEFT_F8_E4M3;
    return made;
  }
  deft_status quantize() {
    return deft_quantize(&shape, rows.data(), scales.data(), scales.size(), cache.data());
  }

  deft_quantize_shape shape = shapeOf();
  std::vector<uint16_t> rows = {0x3f80, 0x4000, 0x3f80, 0xc000};
  std::vector<float> scales = {1, 2};
  std::vector<uint8_t> cache = std::vector<uint8_t>(4);
};

TEST_F(CQuantizeTest, WritesRowsOfACache) {
  ASSERT_EQ(quantize(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(cache, ElementsAre(0x38, 0x38, 0x38, 0xb8));
  shape.from = DEFT_F16;
  shape.to = DEFT_F8_E5M2;
  scales = {1};
  rows = {0x3c00, 0x4000, 0x3c00, 0xc000};
  ASSERT_EQ(quantize(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(cache, ElementsAre(0x3c, 0x40, 0x3c, 0xc0));
}

TEST_F(CQuantizeTest, WrongCallsSayWhatIsWrong) {
  shape.from = DEFT_F32;
  EXPECT_EQ(quantize(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("deft_quantize_shape::from is float32"));
  shape.from = DEFT_BF16;
  shape.to = 0;
  EXPECT_EQ(quantize(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("deft_quantize_shape::to is no dtype (0)"));
  shape.to = DEFT_F16;
  EXPECT_EQ(quantize(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("deft_quantize_shape::to is float16"));
  shape = shapeOf();
  scales = {1, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(quantize(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("scale 1 is inf, not finite and above 0"));
  shape.size = 0;
  EXPECT_EQ(quantize(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("deft_quantize_shape::size is 0"));
  shape = shapeOf();
  EXPECT_EQ(deft_quantize(&shape, rows.data(), nullptr, 1, cache.data()), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_quantize: scales is null");
  EXPECT_EQ(deft_quantize(&shape, nullptr, scales.data(), 1, cache.data()), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "from is null");
  EXPECT_THAT(cache, ElementsAre(0, 0, 0, 0));
}

} // namespace
} // namespace deft::c_test
