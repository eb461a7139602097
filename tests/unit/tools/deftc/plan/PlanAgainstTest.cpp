#include "tools/deftc/plan/PlanAgainst.h"

#include <gtest/gtest.h>

namespace deft::cli {
namespace {

PlanOptions someOptions(const std::vector<std::string> &against) {
  PlanOptions options;
  options.input = "llama3_8b";
  options.partition = "union";
  options.tree.workload = "few_shot";
  options.device.device = "h200";
  options.against = against;
  return options;
}

std::string errorOf(const std::string &against) {
  const auto second = againstOptions(someOptions({against}));
  return second ? "" : second.error().message + "\n" + second.error().hint;
}

TEST(PlanAgainstTest, WhatIsNotNamedStays) {
  const auto second = againstOptions(someOptions({"partition=node", "chunk=128"}));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->input, "llama3_8b");
  EXPECT_EQ(second->partition, "node");
  EXPECT_EQ(second->chunk, 128);
  EXPECT_EQ(second->tree.workload, "few_shot");
  EXPECT_EQ(second->device.device, "h200");
  EXPECT_TRUE(second->against.empty());
}

TEST(PlanAgainstTest, ATreeTakesTheWorkloadsPlaceAndAnArchitectureTheDevices) {
  const auto second = againstOptions(someOptions({"tree=a=b.json", "arch=sm_80"}));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->tree.tree, "a=b.json");
  EXPECT_EQ(second->tree.workload, "");
  EXPECT_EQ(second->arch, "sm_80");
  EXPECT_EQ(second->device.device, "");
  const auto third = againstOptions(*second);
  ASSERT_TRUE(third);
  PlanOptions of = *second;
  of.against = {"workload=few_shot:prompt=4000,branches=20", "backend=cpu"};
  const auto back = againstOptions(of);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->tree.workload, "few_shot:prompt=4000,branches=20");
  EXPECT_EQ(back->tree.tree, "");
  EXPECT_EQ(back->arch, "");
  EXPECT_EQ(back->device.backend, "cpu");
}

TEST(PlanAgainstTest, EveryNameIsTaken) {
  for (const std::string &name : againstNames()) {
    const std::string value = name == "partition" ? "node" : name == "backend" ? "cuda" : "7";
    EXPECT_EQ(errorOf(name + "=" + value), "") << name;
  }
}

TEST(PlanAgainstTest, WrongOnesAreNamed) {
  EXPECT_EQ(errorOf("node"), "--against `node` is not NAME=VALUE\nfor example --against partition=node");
  EXPECT_EQ(errorOf("chunk="), "--against `chunk=` is not NAME=VALUE\nfor example --against partition=node");
  EXPECT_EQ(errorOf("partitoin=node"), "--against cannot change `partitoin`\ndid you mean `partition`?");
  EXPECT_EQ(errorOf("colour=red"),
            "--against cannot change `colour`\nit takes partition, chunk, tree, workload, step, "
            "spec, variant, config, arch, device, backend, blocks");
  EXPECT_EQ(errorOf("chunk=many"),
            "--against `chunk=many` has a wrong value\nchunk is a whole number from 0 to 1073741824");
  EXPECT_EQ(errorOf("blocks=0"),
            "--against `blocks=0` has a wrong value\nblocks is a whole number from 1 to 1048576");
  EXPECT_EQ(errorOf("backend=tpu"), "--against `backend=tpu` has a wrong value\nbackend is cpu or cuda");
  EXPECT_EQ(errorOf("partition=nodes"),
            "--against `partition=nodes` has a wrong value\npartition is query or node or "
            "node_chunk or flatten or cascade or greedy or union or auto");
}

} // namespace
} // namespace deft::cli
