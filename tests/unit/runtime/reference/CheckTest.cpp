#include "runtime/reference/Check.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Oracle.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace deft::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(CheckTest, RelativeErrorIsAnL2Distance) {
  EXPECT_DOUBLE_EQ(relativeError({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relativeError({3, 4}, {3, 5}), 0.2);
  EXPECT_EQ(relativeError({3, 4}, {3, std::nan("")}), kInfinity);
}

TEST(CheckTest, ARowOfNormZeroMustBeExactlyZero) {
  EXPECT_EQ(relativeError({0, 0}, {0, -0.0}), 0);
  EXPECT_EQ(relativeError({0, 0}, {0, 1e-30}), kInfinity);
  EXPECT_EQ(relativeError({0, 0}, {0, std::nan("")}), kInfinity);
}

TEST(CheckTest, LseOfMinusInfinityMatchesOnlyItself) {
  EXPECT_EQ(lseDistance(-kInfinity, -kInfinity), 0);
  EXPECT_EQ(lseDistance(-kInfinity, -1e30), kInfinity);
  EXPECT_EQ(lseDistance(2, -kInfinity), kInfinity);
  EXPECT_EQ(lseDistance(2, std::nan("")), kInfinity);
  EXPECT_DOUBLE_EQ(lseDistance(2, 2.5), 0.5);
}

TEST(CheckTest, LseIsHeldToTheAllowanceOfItsRow) {
  CheckReport report;
  report.lseError = 0.002;
  EXPECT_FALSE(report.passed());
  report.lseAllowed = 0.003;
  EXPECT_TRUE(report.passed());
  report.lseError = std::nan("");
  EXPECT_FALSE(report.passed());
}

/// A run whose outputs are the oracle's, rounded to the output dtype: the best any backend can do.
class CheckRunTest : public ::testing::Test {
protected:
  CheckRunTest() : build_(4, 2, 16), tree_(test::levelTree({1, 3, 6}, {40, 20, 5})) {
    build_.variant.withLse = true;
    build_.variant.scale = 0.25;
    placement_ = *tree::placeInCache(tree_, {});
    inputs_ = exec::makeRandomInputs(build_.variant, tree_, placement_, {}, 3);
    fillOutputs();
  }
  void fillOutputs() {
    outputs_ = {};
    for (int query = 0; query < inputs_.queryCount; ++query)
      for (int kvHead = 0; kvHead < 2; ++kvHead)
        for (const Row &row :
             evaluateGroup(build_.variant, tree_, inputs_, query, kvHead, Precision::Exact)) {
          for (double value : row.out)
            outputs_.out.push_back(
                exec::fromFloat(static_cast<float>(value), build_.variant.tensors.out.dtype));
          outputs_.lse.push_back(static_cast<float>(row.lse));
        }
  }
  CheckReport run(CheckOptions options = {}) {
    return check(build_.variant, tree_, inputs_, outputs_, options);
  }

  test::VariantBuilder build_;
  tree::KvTree tree_;
  tree::CachePlacement placement_;
  exec::Inputs inputs_;
  exec::Outputs outputs_;
};

TEST_F(CheckRunTest, ARightResultPasses) {
  const CheckReport report = run();
  EXPECT_TRUE(report.passed());
  EXPECT_GT(report.plainError, report.error); // one rounding against many
  EXPECT_LT(report.error, 4e-3);
  EXPECT_LT(report.lseError, 1e-5);
  EXPECT_EQ(report.queriesChecked, 6);
  EXPECT_EQ(explainFailure(report), "");
}

TEST_F(CheckRunTest, WhatTheSpecItselfLeavesUndefinedIsSaid) {
  build_.variant.score = build_.op(spec::ExprOp::Div, spec::ScalarType::F32,
                                   {build_.read(spec::Builtin::S), build_.constant(0)});
  const CheckReport report = run();
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.rows, 24);
  EXPECT_EQ(report.undefinedRows, 24) << "a score of inf somewhere in each";
  EXPECT_EQ(explainFailure(report), "query 0, head 0: the spec itself gives NaN or an infinity, which leaves "
                                    "nothing to compare, in 24 of 24 rows");
}

TEST_F(CheckRunTest, WhatIsNotFiniteInARunIsTheReasonThatIsGiven) {
  inputs_.q[(3 * 4 + 2) * 16] = 0x7fc0;
  CheckReport report = run();
  EXPECT_EQ(report.undefinedRows, 1);
  EXPECT_EQ(std::pair(report.undefinedQuery, report.undefinedHead), std::pair(3, 2));
  report.notFinite = "query 3, head 2: q is NaN at element 0";
  EXPECT_EQ(explainFailure(report), report.notFinite);
}

TEST_F(CheckRunTest, RowsThatSeeNothingAreCounted) {
  EXPECT_EQ(run().blindRows, 0);
  build_.variant.mask = build_.op(spec::ExprOp::Gt, spec::ScalarType::Bool,
                                  {build_.read(spec::Builtin::KvPos), build_.read(spec::Builtin::QPos)});
  fillOutputs();
  const CheckReport report = run();
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.blindRows, 24);
}

TEST_F(CheckRunTest, OneWrongRowFailsAndIsNamed) {
  outputs_.out[(4 * 4 + 1) * 16 + 3] ^= 0x100; // query 4, head 1: an exponent bit
  const CheckReport report = run();
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.worstQuery, 4);
  EXPECT_EQ(report.worstHead, 1);
  EXPECT_TRUE(explainFailure(report).starts_with("query 4, head 1: relative error "));
}

TEST_F(CheckRunTest, EachRowIsHeldToItsOwnBound) {
  // Scores that are large in one head: rounding them breaks its plain evaluation more than others'.
  for (int query = 0; query < inputs_.queryCount; ++query)
    for (int d = 0; d < 16; ++d) {
      std::uint16_t &q = inputs_.q[static_cast<std::size_t>(query * 4 * 16 + d)]; // head 0
      q = exec::bf16FromFloat(16 * exec::floatFromBf16(q));
    }
  fillOutputs();
  ASSERT_TRUE(run().passed());
  const auto boundOf = [&](int head) {
    return boundGroup(build_.variant, tree_, inputs_, 2, head / 2)[static_cast<std::size_t>(head % 2)]
        .allowed;
  };
  ASSERT_GT(boundOf(0), 2 * boundOf(3));
  // Off by half as much again as is allowed of head 3, which is less than head 0 may be.
  for (int d = 0; d < 16; ++d) {
    std::uint16_t &out = outputs_.out[static_cast<std::size_t>((2 * 4 + 3) * 16 + d)];
    out = exec::bf16FromFloat(static_cast<float>(1 + 1.5 * boundOf(3)) * exec::floatFromBf16(out));
  }
  const CheckReport report = run();
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.worstQuery, 2);
  EXPECT_EQ(report.worstHead, 3);
  EXPECT_LT(report.error, boundOf(0));
}

TEST_F(CheckRunTest, WhatRoundingBreaksIsHeldToF32) {
  build_.variant.tensors = spec::Tensors::alike(build_.variant.tensors.k.dim, spec::DType::F16);
  build_.variant.withLse = false; // as large as scores here, an lse of f32 is off by more than is allowed
  inputs_ = exec::makeRandomInputs(build_.variant, tree_, placement_, {}, 3);
  for (std::uint16_t &q : inputs_.q) // products beyond f16, whose largest number is 65,504
    q = exec::f16FromFloat(10'000 * exec::floatFromF16(q));
  fillOutputs();
  const auto rows = boundGroup(build_.variant, tree_, inputs_, 0, 0);
  EXPECT_EQ(relativeError(rows[0].exact.out,
                          evaluateGroup(build_.variant, tree_, inputs_, 0, 0, Precision::Plain)[0].out),
            kInfinity);
  EXPECT_GT(rows[0].allowed, 0);
  EXPECT_LT(rows[0].allowed, 0.1);
  EXPECT_TRUE(run().passed());
}

TEST_F(CheckRunTest, AFaultOfCountingInputsFails) {
  CheckReport report = run();
  report.count.emplace();
  EXPECT_TRUE(report.passed());
  report.count->wrongRows = 1;
  report.count->fault = "query 3, head 2: nothing";
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(explainFailure(report), "counting inputs: query 3, head 2: nothing");
}

TEST_F(CheckRunTest, AnUnwrittenOutputFails) {
  outputs_.out[5] = 0xffff; // NaN
  EXPECT_FALSE(run().passed());
}

TEST_F(CheckRunTest, AnLseThatIsOffFails) {
  outputs_.lse[7] += 2e-3f;
  const CheckReport report = run();
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.worstLseQuery, 1);
  EXPECT_EQ(report.worstLseHead, 3);
}

TEST_F(CheckRunTest, TokensOfAnotherPathFail) {
  // Rows of two leaves exchanged: what a wrong query permutation gives.
  std::swap_ranges(outputs_.out.begin(), outputs_.out.begin() + 64, outputs_.out.begin() + 64);
  EXPECT_FALSE(run().passed());
}

TEST_F(CheckRunTest, ThreadsDoNotChangeTheReport) {
  outputs_.out[70] ^= 0x100;
  CheckOptions options;
  options.threads = 3;
  const CheckReport one = run(), three = run(options);
  EXPECT_EQ(one.error, three.error);
  EXPECT_EQ(one.plainError, three.plainError);
  EXPECT_EQ(one.worstQuery, three.worstQuery);
  EXPECT_EQ(one.worstHead, three.worstHead);
}

TEST_F(CheckRunTest, ABoundChecksTheFirstAndTheLastQuery) {
  CheckOptions options;
  options.mostRowTokens = 1;
  EXPECT_EQ(run(options).queriesChecked, 2);
  outputs_.out.back() ^= 0x100;
  EXPECT_FALSE(run(options).passed());
}

TEST_F(CheckRunTest, AfterTheDeadlineOneQueryIsCheckedAndCounted) {
  CheckOptions options;
  options.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const CheckReport report = run(options);
  EXPECT_EQ(report.queriesChecked, 1);
  EXPECT_EQ(report.worstQuery, 0);
  options.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  EXPECT_EQ(run(options).queriesChecked, report.queries);
}

} // namespace
} // namespace deft::reference
