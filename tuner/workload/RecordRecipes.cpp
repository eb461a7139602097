#include "compiler/support/OpenedFile.h"
#include "tuner/workload/Recipes.h"
#include "tuner/workload/RecordFile.h"
#include "tuner/workload/TokenTreeGenerator.h"

#include <algorithm>
#include <filesystem>

namespace deft::workload {

using support::Result;

namespace {

class RecordedTree : public Generator {
public:
  RecordedTree(std::vector<RecordedNode> nodes, bool prunes)
      : record_(std::move(nodes)), prunes_(prunes), nodes_(record_.size(), -1), lastRead_(record_.size(), 0) {
    for (std::size_t i = record_.size(); i-- > 0;) { // children before parents
      lastRead_[i] = std::max(lastRead_[i], record_[i].lastStep);
      if (record_[i].parent >= 0)
        lastRead_[record_[i].parent] = std::max(lastRead_[record_[i].parent], lastRead_[i]);
      steps_ = std::max(steps_, record_[i].lastStep);
    }
  }

  void start(Editor &editor) override {
    for (std::size_t i = 0; i < record_.size(); ++i)
      if (record_[i].firstStep <= 1)
        add(i, 1, editor);
  }

  void advance(int step, Editor &editor) override {
    for (std::size_t i = 0; i < record_.size(); ++i) {
      const RecordedNode &node = record_[i];
      // The nodes below were not read longer and are removed with it.
      if (prunes_ && lastRead_[i] == step - 1 && node.parent >= 0 && lastRead_[node.parent] >= step)
        editor.prune(nodes_[i]);
      if (step == node.firstStep) {
        add(i, step, editor);
      } else if (step > node.firstStep && step <= node.lastStep) {
        editor.append(nodes_[i], 1);
        editor.query(nodes_[i]);
      }
    }
  }

  int steps() const override { return steps_; }

private:
  void add(std::size_t i, int step, Editor &editor) {
    const RecordedNode &node = record_[i];
    const int parent = node.parent < 0 ? -1 : nodes_[node.parent];
    nodes_[i] = editor.addNode(parent, std::min(step, node.lastStep) - node.firstStep + 1);
    if (step <= node.lastStep)
      editor.query(nodes_[i]);
  }

  std::vector<RecordedNode> record_;
  bool prunes_;
  std::vector<int> nodes_;    ///< of the KV tree, for each recorded node
  std::vector<int> lastRead_; ///< the last step in which a query sees any of the node
  int steps_ = 1;
};

class RecordedTokenTree : public TokenTreeGenerator {
public:
  RecordedTokenTree(int prompt, const std::vector<int> &parents, std::vector<int> accepted)
      : TokenTreeGenerator(prompt, parents), accepted_(std::move(accepted)) {
    for (int token = 0; token < static_cast<int>(parents.size()); ++token)
      if (depthOf(token) == static_cast<int>(firstOfDepth_.size()))
        firstOfDepth_.push_back(token);
  }

  int steps() const override { return static_cast<int>(accepted_.size()); }

private:
  /// The record has the number of accepted tokens, not their identity. This takes the first path of that
  /// length, or, if no path is as long, the longest one and tokens after it.
  Accepted accept(int step) override {
    const int count = accepted_[step - 2];
    const int depth = std::min(count, static_cast<int>(firstOfDepth_.size()) - 1);
    return {firstOfDepth_[depth], count - depth};
  }

  std::vector<int> accepted_;
  std::vector<int> firstOfDepth_{-1}; ///< the first token whose path has that many tokens
};

Recipe recipeOf(const std::string &name, RecordedTrees record) {
  const int count = static_cast<int>(record.trees.size());
  Recipe recipe;
  recipe.description = {name,
                        "recorded: " + std::to_string(count) + (count == 1 ? " search" : " searches") +
                            ", step by step",
                        {{"tree", "0", "which of them, from 0 to " + std::to_string(count - 1)},
                         {"prune", "0", "1: nodes that no later step reads leave the tree"}},
                        true};
  const auto shared = std::make_shared<const RecordedTrees>(std::move(record));
  recipe.make = [shared, count](Parameters &parameters, std::uint64_t) -> std::unique_ptr<Generator> {
    const int index = parameters.integer("tree", 0, count - 1);
    const bool prunes = parameters.integer("prune", 0, 1) == 1;
    return std::make_unique<RecordedTree>(shared->trees[index], prunes);
  };
  return recipe;
}

Recipe recipeOf(const std::string &name, TokenTreeRecords record) {
  const int count = static_cast<int>(record.records.size());
  Recipe recipe;
  recipe.description = {name,
                        "recorded: speculative decoding, " + std::to_string(record.parents.size()) +
                            " guessed tokens a step, accepted lengths of " + std::to_string(count) +
                            (count == 1 ? " run" : " runs"),
                        {{"record", "0", "which run, from 0 to " + std::to_string(count - 1)},
                         {"prompt", "", "tokens of the prompt; else its characters / 4, rounded"}},
                        true};
  const auto shared = std::make_shared<const TokenTreeRecords>(std::move(record));
  recipe.make = [shared, count](Parameters &parameters, std::uint64_t) -> std::unique_ptr<Generator> {
    const TokenTreeRecords::Record &run = shared->records[parameters.integer("record", 0, count - 1)];
    const int prompt = parameters.has("prompt") ? parameters.integer("prompt", 0, kMostTokens)
                                                : static_cast<int>((run.promptCharacters + 2LL) / 4);
    return std::make_unique<RecordedTokenTree>(prompt, shared->parents, run.accepted);
  };
  return recipe;
}

} // namespace

Result<Recipe> readRecord(const std::string &path) {
  auto record = readRecordFile(path);
  if (!record)
    return record.error();
  const std::string name = std::filesystem::path(path).stem().string();
  return std::visit([&](auto &kind) { return recipeOf(name, std::move(kind)); }, *record);
}

bool isRecordFile(const std::string &path) {
  constexpr std::size_t kMost = 4096;
  const std::string begin = support::beginningOf(path, kMost);
  return begin.find("\"recorded-tree/") != std::string::npos ||
         begin.find("\"token-tree/") != std::string::npos;
}

} // namespace deft::workload
