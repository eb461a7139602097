#include "tuner/workload/Recipes.h"

#include <algorithm>

namespace deft::workload {

namespace {

/// Requests that decode, and others whose prompts arrive chunk by chunk, below a prompt that all share.
class Ragged : public Generator {
public:
  explicit Ragged(Parameters &parameters)
      : shared_(parameters.integer("shared", 0, kMostTokens)),
        decodes_(parameters.integer("decodes", 0, kMostBranches)),
        context_(parameters.integer("context", 0, kMostTokens)),
        prefills_(parameters.integer("prefills", 0, 1 << 10)),
        before_(parameters.integer("before", 0, kMostTokens)),
        chunk_(parameters.integer("chunk", 1, 1 << 20)), steps_(parameters.integer("steps", 1, kMostSteps)) {}

  void start(Editor &editor) override {
    const int root = shared_ > 0 ? editor.addNode(-1, shared_) : -1;
    for (int i = 0; i < decodes_ + prefills_; ++i)
      nodes_.push_back(editor.addNode(root, i < decodes_ ? context_ + 1 : before_ + chunk_));
    ask(editor);
  }

  void advance(int, Editor &editor) override {
    for (int i = 0; i < decodes_ + prefills_; ++i)
      editor.append(nodes_[i], i < decodes_ ? 1 : chunk_);
    ask(editor);
  }

  int steps() const override { return steps_; }

private:
  void ask(Editor &editor) {
    for (int i = 0; i < decodes_ + prefills_; ++i) {
      const int tokens = editor.tokensOf(nodes_[i]);
      for (int seen = i < decodes_ ? tokens : std::max(tokens - chunk_ + 1, 1); seen < tokens; ++seen)
        editor.query(nodes_[i], seen);
      editor.query(nodes_[i]);
    }
  }

  int shared_, decodes_, context_, prefills_, before_, chunk_, steps_;
  std::vector<int> nodes_;
};

} // namespace

std::vector<Recipe> raggedRecipes() {
  return {{{"ragged",
            "a server's batch: requests that decode, and others whose prompts come in chunk by chunk",
            {{"shared", "1000", "tokens of the prompt that all begin with"},
             {"decodes", "60", "requests that decode"},
             {"context", "1000", "tokens that each of them has at step 1"},
             {"prefills", "4", "requests whose prompts come in"},
             {"before", "0", "tokens that each of them has before step 1"},
             {"chunk", "1024", "tokens that each of them gains a step, a query for each"},
             {"steps", "128", "number of steps"}}},
           [](Parameters &parameters, std::uint64_t) { return std::make_unique<Ragged>(parameters); }}};
}

} // namespace deft::workload
