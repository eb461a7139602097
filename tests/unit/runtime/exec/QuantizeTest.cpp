#include "runtime/exec/Quantize.h"

#include "runtime/exec/Half.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace deft::exec {
namespace {

using spec::DType;

std::vector<std::uint8_t> quantized(DType from, DType to, const std::vector<float> &values,
                                    const std::vector<float> &scales, int kvHeads, int dim) {
  std::vector<std::uint16_t> rows;
  for (const float value : values)
    rows.push_back(fromFloat(value, from));
  std::vector<std::uint8_t> codes(values.size() + 1, 0xa5);
  quantize({static_cast<std::int64_t>(values.size()) / (kvHeads * dim), kvHeads, dim, from, to}, rows.data(),
           scales, codes.data());
  EXPECT_EQ(codes.back(), 0xa5) << "nothing is written behind the rows";
  codes.pop_back();
  return codes;
}

TEST(QuantizeTest, DividesByTheScaleOfTheHead) {
  // [2 tokens][2 heads][2]
  const std::vector<float> values = {1, 2, 1, 2, -4, 8, -4, 8};
  for (const DType from : {DType::F16, DType::BF16}) {
    EXPECT_EQ(quantized(from, DType::F8E4M3, values, {2, 0.5f}, 2, 2),
              (std::vector<std::uint8_t>{0x30, 0x38, 0x40, 0x48, 0xc0, 0x48, 0xd0, 0x58}));
    EXPECT_EQ(quantized(from, DType::F8E5M2, values, {2}, 2, 2),
              (std::vector<std::uint8_t>{0x38, 0x3c, 0x38, 0x3c, 0xc0, 0x44, 0xc0, 0x44}));
  }
}

TEST(QuantizeTest, DividesByTheScaleOfTheHeadOfTheToken) {
  EXPECT_EQ(quantized(DType::BF16, DType::F8E4M3, {1, 1, 1, 1}, {1, 2, 4, 0.5f}, 2, 1),
            (std::vector<std::uint8_t>{0x38, 0x30, 0x28, 0x40}));
}

TEST(QuantizeTest, SaturatesAndKeepsNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto codes = quantized(DType::BF16, DType::F8E4M3,
                               {1e9f, -infinity, std::numeric_limits<float>::quiet_NaN(), 900}, {2}, 1, 4);
  EXPECT_EQ(codes[0], 0x7e);
  EXPECT_EQ(codes[1], 0xfe);
  EXPECT_EQ(codes[2] & 0x7f, 0x7f);
  EXPECT_EQ(codes[3], 0x7e) << "450 is nearest to 448, the largest";
}

} // namespace
} // namespace deft::exec
