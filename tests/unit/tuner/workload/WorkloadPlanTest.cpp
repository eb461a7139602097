#include "runtime/plan/Verify.h"
#include "runtime/tree/SequenceTree.h"
#include "tests/unit/runtime/plan/PlanTesting.h"
#include "tuner/workload/Workload.h"

#include <gtest/gtest.h>

#include <map>

/// Runs as a decode loop sees them: a tree whose tokens lie in a pool follows a workload, and at each step
/// the plan advances or is made anew. Every plan must cover its tree exactly once, at the right places.
namespace deft::workload {
namespace {

constexpr spec::Partition kPartitions[] = {spec::Partition::Node,    spec::Partition::Flatten,
                                           spec::Partition::Union,   spec::Partition::Greedy,
                                           spec::Partition::Cascade, spec::Partition::Auto};

/// How many plans of how many steps were advanced.
double advancedShare(const std::string &name, int pageSize, spec::Partition partition) {
  auto workload = make(name, 3);
  EXPECT_TRUE(workload) << workload.error().message;
  auto sequences = tree::SequenceTree::make({.pageSize = pageSize, .pages = 60000});
  const plan::VariantFacts facts{2, 2};
  const config::Config config = plan::makeConfig(64, {64, 16}, partition);
  plan::Planner planner;
  plan::Plan plan;
  int steps = 0, advanced = 0;
  do {
    for (const tree::TreeEdit &edit : workload->edits())
      EXPECT_TRUE(sequences->apply(edit));
    EXPECT_TRUE(sequences->setQueries(workload->tree().queries()));
    const tree::KvTree &tree = sequences->tree();
    ++steps;
    if (steps > 1 && planner.advance(tree, plan) == plan::Advance::Done)
      ++advanced;
    else if (auto made = planner.make(tree, facts, config, 8, plan); !made)
      ADD_FAILURE() << made.error().message;
    const auto verified = plan::verify(plan, tree, facts, config);
    EXPECT_TRUE(verified) << "step " << workload->step() << ": " << verified.error().message;
  } while (!testing::Test::HasFailure() && *workload->next());
  return static_cast<double>(advanced) / steps;
}

TEST(WorkloadPlanTest, EveryStepOfEveryWorkloadIsPlanned) {
  for (const char *name :
       {"few_shot:prompt=140,branches=3,iterations=90", "levels:nodes=1,2,6,tokens=20,0,5,steps=60",
        "system_prompts:tokens=20,3,7,variants=1,3,2,requests=11,question=4,output=40,shortest=2",
        "multi_document:documents=5,tokens=10,each=2,requests=9,question=3,output=27,shortest=3",
        "grpo:prompts=3,prompt=20,group=4,output=60,shortest=2",
        "beam_search:prompt=120,beams=5,churn=10,steps=100",
        "reasoning:prompt=30,depth=3,width=4,thought=26,prune=1",
        "multi_chain:system=20,questions=4,question=5,chains=3,chain=28,answer=15",
        "token_tree:prompt=130,tokens=17,steps=40", "random_forest:nodes=30,queries=25,steps=100"})
    for (int pageSize : {0, 16})
      for (spec::Partition partition : kPartitions) {
        SCOPED_TRACE(name + (", page size " + std::to_string(pageSize)) + ", partition " +
                     std::to_string(static_cast<int>(partition)));
        (void)advancedShare(name, pageSize, partition);
        if (HasFailure())
          return;
      }
}

TEST(WorkloadPlanTest, PlansOfGrowingBranchesAdvance) {
  EXPECT_GT(advancedShare("few_shot:prompt=140,branches=3,iterations=200", 16, spec::Partition::Flatten),
            0.8);
}

} // namespace
} // namespace deft::workload
