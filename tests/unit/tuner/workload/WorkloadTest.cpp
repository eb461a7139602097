#include "tuner/workload/Workload.h"

#include "runtime/tree/SequenceTree.h"
#include "runtime/tree/TreeFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::workload {
namespace {

using tree::formatTree;

/// Every generated workload with its defaults, and a small one of each with few steps.
const char *const kSmall[] = {
    "few_shot:prompt=40,branches=3,iterations=9",
    "levels:nodes=1,2,6,tokens=20,0,5,steps=6",
    "system_prompts:tokens=20,3,7,variants=1,3,2,requests=11,question=4,output=9,shortest=2",
    "multi_few_shot:system=9,combinations=3,shots=2,shot=8,questions=4,question=3,output=6",
    "multi_document:documents=5,tokens=10,each=2,requests=9,question=3,output=7,shortest=3",
    "grpo:prompts=3,prompt=20,group=4,output=12,shortest=2",
    "no_sharing:requests=5,tokens=20,shortest=3,steps=5",
    "beam_search:prompt=20,beams=5,churn=30,steps=60",
    "reasoning:prompt=30,depth=3,width=4,thought=6,prune=1",
    "multi_chain:system=20,questions=4,question=5,chains=3,chain=8,answer=5",
    "token_tree:prompt=30,tokens=17,steps=20",
    "ragged:shared=20,decodes=3,context=9,prefills=2,before=4,chunk=11,steps=5",
    "random_forest:nodes=20,tokens=9,queries=15,edits=2,steps=60",
    "token_tree:prompt=30,tokens=17,shape=random,steps=20",
    "mixture:parts=few_shot+beam_search+token_tree,few_shot.prompt=30,few_shot.iterations=9,"
    "beam_search.steps=20,token_tree.steps=12,token_tree.tokens=9",
};

Workload mustMake(const std::string &name, std::uint64_t seed = 7) {
  auto workload = make(name, seed);
  EXPECT_TRUE(workload) << name << ": " << workload.error().message;
  return std::move(*workload);
}

TEST(WorkloadTest, EveryGeneratorIsListedAndMakesATreeByDefault) {
  const auto all = list();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 14u);
  for (const Description &description : *all) {
    SCOPED_TRACE(description.name);
    EXPECT_FALSE(description.line.empty());
    EXPECT_EQ(description.parameters.back().name, "step");
    Workload workload = mustMake(description.name);
    EXPECT_EQ(workload.step(), 1);
    EXPECT_GT(workload.steps(), 100);
    EXPECT_GT(workload.tree().queries().size(), 0u);
    EXPECT_TRUE(*workload.next());
  }
}

TEST(WorkloadTest, TheDefaultsAreValuesThatCanBeGiven) {
  const auto all = list();
  ASSERT_TRUE(all);
  for (const Description &description : *all) {
    std::string name = description.name + ":";
    for (const Parameter &parameter : description.parameters)
      if (!parameter.defaultValue.empty())
        name += (name.back() == ':' ? "" : ",") + parameter.name + "=" + parameter.defaultValue;
    Workload given = mustMake(name);
    EXPECT_EQ(formatTree(given.tree()), formatTree(mustMake(description.name).tree())) << name;
  }
}

TEST(WorkloadTest, TheSameSeedMakesTheSameSteps) {
  for (const char *name : kSmall) {
    SCOPED_TRACE(name);
    Workload one = mustMake(name), same = mustMake(name);
    for (bool more = true; more;) {
      EXPECT_EQ(formatTree(one.tree()), formatTree(same.tree())) << "step " << one.step();
      more = *one.next();
      EXPECT_EQ(*same.next(), more);
    }
    EXPECT_EQ(one.step(), one.steps());
  }
}

TEST(WorkloadTest, AnotherSeedMakesAnotherTreeWhereAnythingIsDrawn) {
  for (const char *name :
       {"multi_document", "grpo", "beam_search:step=50", "token_tree:shape=random", "multi_chain:step=300",
        "mixture:step=50", "system_prompts", "reasoning:step=3000"})
    EXPECT_NE(formatTree(mustMake(name, 1).tree()), formatTree(mustMake(name, 2).tree())) << name;
}

TEST(WorkloadTest, SeekGivesWhatGoingStepByStepGives) {
  for (const char *name : kSmall) {
    SCOPED_TRACE(name);
    Workload steps = mustMake(name), jumps = mustMake(name);
    std::vector<std::string> trees;
    std::vector<std::vector<tree::TreeEdit>> edits;
    do {
      trees.push_back(formatTree(steps.tree()));
      edits.push_back(steps.edits());
    } while (*steps.next());
    const int last = steps.steps();
    for (int step : {last, 1, (last + 1) / 2, last, 2, 2, 1}) {
      ASSERT_TRUE(jumps.seek(step));
      EXPECT_EQ(jumps.step(), step);
      EXPECT_EQ(formatTree(jumps.tree()), trees[step - 1]) << "step " << step;
      EXPECT_EQ(jumps.edits(), edits[step - 1]) << "step " << step;
    }
    EXPECT_FALSE(jumps.seek(0));
    EXPECT_FALSE(jumps.seek(last + 1));
  }
}

TEST(WorkloadTest, TheEditsMakeTheSameTreeElsewhere) {
  for (const char *name : kSmall) {
    SCOPED_TRACE(name);
    Workload workload = mustMake(name);
    tree::KvTree follower;
    do {
      for (const tree::TreeEdit &edit : workload.edits())
        ASSERT_TRUE(tree::apply(edit, follower));
      ASSERT_TRUE(follower.setQueries(workload.tree().queries()));
      ASSERT_EQ(follower.nodes(), workload.tree().nodes()) << "step " << workload.step();
    } while (*workload.next());
  }
}

TEST(WorkloadTest, TreesWithAPoolFollowToo) {
  for (const char *name : kSmall)
    for (int pageSize : {0, 1, 16}) {
      SCOPED_TRACE(name + (", page size " + std::to_string(pageSize)));
      Workload workload = mustMake(name);
      auto sequences = tree::SequenceTree::make({.pageSize = pageSize, .pages = 40000});
      ASSERT_TRUE(sequences);
      do {
        for (const tree::TreeEdit &edit : workload.edits()) {
          const auto copies = sequences->apply(edit);
          ASSERT_TRUE(copies) << copies.error().message;
        }
        ASSERT_TRUE(sequences->setQueries(workload.tree().queries()));
        ASSERT_EQ(formatTree(sequences->tree()), formatTree(workload.tree())) << "step " << workload.step();
      } while (*workload.next());
      ASSERT_TRUE(sequences->pool().verify());
    }
}

TEST(WorkloadTest, GrowingLeavesKeepTheStructure) {
  for (const char *name : {"few_shot", "levels", "no_sharing"}) {
    Workload workload = mustMake(name);
    const std::uint64_t structure = workload.tree().structureGeneration();
    const std::uint64_t generation = workload.tree().generation();
    ASSERT_TRUE(*workload.next());
    EXPECT_EQ(workload.tree().structureGeneration(), structure) << name;
    EXPECT_NE(workload.tree().generation(), generation) << name;
  }
}

TEST(WorkloadTest, GoingBackIsAnotherGeneration) {
  Workload workload = mustMake("few_shot:step=3");
  const std::uint64_t generation = workload.tree().generation();
  ASSERT_TRUE(workload.seek(3));
  EXPECT_EQ(workload.tree().generation(), generation);
  ASSERT_TRUE(workload.seek(2));
  EXPECT_GT(workload.tree().generation(), generation);
}

TEST(WorkloadTest, TheParameterStepIsWhereItBegins) {
  Workload workload = mustMake("few_shot:prompt=40,branches=3,step=5,iterations=9");
  EXPECT_EQ(workload.step(), 5);
  EXPECT_EQ(workload.tree().tokens(), 40 + 3 * 5);
  EXPECT_EQ(workload.name(), "few_shot:prompt=40,branches=3,iterations=9");
  EXPECT_EQ(make("few_shot:step=401", 0).error().message,
            "step 401 of workload `few_shot`, which has steps 1 to 400");
}

TEST(WorkloadTest, ErrorsNameTheWorkload) {
  EXPECT_EQ(make("few_shoot", 0).error().message, "no workload `few_shoot`");
  EXPECT_EQ(make("speculative", 0).error().message,
            "`speculative` is a family of workloads, which `deftc tune` takes");
  EXPECT_EQ(make("few_shoot", 0).error().hint, "did you mean `few_shot`?");
  EXPECT_EQ(make("reasoning_sorting", 0).error().hint,
            "`deftc workloads` lists them; recorded ones need --workloads DIR");
  EXPECT_EQ(make("few_shot:branch=4", 0).error().hint, "did you mean `branches`?");
  EXPECT_EQ(make("few_shot:branches=0", 0).error().message,
            "workload `few_shot`: parameter `branches` is `0`, must be an integer from 1 to 1048576");
  EXPECT_EQ(make("levels:nodes=1,2,tokens=5", 0).error().message,
            "workload `levels`: parameter `nodes` has 2 levels, `tokens` has 1");
  EXPECT_EQ(make("mixture:parts=few_shot+grop", 0).error().message, "`grop` cannot be a part of a mixture");
  EXPECT_EQ(make("mixture:parts=few_shot,grpo.group=2", 0).error().message,
            "parameter `grpo.group` is for `grpo`, which is no part of this mixture");
  EXPECT_EQ(make("mixture:few_shot.branch=2", 0).error().hint, "did you mean `branches`?");
}

TEST(WorkloadTest, ATreeThatIsTooLargeIsAnErrorNotACrash) {
  const auto workload = make("levels:nodes=1,1,tokens=1073741824,1", 0);
  ASSERT_FALSE(workload);
  EXPECT_THAT(workload.error().message, ::testing::StartsWith("workload `levels:"));
  EXPECT_THAT(workload.error().message, ::testing::HasSubstr("longer than 1073741824 tokens"));
  auto grows = make("levels:nodes=1,1,tokens=1073741823,1", 0);
  ASSERT_TRUE(grows);
  EXPECT_FALSE(grows->next());
  ASSERT_TRUE(grows->seek(1));
  EXPECT_EQ(grows->tree().tokens(), 1 << 30);
}

} // namespace
} // namespace deft::workload
