#include "runtime/config_cache/TreeClass.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

constexpr TreeClass kSome{14, 6, 3, 2, 1};

TEST(TreeClassTest, TheTextIsCanonicalAndReadBack) {
  EXPECT_EQ(kSome.text(), "c1-t14-q6-s3-d2-f1");
  EXPECT_EQ(TreeClass::parse("c1-t14-q6-s3-d2-f1"), kSome);
  EXPECT_EQ(TreeClass().text(), "c1-t0-q0-s0-d0-f0");
  EXPECT_EQ(TreeClass::parse(TreeClass().text()), TreeClass());
}

TEST(TreeClassTest, NothingElseStandsForAClass) {
  for (const char *text :
       {"", "c1", "c2-t14-q6-s3-d2-f1", "c1-t14-q6-s3-d2", "c1-t14-q6-s3-d2-f1-", "c1-t14-q6-s3-d2-f1 ",
        "c1-t014-q6-s3-d2-f1", "c1-t-14-q6-s3-d2-f1", "c1-t+14-q6-s3-d2-f1", "c1-q6-t14-s3-d2-f1",
        "c1-t14-q6-s3-d2-f5", "c1-t63-q6-s3-d2-f1", "C1-t14-q6-s3-d2-f1", "c1-t14-q6-s3-d2-fx",
        "c1-t99999999999-q6-s3-d2-f1", "c11-t14-q6-s3-d2-f1"})
    EXPECT_EQ(TreeClass::parse(text), std::nullopt) << text;
}

TEST(TreeClassTest, EveryNumberCountsInDistanceAndNeighbourhood) {
  EXPECT_EQ(distance(kSome, kSome), 0);
  EXPECT_TRUE(areNeighbours(kSome, kSome));
  for (int TreeClass::*member : {&TreeClass::tokens, &TreeClass::queries, &TreeClass::sharing,
                                 &TreeClass::depth, &TreeClass::shorts}) {
    TreeClass other = kSome;
    other.*member += 1;
    EXPECT_GT(distance(kSome, other), 0) << other.text();
    EXPECT_EQ(distance(kSome, other), distance(other, kSome));
    EXPECT_TRUE(areNeighbours(kSome, other));
    EXPECT_NE(kSome.text(), other.text());
    other.*member += 1;
    EXPECT_FALSE(areNeighbours(other, kSome)) << other.text();
  }
}

TEST(TreeClassTest, ADescriptionSaysWhatIsInTheBucket) {
  EXPECT_EQ(describe(kSome),
            "about 16,384 tokens, 64 queries, a token seen by 8, 3 to 5 levels, a quarter in short nodes");
  EXPECT_EQ(describe({0, 0, 0, 0, 0}), "about 1 token, 1 query, a token seen by 1, 1 level, no short nodes");
  EXPECT_EQ(describe({10, 1, 0, 1, 4}),
            "about 1,024 tokens, 2 queries, a token seen by 1, 2 levels, short nodes only");
}

TEST(TreeClassTest, EveryClassHasAFamilyWithAName) {
  EXPECT_EQ(familyOf({16, 6, 0, 0, 0}), TreeFamily::NoSharing);
  EXPECT_EQ(familyOf({12, 4, 4, 1, 0}), TreeFamily::FewShot);
  EXPECT_EQ(familyOf({16, 7, 1, 1, 0}), TreeFamily::Forest);
  EXPECT_EQ(familyOf({12, 6, 6, 3, 0}), TreeFamily::Speculative);
  EXPECT_EQ(familyOf({12, 2, 2, 3, 0}), TreeFamily::Reasoning);
  EXPECT_EQ(familyOf({16, 7, 3, 2, 0}), TreeFamily::MultiLevelPrompt);
  EXPECT_EQ(familyOf({16, 6, 2, 2, 0}), TreeFamily::MultiDocument);
  EXPECT_EQ(familyName(TreeFamily::MultiLevelPrompt), "multi-level prompt");
  EXPECT_EQ(familyName(TreeFamily::NoSharing), "no sharing");
}

} // namespace
} // namespace deft::config_cache
