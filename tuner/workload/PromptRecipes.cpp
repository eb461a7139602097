#include "tuner/workload/Branches.h"
#include "tuner/workload/Recipes.h"

#include <algorithm>
#include <map>
#include <string>

namespace deft::workload {

namespace {

/// Length of a branch's output: up to `longest` tokens, at least `shortest`; 0: all have the same length.
struct OutputLength {
  int longest, shortest;

  static OutputLength read(Parameters &parameters) {
    const int longest = parameters.integer("output", 1, kMostSteps);
    const int shortest = parameters.integer("shortest", 0, longest);
    return {longest, shortest == 0 ? longest : shortest};
  }
  int draw(Random &random) const { return random.between(shortest, longest); }
};

Parameter outputParameter() {
  return {"output", "256", "tokens that the longest branch decodes: the number of steps"};
}
Parameter shortestParameter() {
  return {"shortest", "0", "tokens of the shortest branch, drawn evenly; 0: all are equal"};
}
Parameter questionParameter() { return {"question", "64", "tokens of each request's own prompt"}; }

/// One prompt with branches that sample from it.
class FewShot : public BranchGenerator {
public:
  FewShot(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), prompt_(parameters.integer("prompt", 0, kMostTokens)),
        branches_(parameters.integer("branches", 1, kMostBranches)),
        iterations_(parameters.integer("iterations", 1, kMostSteps)) {}

private:
  void build(Editor &editor) override {
    const int root = editor.addNode(-1, prompt_);
    for (int i = 0; i < branches_; ++i)
      branch(root, 1, iterations_);
  }
  int prompt_, branches_, iterations_;
};

/// A tree by levels: the nodes of a level are spread evenly below those of the previous level.
class Levels : public BranchGenerator {
public:
  Levels(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), nodes_(parameters.integers("nodes", 1, kMostBranches)),
        tokens_(parameters.integers("tokens", 0, kMostTokens)),
        steps_(parameters.integer("steps", 1, kMostSteps)) {
    if (nodes_.size() != tokens_.size())
      parameters.fail({support::ErrorCode::Usage,
                       "parameter `nodes` has " + std::to_string(nodes_.size()) + " levels, `tokens` has " +
                           std::to_string(tokens_.size()),
                       ""});
  }

private:
  void build(Editor &editor) override {
    std::vector<int> above, level;
    for (std::size_t l = 0; l < nodes_.size(); ++l) {
      level.clear();
      for (int i = 0; i < nodes_[l]; ++i) {
        const int parent =
            l == 0 ? -1
                   : above[static_cast<std::size_t>(static_cast<long long>(i) * nodes_[l - 1] / nodes_[l])];
        if (l + 1 == nodes_.size())
          branch(parent, tokens_[l], steps_);
        else
          level.push_back(editor.addNode(parent, tokens_[l]));
      }
      std::swap(above, level);
    }
  }
  std::vector<int> nodes_, tokens_;
  int steps_;
};

/// A system prompt of several parts, each with variants; requests are spread at random below the last part.
class SystemPrompts : public BranchGenerator {
public:
  SystemPrompts(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), tokens_(parameters.integers("tokens", 0, kMostTokens)),
        variants_(parameters.integers("variants", 1, kMostBranches)),
        requests_(parameters.integer("requests", 1, kMostBranches)),
        question_(parameters.integer("question", 0, kMostTokens - 1)),
        output_(OutputLength::read(parameters)) {
    if (tokens_.size() != variants_.size())
      parameters.fail({support::ErrorCode::Usage,
                       "parameter `tokens` has " + std::to_string(tokens_.size()) +
                           " levels, `variants` has " + std::to_string(variants_.size()),
                       ""});
    long long last = 1;
    for (int variants : variants_)
      last = std::min<long long>(last * variants, kMostBranches + 1LL);
    if (last > kMostBranches)
      parameters.fail({support::ErrorCode::Usage,
                       "parameter `variants` makes more than " + std::to_string(kMostBranches) + " prompts",
                       ""});
  }

private:
  void build(Editor &editor) override {
    std::vector<int> above{-1}, level;
    for (std::size_t l = 0; l < tokens_.size(); ++l) {
      level.clear();
      for (int parent : above)
        for (int v = 0; v < variants_[l]; ++v)
          level.push_back(editor.addNode(parent, tokens_[l]));
      std::swap(above, level);
    }
    for (int i = 0; i < requests_; ++i) {
      const int prompt = above[random_.between(0, static_cast<int>(above.size()) - 1)];
      branch(prompt, question_ + 1, output_.draw(random_));
    }
  }
  std::vector<int> tokens_, variants_;
  int requests_, question_;
  OutputLength output_;
};

/// A system prompt, combinations of examples below it, questions below each.
class MultiFewShot : public BranchGenerator {
public:
  MultiFewShot(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), system_(parameters.integer("system", 0, kMostTokens)),
        combinations_(parameters.integer("combinations", 1, 1 << 10)),
        shots_(parameters.integer("shots", 0, 1 << 10)), shot_(parameters.integer("shot", 0, 1 << 18)),
        questions_(parameters.integer("questions", 1, 1 << 10)),
        question_(parameters.integer("question", 0, kMostTokens - 1)),
        output_(OutputLength::read(parameters)) {}

private:
  void build(Editor &editor) override {
    const int system = editor.addNode(-1, system_);
    for (int c = 0; c < combinations_; ++c) {
      int tokens = 0; // the lengths of examples vary by a quarter up and down
      for (int s = 0; s < shots_; ++s)
        tokens += random_.between(shot_ - shot_ / 4, shot_ + shot_ / 4);
      const int examples = editor.addNode(system, tokens);
      for (int q = 0; q < questions_; ++q)
        branch(examples, question_ + 1, output_.draw(random_));
    }
  }
  int system_, combinations_, shots_, shot_, questions_, question_;
  OutputLength output_;
};

/// Questions that each read some documents of a collection, in the collection's order. Prompts that start
/// with the same documents share them.
class MultiDocument : public BranchGenerator {
public:
  MultiDocument(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), documents_(parameters.integer("documents", 1, 1 << 12)),
        tokens_(parameters.integer("tokens", 0, 1 << 20)),
        each_(parameters.integer("each", 1, std::max(documents_, 1))),
        requests_(parameters.integer("requests", 1, kMostBranches)),
        question_(parameters.integer("question", 0, kMostTokens - 1)),
        output_(OutputLength::read(parameters)) {}

private:
  void build(Editor &editor) override {
    std::vector<int> lengths(documents_);
    for (int &length : lengths)
      length = random_.between(tokens_ / 2, tokens_ + tokens_ / 2);
    std::map<std::pair<int, int>, int> nodeOf; // (parent, document)
    for (int r = 0; r < requests_; ++r) {
      int parent = -1;
      int wanted = each_;
      for (int d = 0; d < documents_ && wanted > 0; ++d) {
        if (random_.between(1, documents_ - d) > wanted) // selects `wanted` of the rest uniformly
          continue;
        --wanted;
        const auto [at, isNew] = nodeOf.try_emplace({parent, d}, -1);
        if (isNew)
          at->second = editor.addNode(parent, lengths[d]);
        parent = at->second;
      }
      branch(parent, question_ + 1, output_.draw(random_));
    }
  }
  int documents_, tokens_, each_, requests_, question_;
  OutputLength output_;
};

/// Reinforcement learning: groups of samples from one prompt each; finished samples leave.
class Grpo : public BranchGenerator {
public:
  Grpo(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), prompts_(parameters.integer("prompts", 1, 1 << 16)),
        prompt_(parameters.integer("prompt", 0, 1 << 20)), group_(parameters.integer("group", 1, 1 << 10)),
        output_(OutputLength::read(parameters)) {
    pruneFinished();
  }

private:
  void build(Editor &editor) override {
    for (int p = 0; p < prompts_; ++p) {
      const int root = editor.addNode(-1, random_.between(prompt_ / 2, prompt_ + prompt_ / 2));
      for (int i = 0; i < group_; ++i)
        branch(root, 1, output_.draw(random_));
    }
  }
  int prompts_, prompt_, group_;
  OutputLength output_;
};

/// Requests that share nothing.
class NoSharing : public BranchGenerator {
public:
  NoSharing(Parameters &parameters, std::uint64_t seed)
      : BranchGenerator(seed), requests_(parameters.integer("requests", 1, kMostBranches)),
        tokens_(parameters.integer("tokens", 0, 1 << 24)),
        shortest_(parameters.integer("shortest", 0, std::max(tokens_, 0))),
        steps_(parameters.integer("steps", 1, kMostSteps)) {}

private:
  void build(Editor &) override {
    for (int i = 0; i < requests_; ++i)
      branch(-1, random_.between(shortest_ == 0 ? tokens_ : shortest_, tokens_) + 1, steps_);
  }
  int requests_, tokens_, shortest_, steps_;
};

} // namespace

std::vector<Recipe> promptRecipes() {
  return {
      {{"few_shot",
        "one prompt, branches that sample from it; at step s each has s tokens",
        {{"prompt", "4000", "tokens of the prompt"},
         {"branches", "20", "branches"},
         {"iterations", "400", "tokens that each branch decodes: the number of steps"}}},
       makeGenerator<FewShot>},
      {{"levels",
        "a tree by levels; step 1 is the tree as given, then its leaves grow",
        {{"nodes", "1,10", "nodes of each level, spread evenly below the level above"},
         {"tokens", "4000,400", "tokens of each node of each level"},
         {"steps", "256", "number of steps"}}},
       makeGenerator<Levels>},
      {{"system_prompts",
        "a system prompt of several parts, some in variants, and requests below",
        {{"tokens", "459,38,584,2112", "tokens of each part"},
         {"variants", "1,4,4,1", "variants of each part below each variant of the part before"},
         {"requests", "128", "requests, each below a prompt drawn at random"},
         questionParameter(),
         outputParameter(),
         shortestParameter()}},
       makeGenerator<SystemPrompts>},
      {{"multi_few_shot",
        "a system prompt, combinations of examples, questions to each",
        {{"system", "3193", "tokens of the system prompt"},
         {"combinations", "8", "combinations of examples"},
         {"shots", "20", "examples in a combination"},
         {"shot", "120", "tokens of an example on average, drawn within a quarter"},
         {"questions", "16", "questions to each combination"},
         questionParameter(),
         outputParameter(),
         shortestParameter()}},
       makeGenerator<MultiFewShot>},
      {{"multi_document",
        "questions to documents; prompts that begin with the same documents share them",
        {{"documents", "8", "documents of the collection"},
         {"tokens", "1500", "tokens of a document on average, drawn within a half"},
         {"each", "3", "documents that a question reads, in the collection's order"},
         {"requests", "64", "questions"},
         questionParameter(),
         outputParameter(),
         shortestParameter()}},
       makeGenerator<MultiDocument>},
      {{"grpo",
        "groups of samples, one prompt each, of unequal length; finished samples leave the tree",
        {{"prompts", "16", "groups"},
         {"prompt", "512", "tokens of a prompt on average, drawn within a half"},
         {"group", "16", "samples of a prompt"},
         {"output", "1024", outputParameter().description},
         {"shortest", "128", shortestParameter().description}}},
       makeGenerator<Grpo>},
      {{"no_sharing",
        "requests that share nothing",
        {{"requests", "64", "requests"},
         {"tokens", "1024", "tokens of the longest prompt"},
         {"shortest", "0", "tokens of the shortest prompt, drawn evenly; 0: all are equal"},
         {"steps", "256", "number of steps"}}},
       makeGenerator<NoSharing>},
  };
}

} // namespace deft::workload
