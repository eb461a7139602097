#include "compiler/spec/ForeignWords.h"

#include "compiler/spec/Names.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

TEST(ForeignWordsTest, NamesOfOtherLibrariesLeadToOurs) {
  for (const char *name : {"heads", "num_heads", "num_attention_heads"})
    EXPECT_EQ(suggest(name, attentionKeys()), "did you mean `query_heads`?") << name;
  EXPECT_EQ(suggest("num_key_value_heads", attentionKeys()), "did you mean `kv_heads`?");
  EXPECT_EQ(suggest("bfloat16", dtypeNames()), "did you mean `bf16`?");
  EXPECT_EQ(suggest("float16", dtypeNames()), "did you mean `f16`?");
}

TEST(ForeignWordsTest, OnlyCandidatesAreSuggestedAndElseTheNearest) {
  EXPECT_EQ(suggest("num_heads", {"tokens"}), "");
  EXPECT_EQ(suggest("hed_dim", attentionKeys()), "did you mean `head_dim`?");
  EXPECT_EQ(suggest("zzz", attentionKeys()), "");
}

TEST(ForeignWordsTest, OperatorsInWordsAreSigns) {
  EXPECT_EQ(hintForOperator("and"), "`and` is written `&&`");
  EXPECT_EQ(hintForOperator("or"), "`or` is written `||`");
  EXPECT_EQ(hintForOperator("not"), "`not` is written `!`");
  EXPECT_EQ(hintForOperator("xor"), "");
}

TEST(ForeignWordsTest, EightBitFloatsHaveManyNames) {
  for (const char *name : {"fp8", "float8_e4m3fn", "e5m2", "f8"})
    EXPECT_TRUE(isForeignFp8(name)) << name;
  EXPECT_FALSE(isForeignFp8("f16"));
}

} // namespace
} // namespace deft::spec
