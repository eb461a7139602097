#include "tuner/workload/Recipes.h"

#include <algorithm>

namespace deft::workload {

namespace {

/// Beams of one sequence: in a step some end and others continue twice.
class BeamSearch : public Generator {
public:
  BeamSearch(Parameters &parameters, std::uint64_t seed)
      : random_(seed), prompt_(parameters.integer("prompt", 0, kMostTokens)),
        beams_(parameters.integer("beams", 1, 1 << 12)), churn_(parameters.integer("churn", 0, 100)),
        steps_(parameters.integer("steps", 1, kMostSteps)) {}

  void start(Editor &editor) override {
    root_ = editor.addNode(-1, prompt_);
    for (int i = 0; i < beams_; ++i) {
      leaves_.push_back(editor.addNode(root_, 1));
      editor.query(leaves_.back());
    }
  }

  void advance(int, Editor &editor) override {
    // successor[i]: the beam that continues in place i. A beam that ends takes another's path.
    std::vector<int> successors(leaves_.size());
    for (int i = 0; i < beams_; ++i)
      successors[i] = random_.chance(churn_ / 100.0) ? random_.between(0, beams_ - 1) : i;
    std::vector<int> goesOn(leaves_.size(), 0);
    for (int from : successors)
      ++goesOn[from];
    std::vector<int> next(leaves_.size());
    for (int i = 0; i < beams_; ++i) {
      const int from = leaves_[successors[i]];
      if (goesOn[successors[i]] == 1) {
        editor.append(from, 1);
        next[i] = from;
      } else {
        next[i] = editor.addNode(from, 1);
      }
      editor.query(next[i]);
    }
    for (int i = 0; i < beams_; ++i)
      if (goesOn[i] == 0)
        giveUp(leaves_[i], editor);
    leaves_ = std::move(next);
  }

  int steps() const override { return steps_; }

private:
  /// Prunes the leaf and the nodes that only it read.
  void giveUp(int leaf, Editor &editor) {
    if (editor.hasFailed())
      return;
    const auto &nodes = editor.tree().nodes();
    int top = leaf;
    while (nodes[top].parent >= 0 && nodes[top].parent != root_ &&
           nodes[nodes[top].parent].firstChild == top && nodes[top].nextSibling < 0)
      top = nodes[top].parent;
    editor.prune(top);
  }

  Random random_;
  int prompt_, beams_, churn_, steps_;
  int root_ = -1;
  std::vector<int> leaves_;
};

/// A tree of thoughts: the best of `width` thoughts continues, level by level.
class Reasoning : public Generator {
public:
  Reasoning(Parameters &parameters, std::uint64_t seed)
      : random_(seed), prompt_(parameters.integer("prompt", 0, kMostTokens)),
        width_(parameters.integer("width", 1, 1 << 12)), prunes_(parameters.integer("prune", 0, 1) == 1) {
    const int depth = parameters.integer("depth", 1, 1 << 10);
    const int thought = parameters.integer("thought", 1, 1 << 14);
    // All lengths are drawn here, because they determine the number of steps.
    lengths_.resize(static_cast<std::size_t>(depth));
    for (auto &level : lengths_) {
      for (int i = 0; i < width_; ++i)
        level.push_back(random_.between((thought + 1) / 2, thought));
      steps_ += *std::max_element(level.begin(), level.end());
    }
  }

  void start(Editor &editor) override { think(editor.addNode(-1, prompt_), editor); }

  void advance(int, Editor &editor) override {
    ++age_;
    const std::vector<int> &lengths = lengths_[level_];
    if (age_ > *std::max_element(lengths.begin(), lengths.end())) {
      const int best = random_.between(0, width_ - 1);
      for (int i = 0; prunes_ && i < width_; ++i)
        if (i != best)
          editor.prune(thoughts_[i]);
      ++level_;
      think(thoughts_[best], editor);
      return;
    }
    for (int i = 0; i < width_; ++i)
      if (age_ <= lengths[i]) {
        editor.append(thoughts_[i], 1);
        editor.query(thoughts_[i]);
      }
  }

  int steps() const override { return steps_; }

private:
  void think(int parent, Editor &editor) {
    age_ = 1;
    thoughts_.clear();
    for (int i = 0; i < width_; ++i) {
      thoughts_.push_back(editor.addNode(parent, 1));
      editor.query(thoughts_.back());
    }
  }

  Random random_;
  int prompt_, width_;
  bool prunes_;
  std::vector<std::vector<int>> lengths_; ///< for each level's thoughts
  int steps_ = 0;
  std::size_t level_ = 0;
  int age_ = 0; ///< tokens of this level's longest thought so far
  std::vector<int> thoughts_;
};

/// Several chains of thought for each question. When all are complete, an answer is decoded from their text,
/// which is then a prompt of its own, and the chains are removed.
class MultiChain : public Generator {
public:
  MultiChain(Parameters &parameters, std::uint64_t seed)
      : random_(seed), system_(parameters.integer("system", 0, kMostTokens)),
        question_(parameters.integer("question", 0, kMostTokens)),
        answer_(parameters.integer("answer", 1, 1 << 20)) {
    const int questions = parameters.integer("questions", 1, 1 << 14);
    const int chains = parameters.integer("chains", 1, 1 << 10);
    const int chain = parameters.integer("chain", 1, 1 << 18);
    for (int q = 0; q < questions; ++q) {
      Question &question = questions_.emplace_back();
      for (int c = 0; c < chains; ++c)
        question.lengths.push_back(random_.between((chain + 1) / 2, chain));
      question.longest = *std::max_element(question.lengths.begin(), question.lengths.end());
      steps_ = std::max(steps_, question.longest + answer_);
    }
  }

  void start(Editor &editor) override {
    const int system = editor.addNode(-1, system_);
    for (Question &question : questions_) {
      question.node = editor.addNode(system, question_);
      for (std::size_t c = 0; c < question.lengths.size(); ++c) {
        question.chains.push_back(editor.addNode(question.node, 1));
        editor.query(question.chains.back());
      }
    }
  }

  void advance(int step, Editor &editor) override {
    for (Question &question : questions_) {
      if (step <= question.longest) {
        for (std::size_t c = 0; c < question.chains.size(); ++c)
          if (step <= question.lengths[c]) {
            editor.append(question.chains[c], 1);
            editor.query(question.chains[c]);
          }
      } else if (step == question.longest + 1) {
        int tokens = 1;
        for (std::size_t c = 0; c < question.chains.size(); ++c) {
          tokens += question.lengths[c];
          editor.prune(question.chains[c]);
        }
        question.answer = editor.addNode(question.node, tokens);
        editor.query(question.answer);
      } else if (step <= question.longest + answer_) {
        editor.append(question.answer, 1);
        editor.query(question.answer);
      }
    }
  }

  int steps() const override { return steps_; }

private:
  struct Question {
    int node = -1, answer = -1, longest = 0;
    std::vector<int> lengths, chains;
  };
  Random random_;
  int system_, question_, answer_;
  std::vector<Question> questions_;
  int steps_ = 0;
};

} // namespace

std::vector<Recipe> searchRecipes() {
  return {
      {{"beam_search",
        "beams of one sequence, some given up for forks of others at every step",
        {{"prompt", "1024", "tokens of the prompt"},
         {"beams", "8", "beams"},
         {"churn", "10", "chance in percent that a beam is given up at a step"},
         {"steps", "256", "number of steps"}}},
       makeGenerator<BeamSearch>},
      {{"reasoning",
        "a tree of thoughts: the next level continues one of the thoughts",
        {{"prompt", "1100", "tokens of the prompt"},
         {"depth", "10", "levels"},
         {"width", "10", "thoughts of a level"},
         {"thought", "400", "tokens of the longest thought, drawn from a half"},
         {"prune", "0", "1: thoughts that were not chosen leave the tree"}}},
       makeGenerator<Reasoning>},
      {{"multi_chain",
        "chains of reasoning to each question, then an answer from all of them",
        {{"system", "1024", "tokens of the prompt that all questions share"},
         {"questions", "32", "questions"},
         {"question", "128", "tokens of a question"},
         {"chains", "4", "chains to a question"},
         {"chain", "256", "tokens of the longest chain, drawn from a half"},
         {"answer", "64", "tokens of an answer"}}},
       makeGenerator<MultiChain>},
  };
}

} // namespace deft::workload
