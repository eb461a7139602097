#include "runtime/c_api/Dtypes.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::c {
namespace {

/// A number of C's has DLPack's code above its bits.
TEST(DtypesTest, BitsAreThoseOfTheElements) {
  const std::pair<DType, int> types[] = {
      {DType::F16, 16}, {DType::BF16, 16}, {DType::F8E4M3, 8}, {DType::F8E5M2, 8}};
  std::set<int> numbers;
  std::set<std::string> names;
  for (const auto &[type, bits] : types) {
    EXPECT_EQ(dtypeOf(type) & 0xff, bits);
    numbers.insert(dtypeOf(type));
    names.insert(dtypeName(dtypeOf(type)));
  }
  EXPECT_EQ(numbers.size(), std::size(types));
  EXPECT_EQ(names.size(), std::size(types));
  EXPECT_EQ(dtypeName(dtypeOf(DType::BF16)), "bfloat16");
  EXPECT_EQ(dtypeName(DEFT_F32), "float32");
}

TEST(DtypesTest, ATypeWithoutANameIsToldByItsNumber) {
  const int float64 = 2 << 8 | 64;
  EXPECT_EQ(dtypeName(static_cast<deft_dtype>(float64)), "of dtype 576 (DLPack's code 2, 64 bits)");
}

} // namespace
} // namespace deft::c
