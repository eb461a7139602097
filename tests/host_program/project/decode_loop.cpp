// A small server: branches of a prompt decode step by step, fork, end, and verify a draft. The cache is the
// host's own, two layers of it, paged by a table that is out of order. Every output of every step is compared
// with PlainAttention, which knows only the sequences. Then the same in two threads at once, each with a
// runtime of its own.
//
// usage: decode_loop [PACKAGE]       without a package the spec is compiled
#include "PlainAttention.h"

#include <deft/deft.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <thread>

namespace {

constexpr char kSpec[] = R"(
attention host_program {
  query_heads = 4;
  kv_heads    = 2;
  head_dim    = 64;
  kv_cache    = paged(page_size = 16, order = nhd);
  scale       = 0.25;
  output      = bf16 with lse;
})";
constexpr Shape kShape{4, 2, 64, 0.25};
constexpr int kLayers = 2, kPageSize = 16, kPages = 96;
constexpr int kTokenElements = kShape.kvHeads * kShape.headDim;

/// K and V of all layers. Places are given out in stretches and never taken back, as a short program may.
class HostCache {
public:
  explicit HostCache(std::mt19937 &random) : table_(kPages), random_(random) {
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random);
    for (auto &tensor : {&k_, &v_})
      tensor->assign(kLayers, std::vector<std::uint16_t>(kPages * kPageSize * kTokenElements, 0x7fff)); // NaN
  }

  /// Room for so many tokens; their first place. Nodes need not begin on a page.
  int reserve(int tokens) {
    const int first = next_;
    next_ += tokens;
    return next_ <= kPages * kPageSize ? first : -1;
  }

  /// A new token at a place, in every layer.
  void write(int location) {
    for (int layer = 0; layer < kLayers; ++layer)
      for (auto *tensor : {&k_[layer], &v_[layer]})
        for (int i = 0; i < kTokenElements; ++i)
          (*tensor)[at(location) + i] = toBf16(normal_(random_));
  }

  void copy(int to, int from) {
    for (int layer = 0; layer < kLayers; ++layer)
      for (auto *tensor : {&k_[layer], &v_[layer]})
        std::copy_n(tensor->begin() + at(from), kTokenElements, tensor->begin() + at(to));
  }

  TokenVectors key(int layer, int location) const { return token(k_[layer], location); }
  TokenVectors value(int layer, int location) const { return token(v_[layer], location); }

  deft::Inputs inputs(int layer, const std::vector<std::uint16_t> &q) const {
    return {.q = q.data(), .k = k_[layer].data(), .v = v_[layer].data(), .pageTable = table_};
  }

private:
  std::ptrdiff_t at(int location) const {
    return (static_cast<std::ptrdiff_t>(table_[location / kPageSize]) * kPageSize + location % kPageSize) *
           kTokenElements;
  }
  TokenVectors token(const std::vector<std::uint16_t> &tensor, int location) const {
    return TokenVectors(tensor.begin() + at(location), tensor.begin() + at(location) + kTokenElements);
  }

  std::vector<int> table_;
  std::vector<std::vector<std::uint16_t>> k_, v_;
  int next_ = 0;
  std::mt19937 &random_;
  std::normal_distribution<float> normal_;
};

/// A token as the host remembers it: what was written for it, layer by layer.
struct Token {
  std::vector<TokenVectors> k, v;
};

/// What the host thinks of one query: the whole sequence that it must see.
using Sequence = std::vector<Token>;

struct Branch {
  int node = 0;
  Sequence sequence;
};

class Server {
public:
  Server(const deft::Attention &attention, unsigned seed, deft::PlanOptions options)
      : attention_(attention), runtime_(deft::Runtime::create({.threads = 2}).value()), options_(options),
        random_(seed), cache_(random_) {}

  /// The whole life; throws on an error of the library, returns the largest error of an output.
  double live() {
    Branch prompt{tree_.addRoot(0, cache_.reserve(64)).value(), {}};
    for (int i = 0; i < 37; ++i)
      grow(prompt);
    for (int i = 0; i < 3; ++i)
      branches_.push_back(fork(prompt));
    for (int step = 0; step < 24; ++step) {
      if (step == 5) { // a branch goes on in two ways
        const Branch parent = branches_[1];
        branches_[1] = fork(parent);
        branches_.push_back(fork(parent));
      }
      if (step == 9) { // one ends
        tree_.prune(branches_[0].node).value();
        branches_.erase(branches_.begin());
      }
      if (step == 13)
        verifyDraft(branches_[0]);
      if (step == 17) // another parts from the middle of the prompt
        branches_.push_back(fork(prompt, 20));
      for (Branch &branch : branches_)
        grow(branch);
      for (const Branch &branch : branches_)
        asked_.push_back({branch.node, branch.sequence});
      runStep();
    }
    return worst_;
  }
  int grownInPlace() const { return grownInPlace_; }

private:
  struct Asked {
    int node;
    Sequence sequence;
  };

  Token remember(int location) const {
    Token token;
    for (int layer = 0; layer < kLayers; ++layer) {
      token.k.push_back(cache_.key(layer, location));
      token.v.push_back(cache_.value(layer, location));
    }
    return token;
  }

  void grow(Branch &branch) {
    const deft::Node node = tree_.node(branch.node);
    cache_.write(node.location + node.tokens);
    tree_.append(branch.node).value();
    branch.sequence.push_back(remember(node.location + node.tokens));
  }

  Branch fork(const Branch &from, std::optional<int> position = std::nullopt) {
    Branch branch{tree_.fork(from.node, position).value(), from.sequence};
    if (position)
      branch.sequence.resize(static_cast<std::size_t>(tree_.node(branch.node).position));
    tree_.place(branch.node, cache_.reserve(48)).value();
    return branch;
  }

  /// Three drafted tokens in two ways below the branch, all asked at once; the first two of one way are
  /// accepted.
  void verifyDraft(Branch &branch) {
    Branch first = fork(branch);
    grow(first);
    Branch left = fork(first), right = fork(first);
    grow(left);
    grow(right);
    for (const Branch *drafted : {&first, &left, &right})
      asked_.push_back({drafted->node, drafted->sequence});
    runStep();
    tree_.clearQueries();
    const deft::Node node = tree_.node(branch.node);
    int to = node.location + node.tokens;
    for (const deft::Stretch &stretch : tree_.accept(branch.node, right.node).value())
      for (int i = 0; i < stretch.tokens; ++i)
        cache_.copy(to++, stretch.location + i);
    branch.sequence = right.sequence;
  }

  /// Queries, plan, all layers, comparison.
  void runStep() {
    std::vector<deft::Query> queries;
    for (const Asked &asked : asked_)
      queries.push_back({asked.node});
    tree_.setQueries(queries).value();
    if (plan_)
      grownInPlace_ += plan_->advance(tree_).value() == deft::Advanced::InPlace;
    else
      plan_.emplace(deft::Plan::make(attention_, tree_, options_).value());
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::size_t rows = asked_.size() * kShape.queryHeads;
      std::vector<std::uint16_t> q(rows * kShape.headDim), out(q.size());
      std::vector<float> lse(rows);
      for (std::uint16_t &value : q)
        value = toBf16(normal_(random_));
      runtime_.run(attention_, *plan_, cache_.inputs(layer, q), {.out = out.data(), .lse = lse.data()})
          .value();
      compare(layer, q, out, lse);
    }
    asked_.clear();
  }

  void compare(int layer, const std::vector<std::uint16_t> &q, const std::vector<std::uint16_t> &out,
               const std::vector<float> &lse) {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      std::vector<const TokenVectors *> keys, values;
      for (const Token &token : asked_[i].sequence) {
        keys.push_back(&token.k[layer]);
        values.push_back(&token.v[layer]);
      }
      for (int head = 0; head < kShape.queryHeads; ++head) {
        const std::size_t row = i * kShape.queryHeads + head;
        const PlainRow plain = plainAttention(kShape, head, &q[row * kShape.headDim], keys, values);
        // Written so that a NaN is not smaller.
        if (const double error = errorOf(plain, &out[row * kShape.headDim], lse[row]); !(error <= worst_))
          worst_ = error;
      }
    }
  }

  deft::Attention attention_;
  deft::Runtime runtime_;
  deft::PlanOptions options_;
  std::mt19937 random_;
  HostCache cache_;
  std::normal_distribution<float> normal_;
  deft::Tree tree_;
  std::optional<deft::Plan> plan_;
  std::vector<Branch> branches_;
  std::vector<Asked> asked_;
  double worst_ = 0;
  int grownInPlace_ = 0;
};

/// bf16 keeps 8 bits: a row is off by some 2^-9 when only its output is rounded.
bool isRight(double error) { return error <= 0x1p-7; }

int live(const deft::Attention &attention) {
  struct {
    const char *name;
    deft::PlanOptions options;
  } const plans[] = {
      {"query", {.partition = deft::Partition::Query}},
      {"node", {.partition = deft::Partition::Node}},
      {"node_chunk", {.partition = deft::Partition::NodeChunk, .chunkTokens = 16}},
      {"flatten", {.partition = deft::Partition::Flatten, .chunkTokens = 32}},
      {"cascade", {.partition = deft::Partition::Cascade}},
      {"union", {.partition = deft::Partition::Union}},
      {"auto", {.partition = deft::Partition::Auto}},
      {"invariant", {.invariant = true}},
  };
  int wrong = 0;
  for (const auto &[name, options] : plans) {
    Server server(attention, 1, options);
    const double error = server.live();
    wrong += !isRight(error) || server.grownInPlace() == 0;
    std::printf("%-10s largest error %.2e, %d steps planned in place\n", name, error, server.grownInPlace());
  }

  double errors[2] = {};
  std::thread threads[2];
  for (unsigned i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] {
      try {
        errors[i] = Server(attention, 2 + i, {}).live();
      } catch (const deft::BadResult &) {
        errors[i] = INFINITY;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  wrong += !isRight(errors[0]) || !isRight(errors[1]);
  std::printf("two at once: largest errors %.2e and %.2e\n", errors[0], errors[1]);
  return wrong;
}

} // namespace

int main(int argc, char **argv) try {
  const auto attention = argc > 1 ? deft::loadPackage(argv[1]) : deft::compileSpec(kSpec);
  const int wrong = live(attention.value());
  std::puts(wrong == 0 ? "right" : "WRONG");
  return wrong == 0 ? 0 : 1;
} catch (const deft::BadResult &bad) {
  std::fprintf(stderr, "error: %s\n", bad.what());
  return 1;
}
