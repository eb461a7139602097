/// Rows with NaN and infinities are named, with what holds them.

#include "runtime/exec/FiniteCheck.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace deft::exec {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kDim = 16, kPrompt = 40;
constexpr std::uint16_t kNan = 0x7fc0, kInf = 0x7f80, kMinusInf = 0xff80; // in bf16

/// Two branches of 5 and of 7 tokens below a prompt, a query on each; the second one's is the first in the
/// plan's order.
class FiniteCheckTest : public testing::Test {
protected:
  FiniteCheckTest() : build_(kHeads, kKvHeads, kDim) {
    build_.variant.withLse = true;
    const int prompt = *tree_.addNode(-1, kPrompt);
    const int first = *tree_.addNode(prompt, 5), second = *tree_.addNode(prompt, 7);
    EXPECT_TRUE(tree_.addQuery(second) && tree_.addQuery(first));
    const auto placement = tree::placeInCache(
        tree_, {.pageSize = variant().cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = 3});
    EXPECT_TRUE(placement);
    inputs_ = makeRandomInputs(variant(), tree_, *placement, {}, 3);
    out_.resize(2 * kHeads * kDim);
    lse_.resize(2 * kHeads);
  }

  const spec::Variant &variant() const { return build_.variant; }
  /// The element of K or V of a node's token for a KV head.
  std::uint16_t &keyOf(int node, int token, int kvHead) {
    const int location = tree_.nodes()[static_cast<std::size_t>(node)].location + token;
    return inputs_.k[static_cast<std::size_t>(inputs_.keyAt(location, variant().cache.pageSize, kvHead))];
  }
  std::uint16_t &valueOf(int node, int token, int kvHead) {
    const int location = tree_.nodes()[static_cast<std::size_t>(node)].location + token;
    return inputs_.v[static_cast<std::size_t>(inputs_.valueAt(location, variant().cache.pageSize, kvHead))];
  }

  /// The error's message, empty where all is finite.
  std::string found(const plan::Reach &reach = {}) {
    config::Config config;
    config.chunkTokens = 16;
    config.phases.push_back({.name = "all", .tileQ = 16});
    const auto plan = plan::makePlan(tree_, plan::VariantFacts::of(variant()), config, 4);
    EXPECT_TRUE(plan);
    const auto params = inputs_.paramSlots(variant());
    const auto error = findNotFinite(variant(), *plan, reach, InputView::of(inputs_, variant(), params),
                                     {out_.data(), lse_.data()});
    return error ? error->message : "";
  }

  test::VariantBuilder build_;
  tree::KvTree tree_;
  Inputs inputs_;
  std::vector<std::uint16_t> out_;
  std::vector<float> lse_;
};

TEST_F(FiniteCheckTest, WhatIsFiniteIsNoError) {
  EXPECT_EQ(found(), "");
  lse_[3] = -std::numeric_limits<float>::infinity(); // a row that sees nothing
  EXPECT_EQ(found(), "");
}

TEST_F(FiniteCheckTest, TheFirstRowOfTheCallersOrderIsNamed) {
  inputs_.q[(1 * kHeads + 0) * kDim + 2] = kInf;
  EXPECT_EQ(found(), "query 1, head 0: q is inf at element 2");
  inputs_.q[(0 * kHeads + 3) * kDim + 5] = kNan;
  EXPECT_EQ(found(), "query 0, head 3: q is NaN at element 5");
}

TEST_F(FiniteCheckTest, OfARowTheCauseIsNamedBeforeWhatItDid) {
  out_[(0 * kHeads + 3) * kDim + 1] = kNan;
  EXPECT_EQ(found(), "query 0, head 3: out is NaN at element 1, and q, K and V are finite");
  lse_[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(found(), "query 0, head 3: lse is NaN, and q, K and V are finite");
  inputs_.q[(0 * kHeads + 3) * kDim + 5] = kMinusInf;
  EXPECT_EQ(found(), "query 0, head 3: q is -inf at element 5");
}

TEST_F(FiniteCheckTest, KeysAndValuesAreThoseOfTheFirstRowThatReadsThem) {
  keyOf(1, 4, 1) = kNan; // of the branch of query 1 alone; heads 2 and 3 read it
  const std::string place = ", location " + std::to_string(tree_.nodes()[1].location + 4);
  EXPECT_EQ(found(), "query 1, head 2: K is NaN at element 0 of the token at kv_pos 44 of its path" + place);
  valueOf(0, 20, 0) = kInf; // of both
  EXPECT_EQ(found(), "query 0, head 0: V is inf at element 0 of the token at kv_pos 20 of its path, "
                     "location " +
                         std::to_string(tree_.nodes()[0].location + 20));
}

TEST_F(FiniteCheckTest, WhatTheMaskHidesIsNotLookedAt) {
  keyOf(0, 20, 0) = kNan;
  spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 19
  window.at.qPos = 1;
  window.at.rest.constant = -19;
  EXPECT_NE(found(), "");
  EXPECT_EQ(found(plan::Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {})), "");
}

TEST_F(FiniteCheckTest, APageThatIsNotThereIsNotLookedAt) {
  keyOf(0, 0, 0) = kNan;
  inputs_.pageTable[static_cast<std::size_t>(tree_.nodes()[0].location / variant().cache.pageSize)] = -1;
  EXPECT_EQ(found(), "");
}

TEST_F(FiniteCheckTest, NaNOfBytesIsFound) {
  build_.variant.tensors.k.dtype = build_.variant.tensors.v.dtype = spec::DType::F8E4M3;
  const auto placement = tree::placeInCache(tree_, {.pageSize = variant().cache.pageSize});
  inputs_ = makeRandomInputs(variant(), tree_, *placement, {}, 3);
  EXPECT_EQ(found(), "");
  const long long at = inputs_.keyAt(tree_.nodes()[0].location + 3, variant().cache.pageSize, 0) + 7;
  setBitsAt(inputs_.k.data(), at, spec::DType::F8E4M3, 0x7f);
  EXPECT_EQ(found(), "query 0, head 0: K is NaN at element 7 of the token at kv_pos 3 of its path, "
                     "location " +
                         std::to_string(tree_.nodes()[0].location + 3));
}

} // namespace
} // namespace deft::exec
