#include "runtime/api/Dtypes.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::api {
namespace {

/// A number of C's has DLPack's code above its bits.
TEST(DtypesTest, BitsAreThoseOfTheElements) {
  const std::pair<spec::DType, int> types[] = {
      {spec::DType::F16, 16}, {spec::DType::BF16, 16}, {spec::DType::F8E4M3, 8}, {spec::DType::F8E5M2, 8}};
  std::set<int> numbers;
  std::set<std::string> names;
  for (const auto &[type, bits] : types) {
    EXPECT_EQ(dtypeOf(type) & 0xff, bits);
    numbers.insert(dtypeOf(type));
    names.insert(dtypeName(dtypeOf(type)));
  }
  EXPECT_EQ(numbers.size(), std::size(types));
  EXPECT_EQ(names.size(), std::size(types));
  EXPECT_EQ(dtypeName(dtypeOf(spec::DType::BF16)), "bfloat16");
  EXPECT_EQ(dtypeName(DEFT_F32), "float32");
}

TEST(DtypesTest, ATypeWithoutANameIsToldByItsKindAndBits) {
  const auto named = [](int code, int bits) { return dtypeName(static_cast<deft_dtype>(code << 8 | bits)); };
  EXPECT_EQ(named(2, 64), "float64");
  EXPECT_EQ(named(0, 64), "int64");
  EXPECT_EQ(named(1, 8), "uint8");
  EXPECT_EQ(named(4, 32), "bfloat32");
  EXPECT_EQ(named(5, 128), "complex128");
  EXPECT_EQ(named(6, 8), "bool");
  EXPECT_EQ(named(17, 4), "of a type that has no name here, DLPack's code 17 with 4 bits");
  EXPECT_EQ(named(0, 0), "no dtype (0)");
}

} // namespace
} // namespace deft::api
