/// Intervals of known numbers, which fold away, against every number that is in them.

#include "compiler/transforms/Interval.h"

#include "compiler/transforms/Import.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <functional>
#include <random>

namespace deft::transforms {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class IntervalTest : public testing::Test {
protected:
  IntervalTest() { loadDialects(context_); }

  std::int64_t intOf(mlir::Value value) const {
    mlir::APInt constant;
    EXPECT_TRUE(mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
        << "of known numbers nothing is left";
    return constant.getBitWidth() == 1 ? constant.getZExtValue() : constant.getSExtValue();
  }
  bool isTrue(mlir::Value value) const { return intOf(value) != 0; }
  float floatOf(mlir::Value value) const {
    mlir::FloatAttr constant;
    EXPECT_TRUE(mlir::matchPattern(value, mlir::m_Constant(&constant))) << "of known numbers nothing is left";
    return constant ? constant.getValue().convertToFloat() : 0;
  }

  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_ = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
  mlir::OpBuilder builder_ = mlir::OpBuilder::atBlockEnd(module_->getBody());
  IntervalBuilder intervals_{builder_, mlir::UnknownLoc::get(&context_)};
  std::mt19937 random_{11};
};

/// The numbers from `lo` to `hi`, of which static bounds know all or nothing.
struct Numbers {
  std::int64_t lo, hi;
  bool areKnown;
};

std::int32_t wrapped(std::int64_t value) { return static_cast<std::int32_t>(value); }

class IntIntervalTest : public IntervalTest {
protected:
  Numbers some() {
    constexpr std::array<std::int64_t, 7> kNear{INT_MIN, INT_MIN + 3, -40, 0, 2, 1000, INT_MAX - 3};
    const std::int64_t lo = kNear[random_() % kNear.size()] + static_cast<int>(random_() % 4);
    return {lo, std::min<std::int64_t>(lo + random_() % 4, INT_MAX), random_() % 2 == 0};
  }
  IntInterval of(const Numbers &numbers) {
    IntInterval interval{intervals_.constantInt(numbers.lo), intervals_.constantInt(numbers.hi)};
    if (numbers.areKnown) {
      interval.min = numbers.lo;
      interval.max = numbers.hi;
    }
    return interval;
  }
  void expectHolds(const IntInterval &interval, std::int32_t value, const std::string &what) {
    EXPECT_LE(intOf(interval.lo), value) << what;
    EXPECT_GE(intOf(interval.hi), value) << what;
    EXPECT_LE(interval.min, value) << what;
    EXPECT_GE(interval.max, value) << what;
  }
  /// Of all pairs of numbers.
  void expectSound(const char *name,
                   const std::function<IntInterval(const IntInterval &, const IntInterval &)> &make,
                   const std::function<std::int32_t(std::int64_t, std::int64_t)> &compute) {
    for (int turn = 0; turn < 150 && !HasFailure(); ++turn) {
      const Numbers a = some(), b = some();
      const IntInterval result = make(of(a), of(b));
      for (std::int64_t x = a.lo; x <= a.hi; ++x)
        for (std::int64_t y = b.lo; y <= b.hi; ++y)
          expectHolds(result, compute(x, y),
                      std::string(name) + " of " + std::to_string(x) + " and " + std::to_string(y));
    }
  }
};

TEST_F(IntIntervalTest, ResultsOfAllNumbersAreInside) {
  auto &i = intervals_;
  using I = const IntInterval &;
  using N = std::int64_t;
  expectSound("add", [&](I a, I b) { return i.add(a, b); }, [](N x, N y) { return wrapped(x + y); });
  expectSound(
      "subtract", [&](I a, I b) { return i.subtract(a, b); }, [](N x, N y) { return wrapped(x - y); });
  expectSound(
      "multiply", [&](I a, I b) { return i.multiply(a, b); }, [](N x, N y) { return wrapped(x * y); });
  expectSound(
      "remainder", [&](I a, I b) { return i.remainder(a, b); },
      [](N x, N y) { return y == 0 ? 0 : wrapped(x % y); });
  expectSound(
      "minimum", [&](I a, I b) { return i.minimum(a, b); }, [](N x, N y) { return wrapped(std::min(x, y)); });
  expectSound(
      "maximum", [&](I a, I b) { return i.maximum(a, b); }, [](N x, N y) { return wrapped(std::max(x, y)); });
  expectSound("absolute", [&](I a, I) { return i.absolute(a); }, [](N x, N) { return wrapped(std::abs(x)); });
  expectSound("join", [&](I a, I b) { return i.join(a, b); }, [](N x, N) { return wrapped(x); });
  expectSound("join", [&](I a, I b) { return i.join(a, b); }, [](N, N y) { return wrapped(y); });
  for (const int divisor : {1, 3, 16, INT_MAX}) {
    const auto floored = [&](N x) { return wrapped(x / divisor - (x % divisor < 0)); };
    expectSound(
        "floorDivide", [&](I a, I) { return i.floorDivide(a, i.integer(divisor)); },
        [&](N x, N) { return floored(x); });
    expectSound(
        "roundToMultiple", [&](I a, I) { return i.roundToMultiple(a, divisor); },
        [&](N x, N) { return wrapped(x / divisor * divisor); });
  }
}

/// Of numbers that are apart from each other nothing better can be said.
TEST_F(IntIntervalTest, ComparisonsAreExact) {
  for (int turn = 0; turn < 300; ++turn) {
    const Numbers a = some(), b = some();
    bool anyLess = false, allLess = true, anyEqual = false, allEqual = true;
    for (std::int64_t x = a.lo; x <= a.hi; ++x)
      for (std::int64_t y = b.lo; y <= b.hi; ++y) {
        anyLess |= x < y;
        allLess &= x < y;
        anyEqual |= x == y;
        allEqual &= x == y;
      }
    const BoolInterval less = intervals_.less(of(a), of(b)), equal = intervals_.equal(of(a), of(b));
    EXPECT_EQ(isTrue(less.any), anyLess);
    EXPECT_EQ(isTrue(less.all), allLess);
    EXPECT_EQ(isTrue(equal.any), anyEqual);
    EXPECT_EQ(isTrue(equal.all), allEqual);
  }
}

TEST_F(IntIntervalTest, ADivisorThatIsNotOnePositiveNumberSaysNothing) {
  for (const IntInterval &divisor : {intervals_.integer(0), intervals_.integer(-3), of({2, 3, true})}) {
    const IntInterval result = intervals_.floorDivide(of({5, 9, true}), divisor);
    EXPECT_EQ(intOf(result.lo), INT_MIN);
    EXPECT_EQ(intOf(result.hi), INT_MAX);
  }
}

/// Truth values as sets: {false}, {true} or both.
TEST_F(IntervalTest, TruthIsThatOfAllInTheSets) {
  const auto of = [&](int set) {
    return BoolInterval{intervals_.constantBool(set != 0), intervals_.constantBool(set == 1)};
  };
  const auto has = [](int set, bool value) { return set == 2 || (set == 1) == value; };
  const auto check = [&](BoolInterval got, const std::function<bool(bool, bool, bool)> &compute, int a, int b,
                         int c) {
    bool any = false, all = true;
    for (int bits = 0; bits < 8; ++bits) {
      const bool x = bits & 1, y = bits & 2, z = bits & 4;
      if (!has(a, x) || !has(b, y) || !has(c, z))
        continue;
      any |= compute(x, y, z);
      all &= compute(x, y, z);
    }
    EXPECT_TRUE(isTrue(got.any) || !any) << a << b << c;
    EXPECT_TRUE(!isTrue(got.all) || all) << a << b << c;
    if (a != 2 && b != 2 && c != 2) {
      EXPECT_EQ(isTrue(got.any), any) << "of known ones all is known";
      EXPECT_EQ(isTrue(got.all), all);
    }
  };
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      check(intervals_.logicalAnd(of(a), of(b)), [](bool x, bool y, bool) { return x && y; }, a, b, 0);
      check(intervals_.logicalOr(of(a), of(b)), [](bool x, bool y, bool) { return x || y; }, a, b, 0);
      check(intervals_.logicalXor(of(a), of(b)), [](bool x, bool y, bool) { return x != y; }, a, b, 0);
      check(intervals_.logicalNot(of(a)), [](bool x, bool, bool) { return !x; }, a, 0, 0);
      for (int c = 0; c < 3; ++c)
        check(
            intervals_.select(of(a), of(b), of(c)), [](bool x, bool y, bool z) { return x ? y : z; }, a, b,
            c);
    }
}

class FloatIntervalTest : public IntervalTest {
protected:
  std::vector<float> some() {
    constexpr std::array kAll{-kInf, -3e38F, -2.5F, -1.0F, -0.0F, 0.0F, 0.1F, 1.0F, 7.0F, 3e38F, kInf, NAN};
    std::vector<float> values(1 + random_() % 3);
    for (float &value : values)
      value = kAll[random_() % kAll.size()];
    return values;
  }
  FloatInterval of(const std::vector<float> &values, bool areKnown) {
    float lo = kInf, hi = -kInf;
    bool hasNan = false;
    for (const float value : values) {
      hasNan |= std::isnan(value);
      lo = std::fmin(lo, value);
      hi = std::fmax(hi, value);
    }
    if (lo > hi)
      lo = hi = 0; // NaN alone
    FloatInterval interval{intervals_.constantFloat(lo), intervals_.constantFloat(hi), {}};
    if (hasNan)
      interval.nan = intervals_.constantBool(true);
    if (areKnown) {
      interval.min = lo;
      interval.max = hi;
    }
    return interval;
  }
  void expectSound(const char *name,
                   const std::function<FloatInterval(const FloatInterval &, const FloatInterval &)> &make,
                   const std::function<float(float, float)> &compute) {
    for (int turn = 0; turn < 300 && !HasFailure(); ++turn) {
      const std::vector<float> a = some(), b = some();
      const FloatInterval result = make(of(a, turn % 2 == 0), of(b, turn % 3 == 0));
      for (const float x : a)
        for (const float y : b) {
          const std::string what =
              std::string(name) + " of " + std::to_string(x) + " and " + std::to_string(y);
          const float value = compute(x, y);
          if (std::isnan(value)) {
            EXPECT_TRUE(result.nan && isTrue(result.nan)) << what;
            continue;
          }
          EXPECT_LE(floatOf(result.lo), value) << what;
          EXPECT_GE(floatOf(result.hi), value) << what;
          EXPECT_LE(result.min, value) << what;
          EXPECT_GE(result.max, value) << what;
        }
    }
  }
};

TEST_F(FloatIntervalTest, ResultsOfAllNumbersAreInsideAndNansAreToldOf) {
  auto &i = intervals_;
  using F = const FloatInterval &;
  expectSound("add", [&](F a, F b) { return i.add(a, b); }, [](float x, float y) { return x + y; });
  expectSound("subtract", [&](F a, F b) { return i.subtract(a, b); }, [](float x, float y) { return x - y; });
  expectSound("multiply", [&](F a, F b) { return i.multiply(a, b); }, [](float x, float y) { return x * y; });
  expectSound("divide", [&](F a, F b) { return i.divide(a, b); }, [](float x, float y) { return x / y; });
  expectSound(
      "minimum", [&](F a, F b) { return i.minimum(a, b); }, [](float x, float y) { return std::fmin(x, y); });
  expectSound(
      "maximum", [&](F a, F b) { return i.maximum(a, b); }, [](float x, float y) { return std::fmax(x, y); });
  expectSound("negate", [&](F a, F) { return i.negate(a); }, [](float x, float) { return -x; });
  expectSound("absolute", [&](F a, F) { return i.absolute(a); }, [](float x, float) { return std::fabs(x); });
  expectSound("floor", [&](F a, F) { return i.floor(a); }, [](float x, float) { return std::floor(x); });
  expectSound("join", [&](F a, F b) { return i.join(a, b); }, [](float x, float) { return x; });
  expectSound("join", [&](F a, F b) { return i.join(a, b); }, [](float, float y) { return y; });
}

TEST_F(FloatIntervalTest, ComparisonsHoldForAllPairs) {
  for (int turn = 0; turn < 400 && !HasFailure(); ++turn) {
    const std::vector<float> a = some(), b = some();
    const FloatInterval x = of(a, turn % 2 == 0), y = of(b, turn % 3 == 0);
    const auto check = [&](BoolInterval got, const std::function<bool(float, float)> &compare) {
      for (const float p : a)
        for (const float q : b) {
          EXPECT_TRUE(isTrue(got.any) || !compare(p, q)) << p << " and " << q;
          EXPECT_TRUE(!isTrue(got.all) || compare(p, q)) << p << " and " << q;
        }
    };
    check(intervals_.orderedLess(x, y, false), [](float p, float q) { return p < q; });
    check(intervals_.orderedLess(x, y, true), [](float p, float q) { return p <= q; });
    check(intervals_.orderedEqual(x, y), [](float p, float q) { return p == q; });
    check(intervals_.unordered(x, y), [](float p, float q) { return std::isnan(p) || std::isnan(q); });
    check(intervals_.orUnordered(intervals_.orderedLess(x, y, false), x, y),
          [](float p, float q) { return !(p >= q); });
  }
}

} // namespace
} // namespace deft::transforms
