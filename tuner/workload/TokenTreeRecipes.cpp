#include "tuner/workload/Recipes.h"
#include "tuner/workload/TokenTreeGenerator.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace deft::workload {

namespace {

/// The probability that the guess of rank `rank` (0: the best) is right, `depth` tokens after the last
/// certain one: heads guess worse the further they look ahead.
double chanceOf(int depth, int rank) {
  const double first = 0.75 * std::pow(0.9, depth);
  return first * std::pow(1 - first, rank);
}

/// The tree of `tokens` tokens with the highest probability to be right: it repeatedly adds the likeliest
/// guess that a parent has left. Token 0 is certain.
std::vector<int> medusaParents(int tokens) {
  struct Guess {
    double chance;
    int parent, rank;
    bool operator<(const Guess &other) const { return chance < other.chance; }
  };
  std::vector<int> parents{-1};
  std::vector<int> depths{0};
  std::vector<double> chances{1};
  std::priority_queue<Guess> open;
  open.push({chanceOf(0, 0), 0, 0});
  while (static_cast<int>(parents.size()) < tokens) {
    const Guess best = open.top();
    open.pop();
    const int token = static_cast<int>(parents.size());
    parents.push_back(best.parent);
    depths.push_back(depths[best.parent] + 1);
    chances.push_back(best.chance);
    const double above = chances[best.parent];
    open.push({above * chanceOf(depths[best.parent], best.rank + 1), best.parent, best.rank + 1});
    open.push({best.chance * chanceOf(depths[token], 0), token, 0});
  }
  return parents;
}

std::vector<int> randomParents(int tokens, Random random) {
  std::vector<int> parents{-1};
  for (int i = 1; i < tokens; ++i) {
    const int one = random.between(0, i - 1), other = random.between(0, i - 1);
    parents.push_back(std::min(one, other)); // early tokens get more guesses after them
  }
  return parents;
}

class GeneratedTokenTree : public TokenTreeGenerator {
public:
  GeneratedTokenTree(int prompt, std::vector<int> parents, int steps, std::uint64_t seed)
      : TokenTreeGenerator(prompt, std::move(parents)), random_(seed), steps_(steps),
        children_(this->parents().size()) {
    for (std::size_t i = 1; i < this->parents().size(); ++i)
      children_[this->parents()[i]].push_back(static_cast<int>(i));
  }

  int steps() const override { return steps_; }

private:
  /// Goes down from token 0, always to the child whose guess is right, until none is.
  Accepted accept(int) override {
    int last = 0;
    for (int depth = 0;; ++depth) {
      double draw = random_.between(0, (1 << 30) - 1) * 0x1p-30;
      int right = -1;
      for (std::size_t rank = 0; rank < children_[last].size() && right < 0; ++rank) {
        draw -= chanceOf(depth, static_cast<int>(rank));
        if (draw < 0)
          right = children_[last][rank];
      }
      if (right < 0)
        return {last, 0};
      last = right;
    }
  }

  Random random_;
  int steps_;
  std::vector<std::vector<int>> children_;
};

std::unique_ptr<Generator> makeTokenTree(Parameters &parameters, std::uint64_t seed) {
  const int prompt = parameters.integer("prompt", 0, kMostTokens);
  const int tokens = parameters.integer("tokens", 1, 1 << 16);
  const int steps = parameters.integer("steps", 1, kMostSteps);
  const bool isMedusa = parameters.choice("shape", {"medusa", "random"}) == "medusa";
  Random random(seed);
  const std::uint64_t shapeSeed = random.seed();
  return std::make_unique<GeneratedTokenTree>(
      prompt, isMedusa ? medusaParents(tokens) : randomParents(tokens, Random(shapeSeed)), steps,
      random.seed());
}

} // namespace

std::vector<Recipe> tokenTreeRecipes() {
  return {{{"token_tree",
            "speculative decoding: a tree of guessed tokens below one sequence, each a query",
            {{"prompt", "4000", "tokens of the sequence at step 1"},
             {"tokens", "64", "guessed tokens a step, the last sure one included"},
             {"shape", "medusa", "medusa: the likeliest guesses of each head; random"},
             {"steps", "256", "number of steps"}}},
           makeTokenTree}};
}

} // namespace deft::workload
