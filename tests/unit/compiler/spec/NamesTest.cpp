#include "compiler/spec/Names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace deft::spec {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(NamesTest, EveryNameIsReadBack) {
  for (const std::string &name : dtypeNames())
    EXPECT_STREQ(toString(parseDType(name).value()), name.c_str());
  for (const std::string &name : partitionNames())
    EXPECT_STREQ(toString(parsePartition(name).value()), name.c_str());
  for (const std::string &name : builtinNames())
    EXPECT_STREQ(toString(parseBuiltin(name).value()), name.c_str());
  for (const std::string &name : functionNames())
    EXPECT_STREQ(toString(parseFunction(name).value()), name.c_str());
}

TEST(NamesTest, PartitionsAreNamedInTheirOrder) {
  EXPECT_THAT(partitionNames(),
              ElementsAre("query", "node", "node_chunk", "flatten", "cascade", "greedy", "union", "auto"));
  EXPECT_EQ(parsePartition("node_chunk"), Partition::NodeChunk);
}

TEST(NamesTest, OtherWordsAreNone) {
  EXPECT_EQ(parseDType("f32"), std::nullopt); // a type of parameters
  EXPECT_EQ(parsePartition("Union"), std::nullopt);
  EXPECT_EQ(parsePartition(""), std::nullopt);
  EXPECT_EQ(parseShape("per_query_head"), std::nullopt); // the IR's word
  EXPECT_EQ(parseShape("query_heads"), Param::Shape::PerQueryHead);
}

TEST(NamesTest, OperatorsHaveWordsButAreNoFunctions) {
  EXPECT_EQ(parseExprOp("add"), ExprOp::Add);
  EXPECT_EQ(parseFunction("add"), std::nullopt);
  EXPECT_EQ(parseFunction("tanh"), ExprOp::Tanh);
  EXPECT_THAT(functionNames(), Not(Contains("constant")));
}

TEST(NamesTest, OperationsKnowTheirOperands) {
  EXPECT_EQ(operationOf(ExprOp::Constant).operands, 0);
  EXPECT_EQ(operationOf(ExprOp::Neg).operands, 1);
  EXPECT_EQ(operationOf(ExprOp::Max).operands, 2);
  EXPECT_EQ(operationOf(ExprOp::Select).operands, 3);
}

TEST(NamesTest, WhatTheLanguageSpeaksCannotBeDeclared) {
  for (const char *word : {"attention", "tune", "f32", "query_heads", "kv_pos", "rsqrt"})
    EXPECT_TRUE(isReservedWord(word)) << word;
  for (const char *word : {"union", "cap", "constant", "", "value", "key_dim", "value_dim", "latent"})
    EXPECT_FALSE(isReservedWord(word)) << word;
}

} // namespace
} // namespace deft::spec
