/// What a step of a beam search costs the host: reorder (who goes on from whom, which pages are free, where
/// new tokens lie), the plan, and writing it where the copy to the GPU begins. On one core.
///
///   beam_bench [--searches N] [--tree]
///
/// Beams over one history, heads 16/8, head dim 128, 132 blocks with items of 128 rows (an H200); each beam
/// goes on from one that is drawn at random, so 37 % of them end in each step. Shown is the step at which
/// beams have so many tokens of their own, the minimum and the median over searches, in microseconds. The
/// goal is 300 us in all for 5,000 beams with 3 tokens, 600 with 128. With --tree the same searches by
/// SequenceTree and Planner, a call for each beam, as it is done without tree::BeamTree. Every plan of a
/// first search is verified before anything is timed.

#include "runtime/exec/cuda/PlanRoom.h"
#include "runtime/plan/BeamPlanner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/SequenceTree.h"
#include "tests/bench/SecondsSince.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace deft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 132;

struct Shape {
  int beams, history, own, pageSize;
};
constexpr Shape kShapes[] = {{512, 500, 3, 16},     {512, 2000, 3, 16},   {512, 8000, 3, 16},
                             {2000, 2000, 3, 16},   {5000, 500, 3, 16},   {5000, 2000, 3, 16},
                             {5000, 8000, 3, 16},   {5000, 2000, 3, 1},   {512, 2000, 128, 16},
                             {5000, 2000, 128, 16}, {5000, 8000, 128, 16}};

config::Config gpuConfig() {
  config::Config config;
  config.partition = spec::Partition::Auto;
  config.phases = {{.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
  return config;
}

plan::VariantFacts factsOf(const Shape &shape) {
  return {.ratio = 2, .kvHeads = 8, .pageSize = shape.pageSize};
}

/// Where the copy begins, page-locked on a GPU machine.
class Target {
public:
  void lend(plan::RunList &runs) {
    if (memory_)
      runs.lend({memory_,
                 {reinterpret_cast<abi::Run *>(memory_->data() + sections_.runs),
                  static_cast<std::size_t>(room_.runs)}});
  }
  std::size_t write(const plan::Plan &plan) {
    if (!memory_ || !room_.check(plan)) {
      room_.growFor(plan);
      sections_ = exec::PlanSections::of(room_);
      memory_ = std::make_shared<std::vector<std::byte>>(sections_.end);
      filled_ = exec::FilledCounts::all(room_);
    }
    return exec::writeSections(plan, room_, sections_, memory_->data(), filled_);
  }

private:
  exec::PlanRoom room_;
  exec::PlanSections sections_;
  exec::FilledCounts filled_;
  std::shared_ptr<std::vector<std::byte>> memory_;
};

struct StepUs {
  double reorder = 0, plan = 0, write = 0;
  double all() const { return reorder + plan + write; }
};

class Search {
public:
  explicit Search(const Shape &shape) : shape_(shape) {}
  virtual ~Search() = default;
  virtual void start() = 0;
  virtual void reorder(const std::vector<int> &parents) = 0;
  virtual bool plan(plan::Plan &plan) = 0;
  virtual tree::KvTree tree() const = 0;
  virtual int stretches() const = 0;

protected:
  Shape shape_;
};

class ByBeams : public Search {
public:
  explicit ByBeams(const Shape &shape) : Search(shape) {
    const int historyPages = (shape.history + shape.pageSize - 1) / shape.pageSize;
    beams_.emplace(
        tree::BeamTree::make({shape.pageSize, historyPages, shape.beams * (shape.own + 1)}).value());
  }
  void start() override {
    const tree::BeamTree::History history{{0, shape_.history}};
    (void)beams_->start({&history, 1});
  }
  void reorder(const std::vector<int> &parents) override {
    if (!beams_->advance(parents))
      std::abort();
  }
  bool plan(plan::Plan &plan) override {
    return planner_.make(*beams_, factsOf(shape_), gpuConfig(), kBlocks, plan).ok();
  }
  tree::KvTree tree() const override { return beams_->toTree(); }
  int stretches() const override { return static_cast<int>(beams_->stretches().size()); }

private:
  std::optional<tree::BeamTree> beams_;
  plan::BeamPlanner planner_;
};

class ByTree : public Search {
public:
  using Search::Search;
  void start() override {
    sequences_.emplace(
        tree::SequenceTree::make({shape_.pageSize, std::int64_t{shape_.beams} * (shape_.own + 1) + 10000})
            .value());
    root_ = sequences_->addNode(-1, shape_.history).value();
    leaves_ = {root_};
  }
  void reorder(const std::vector<int> &parents) override {
    heirs_.assign(leaves_.size(), 0);
    for (const int parent : parents)
      ++heirs_[parent];
    next_.clear();
    queries_.clear();
    sequences_->clearQueries(); // else each node that is pruned asks all of them
    for (const int parent : parents) {
      int leaf = leaves_[parent];
      if (heirs_[parent] > 1 || leaf == root_)
        leaf = sequences_->fork(leaf).value();
      (void)sequences_->append(leaf, 1).value();
      next_.push_back(leaf);
      queries_.push_back({leaf, tree::Query::kWhole});
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i)
      if (heirs_[i] == 0)
        pruneUpwards(leaves_[i]);
    leaves_.swap(next_);
    (void)sequences_->setQueries(queries_);
  }
  bool plan(plan::Plan &plan) override {
    return planner_.make(sequences_->tree(), factsOf(shape_), gpuConfig(), kBlocks, plan).ok();
  }
  tree::KvTree tree() const override { return sequences_->tree(); }
  int stretches() const override { return sequences_->tree().aliveNodes(); }

private:
  void pruneUpwards(int node) {
    while (node != root_) {
      const int parent = sequences_->tree().nodes()[node].parent;
      (void)sequences_->prune(node);
      if (sequences_->tree().nodes()[parent].firstChild >= 0)
        return;
      node = parent;
    }
  }
  std::optional<tree::SequenceTree> sequences_;
  int root_ = 0;
  std::vector<int> leaves_, next_, heirs_;
  std::vector<tree::Query> queries_;
  plan::Planner planner_;
};

/// The last step of each search is timed.
bool measure(const Shape &shape, Search &search, int searches) {
  std::mt19937 random(1);
  const auto drawn = [&](int beams) {
    std::vector<int> parents(static_cast<std::size_t>(shape.beams));
    for (int &parent : parents)
      parent = static_cast<int>(random() % static_cast<unsigned>(beams));
    return parents;
  };
  plan::Plan plan;
  Target target;
  std::vector<StepUs> steps;
  std::size_t bytes = 0;
  for (int s = 0; s <= searches; ++s) {
    search.start();
    for (int token = 1; token <= shape.own; ++token) {
      const std::vector<int> parents = drawn(token == 1 ? 1 : shape.beams);
      StepUs us;
      auto begin = Clock::now();
      search.reorder(parents);
      us.reorder = 1e6 * secondsSince(begin);
      if (shape.own - token > 4) // as in a search, but it is not what is timed
        continue;
      begin = Clock::now();
      target.lend(plan.runs);
      if (!search.plan(plan))
        return false;
      us.plan = 1e6 * secondsSince(begin);
      begin = Clock::now();
      bytes = target.write(plan);
      us.write = 1e6 * secondsSince(begin);
      if (s == 0) {
        const tree::KvTree tree = search.tree();
        plan::Plan same = plan;
        same.generation = tree.generation();
        if (const auto verified = plan::verify(same, tree, factsOf(shape), gpuConfig()); !verified) {
          std::printf("%s\n", verified.error().message.c_str());
          return false;
        }
      } else if (token == shape.own) {
        steps.push_back(us);
      }
    }
  }
  std::sort(steps.begin(), steps.end(), [](const StepUs &a, const StepUs &b) { return a.all() < b.all(); });
  const StepUs &least = steps.front(), &median = steps[steps.size() / 2];
  std::printf(
      "%5d beams x %4d tokens, %3d own, pages of %2d: reorder %7.1f, plan %7.1f, write %6.1f, all %7.1f us "
      "(median %7.1f); %6d stretches, %4zu items, %6zu runs, %8zu bytes\n",
      shape.beams, shape.history, shape.own, shape.pageSize, least.reorder, least.plan, least.write,
      least.all(), median.all(), search.stretches(), plan.items.size(), plan.runs.size(), bytes);
  return true;
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  int searches = 30;
  bool byTree = false;
  CLI::App app("Times steps of beam searches on the host");
  app.add_option("--searches", searches, "Of each shape")->check(CLI::PositiveNumber);
  app.add_flag("--tree", byTree, "By SequenceTree and Planner, a call for each beam");
  CLI11_PARSE(app, argc, argv);
  for (const deft::Shape &shape : deft::kShapes) {
    const std::unique_ptr<deft::Search> search =
        byTree ? std::unique_ptr<deft::Search>(std::make_unique<deft::ByTree>(shape))
               : std::make_unique<deft::ByBeams>(shape);
    if (!deft::measure(shape, *search, searches))
      return 1;
  }
  return 0;
}
