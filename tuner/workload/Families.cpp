#include "tuner/workload/Families.h"

#include "compiler/support/NearestName.h"

#include <algorithm>
#include <set>

namespace deft::workload {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct Member {
  const char *family;
  const char *workload;
  std::vector<int> steps;
  std::vector<std::uint64_t> seeds;
  bool isHeldOut = false;
};

/// Typical sizes in serving. A workload's default is among its family's members, from its first step
/// on.
const std::vector<Member> &members() {
  static const std::vector<Member> all{
      {"few_shot", "few_shot", {1, 20, 110, 140, 230, 300}, {0}},
      {"few_shot", "few_shot:prompt=4000,branches=50", {130, 150, 220, 250}, {0}},
      {"few_shot", "few_shot:prompt=1000,branches=10", {1, 10, 220, 250}, {0}},
      {"few_shot", "few_shot:prompt=3800,branches=22", {2, 120, 240}, {0}, true},
      {"few_shot", "few_shot:prompt=4300,branches=46", {120, 230}, {0}, true},
      {"few_shot", "few_shot:prompt=1100,branches=9", {2, 230}, {0}, true},

      {"reasoning", "reasoning", {100, 400, 800, 1600, 2400}, {1, 2}},
      {"reasoning", "reasoning:prompt=500,width=5,depth=6", {100, 400, 800}, {1}},
      {"reasoning", "multi_chain", {60, 200}, {1}},
      {"reasoning", "beam_search", {64, 200}, {1}},
      {"reasoning", "reasoning", {150, 450, 900, 1700, 2300}, {7}, true},
      {"reasoning", "multi_chain", {70, 190}, {7}, true},
      {"reasoning", "beam_search", {80, 180}, {7}, true},

      {"speculative", "token_tree:tokens=32", {1, 60}, {1}},
      {"speculative", "token_tree:tokens=64", {1, 60}, {1}},
      {"speculative", "token_tree:tokens=128", {1, 40}, {1}},
      {"speculative", "token_tree:tokens=256", {1, 40}, {1}},
      {"speculative", "token_tree:tokens=64,prompt=4400,shape=random", {5}, {7}, true},
      {"speculative", "token_tree:tokens=30,prompt=3700", {5}, {7}, true},
      {"speculative", "token_tree:tokens=120,prompt=4200", {5}, {7}, true},
      {"speculative", "token_tree:tokens=240,prompt=3900", {5}, {7}, true},

      {"multi_level", "levels:nodes=1,2,64,tokens=8,256,32", {1, 8}, {0}},
      {"multi_level", "levels:nodes=1,16,64,tokens=1024,256,32", {1, 8}, {0}},
      {"multi_level", "levels:nodes=1,4,16,512,tokens=1024,256,128,32", {1, 8}, {0}},
      {"multi_level",
       "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=256,128,64,16,16,16,16,16,16",
       {1, 4},
       {0}},
      {"multi_level", "system_prompts", {1, 100, 200}, {1}},
      {"multi_level", "multi_few_shot", {1, 100}, {1}},
      {"multi_level", "levels:nodes=1,3,60,tokens=16,240,34", {4}, {0}, true},
      {"multi_level", "levels:nodes=1,15,60,tokens=900,270,36", {4}, {0}, true},
      {"multi_level", "levels:nodes=1,4,18,480,tokens=900,280,140,34", {4}, {0}, true},
      {"multi_level", "system_prompts", {10, 110, 210}, {7}, true},
      {"multi_level", "multi_few_shot", {10, 110}, {7}, true},

      {"multi_document", "multi_document", {1, 60, 120, 220}, {1}},
      {"multi_document", "multi_document:documents=16,each=2,requests=128", {1, 120}, {1}},
      {"multi_document", "multi_document:documents=4,each=2,requests=16", {1, 120}, {1}},
      {"multi_document", "multi_document", {10, 100, 200}, {7}, true},
      {"multi_document", "multi_document:documents=16,each=2,requests=120", {10, 110}, {7}, true},

      {"no_sharing", "no_sharing", {1, 100, 200}, {1}},
      {"no_sharing", "no_sharing:requests=16,tokens=2048", {1, 200}, {1}},
      {"no_sharing", "no_sharing:requests=8,tokens=8192", {1, 200}, {1}},
      {"no_sharing", "no_sharing:requests=64,tokens=2048,shortest=128", {1, 100}, {1}},
      {"no_sharing", "no_sharing:requests=60,tokens=1100", {10, 120}, {7}, true},
      {"no_sharing", "no_sharing:requests=15,tokens=2200", {100}, {7}, true},
      {"no_sharing", "no_sharing:requests=64,tokens=2048,shortest=128", {10}, {7}, true},

      {"forest", "grpo", {1, 200, 600}, {1}},
      {"forest", "grpo:prompts=8,group=8", {1, 200, 600}, {1}},
      {"forest", "random_forest:nodes=400,roots=12,tokens=256,queries=200", {1, 20}, {1, 2}},
      {"forest", "grpo", {10, 180, 650}, {7}, true},
      {"forest", "grpo:prompts=8,group=8", {10, 180, 650}, {7}, true},
      {"forest", "random_forest:nodes=400,roots=12,tokens=256,queries=200", {10}, {7}, true},
  };
  return all;
}

std::string atStep(const std::string &name, int step) {
  return name + (name.find(':') == std::string::npos ? ":" : ",") + "step=" + std::to_string(step);
}

} // namespace

std::vector<WorkloadFamily> families() {
  return {
      {"few_shot", "one prompt, branches that sample from it"},
      {"reasoning", "trees and chains of thought"},
      {"speculative", "token trees of speculative decoding"},
      {"multi_level", "prompts shared on several levels"},
      {"multi_document", "questions to several documents, some of them shared"},
      {"no_sharing", "requests that share nothing"},
      {"forest", "many small groups side by side"},
  };
}

Result<std::vector<FamilyTree>> familyTrees(std::string_view family) {
  std::vector<FamilyTree> trees;
  for (const Member &member : members()) {
    if (family != member.family)
      continue;
    for (const std::uint64_t seed : member.seeds) {
      auto workload = make(member.workload, seed);
      if (!workload)
        return workload.error();
      for (const int step : member.steps) {
        if (step > workload->steps())
          continue; // the length of a search depends on its seed
        if (auto moved = workload->seek(step); !moved)
          return moved.error();
        trees.push_back({atStep(member.workload, step), seed, member.isHeldOut, workload->tree()});
      }
    }
  }
  if (!trees.empty())
    return trees;
  std::vector<std::string> known;
  for (const WorkloadFamily &one : families())
    known.push_back(one.name);
  return Error{ErrorCode::Usage, "no family of trees `" + std::string(family) + "`",
               support::didYouMean(std::string(family), known)};
}

Result<std::vector<FamilyTree>> workloadTrees(const std::string &name, std::uint64_t seed,
                                              const std::string &recordsFolder) {
  constexpr int kSamples = 12;
  std::vector<FamilyTree> trees;
  auto workload = make(name, seed, recordsFolder);
  if (!workload)
    return workload.error();
  const int first = workload->step(), last = workload->steps();
  std::set<int> steps;
  for (int i = 0; i < kSamples; ++i)
    steps.insert(first + static_cast<int>(static_cast<long long>(last - first) * i / kSamples));
  // A name with `step` means only this tree.
  if (name.find("step=") != std::string::npos)
    steps = {first};
  bool isHeldOut = false;
  for (const int step : steps) {
    if (auto moved = workload->seek(step); !moved)
      return moved.error();
    trees.push_back({steps.size() > 1 ? atStep(name, step) : name, seed, isHeldOut, workload->tree()});
    isHeldOut = steps.size() > 1 && !isHeldOut;
  }
  return trees;
}

} // namespace deft::workload
