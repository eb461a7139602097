#include "runtime/peers/Agreement.h"

#include <gtest/gtest.h>

namespace deft::peers {
namespace {

TEST(AgreementTest, TheFirstDifferenceIsNamed) {
  Agreement own, other;
  EXPECT_EQ(own.differenceFrom(other), nullptr);
  own.hashes[Agreement::Tree] = 3;
  EXPECT_STREQ(own.differenceFrom(other), "tree or layout");
  own.hashes[Agreement::Options] = 3;
  EXPECT_STREQ(own.differenceFrom(other), "config or options of its plan");
  own.hashes[Agreement::Attention] = 3;
  EXPECT_STREQ(own.differenceFrom(other), "attention");
  own.hashes[Agreement::Version] = 3;
  EXPECT_STREQ(own.differenceFrom(other), "version of the library");
}

TEST(AgreementTest, WhatTwoRanksClaimIsNamed) {
  EXPECT_EQ(claimedTwice("page", 2, {0, 2, 2}, 0, {0, 2, 0}), "page 2 is claimed by rank 0 and by rank 2");
  EXPECT_EQ(claimedTwice("page", 2, {0, 2, 1}, 0, {0, 2, 0}), "") << "nobody's, but not two ranks'";
  EXPECT_EQ(claimedTwice("node", 0, {0, 0}, 1, {0}), "");
}

TEST(AgreementTest, TextsHaveHashesThatAreNotNothing) {
  EXPECT_NE(hashOf(""), 0U);
  EXPECT_NE(hashOf("0.3.0"), hashOf("0.3.1"));
}

} // namespace
} // namespace deft::peers
