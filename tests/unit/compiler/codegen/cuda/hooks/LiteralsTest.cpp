#include "compiler/codegen/cuda/hooks/Literals.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace deft::codegen::cuda {
namespace {

TEST(LiteralsTest, FloatsAreShortAndReadBack) {
  EXPECT_EQ(floatLiteral(30), "30.f");
  EXPECT_EQ(floatLiteral(-0.5F), "-0.5f");
  EXPECT_EQ(floatLiteral(1e-10F), "1e-10f");
  for (const float value : {0.1F, 1.0F / 3, 16777217.0F, -2.5e-38F, std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max()})
    EXPECT_EQ(std::strtof(floatLiteral(value).c_str(), nullptr), value);
}

TEST(LiteralsTest, FloatsWithoutDigitsHaveNames) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(floatLiteral(kInfinity), "deft::kInfinity");
  EXPECT_EQ(floatLiteral(-kInfinity), "-deft::kInfinity");
  EXPECT_EQ(floatLiteral(std::numeric_limits<float>::quiet_NaN()), "__int_as_float(0x7fffffff)");
}

TEST(LiteralsTest, IntegersHaveTheSuffixOfTheirType) {
  EXPECT_EQ(intLiteral(-7, 32), "-7");
  EXPECT_EQ(intLiteral(-7, 64), "-7ll");
}

/// `-2147483648` is the negation of a number that no int holds.
TEST(LiteralsTest, TheLeastIntegersAreSums) {
  EXPECT_EQ(intLiteral(std::numeric_limits<int32_t>::min(), 32), "(-2147483647 - 1)");
  EXPECT_EQ(intLiteral(std::numeric_limits<int32_t>::min(), 64), "-2147483648ll");
  EXPECT_EQ(intLiteral(std::numeric_limits<int64_t>::min(), 64), "(-9223372036854775807ll - 1)");
}

TEST(LiteralsTest, ALineIsThatOfTheFirstPlaceFused) {
  mlir::MLIRContext context;
  auto at = [&](const char *file, unsigned line) -> mlir::Location {
    return mlir::FileLineColLoc::get(&context, file, line, 1);
  };
  const mlir::Location fused = mlir::FusedLoc::get(&context, {at("specs/a.deft", 3), at("b.deft", 9)});
  EXPECT_EQ(specLine(fused), (SpecLine{3, "a.deft"}));
  EXPECT_EQ(specLine(mlir::UnknownLoc::get(&context)), std::nullopt);
}

/// A file's name may be anything; in `#line N "NAME"` it must not end the string.
TEST(LiteralsTest, NamesOfFilesCannotEndAString) {
  mlir::MLIRContext context;
  EXPECT_EQ(specLine(mlir::FileLineColLoc::get(&context, "dir\"/my \"spec\\.deft", 1, 1))->file,
            "my__spec_.deft");
}

} // namespace
} // namespace deft::codegen::cuda
