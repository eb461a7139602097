// Does a window cost what it holds, however long the context is?
//
// One prompt and sixteen branches of 20 tokens, Llama 3's heads, pages of 16 tokens, on this machine's
// processors, through the public API: windows of 128 and 4,096 tokens, and four first tokens and 4,096, over
// prompts of 1,000 tokens more than the window, of 16,384, 65,536 and 131,072. A step at 131,072 may take 1.1
// times what the first takes; so may its plan. Lengths take turns, and a time is the fastest of the rounds:
// what else runs on the machine only adds. The page table has -1 where nobody sees anything.
//
//   window_bench [ROUNDS] [THREADS]

#include "tests/bench/SecondsSince.h"

#include <deft/deft.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBranches = 16, kBranchTokens = 20, kPage = 16, kHeads = 32, kKvHeads = 8, kDim = 128;
constexpr double kMost = 1.1;

template <typename T> T need(deft::Result<T> result) {
  if (!result)
    throw std::runtime_error(result.error().message);
  return std::move(*result);
}
void need(const deft::Result<void> &result) {
  if (!result)
    throw std::runtime_error(result.error().message);
}

struct Case {
  const char *name;
  std::string mask;
  int window, sinks;
};

/// A prompt of some length, with its branches behind it, and a table of the pages that somebody may see.
struct Subject {
  int prompt;
  deft::Tree tree;
  deft::Plan plan;
  std::vector<int> pages;
  double runUs = 1e30, planUs = 1e30;

  Subject(const deft::Attention &attention, const Case &own, int length, int threads)
      : prompt(length), plan(make(attention, length, threads)) {
    const int tokens = prompt + kBranches * 2 * kPage;
    pages.assign(static_cast<std::size_t>(tokens / kPage + 1), -1);
    const int first = std::max(0, prompt + kBranchTokens - own.window) / kPage;
    int next = 0; // the pool holds no more pages than are seen
    for (int page = 0; page < static_cast<int>(pages.size()); ++page)
      if (page >= first || page * kPage < own.sinks)
        pages[static_cast<std::size_t>(page)] = next++;
  }

  deft::Plan make(const deft::Attention &attention, int length, int threads) {
    const int root = need(tree.addRoot(length, 0));
    const int behind = (length + kPage - 1) / kPage * kPage;
    for (int i = 0; i < kBranches; ++i)
      need(tree.addQuery(need(tree.addChild(root, kBranchTokens, behind + i * 2 * kPage))));
    return need(deft::Plan::make(attention, tree, {.workers = threads}));
  }
};

/// Gives whether each length is within its limit.
bool measure(const Case &own, int rounds, int threads) {
  const auto attention = need(deft::compileSpec("import \"library.deft\"; attention a { query_heads = 32; "
                                                "kv_heads = 8; head_dim = 128; mask = tree && " +
                                                own.mask + "; }"));
  const auto runtime = need(deft::Runtime::create({.threads = threads}));
  std::vector<Subject> subjects;
  subjects.reserve(4);
  for (const int length : {own.window + own.sinks + 1000, 16384, 65536, 131072})
    subjects.emplace_back(attention, own, length, threads);
  const std::size_t poolTokens =
      static_cast<std::size_t>(own.window + own.sinks + (kBranches + 2) * 2 * kPage + 16 * kPage);
  std::vector<std::uint16_t> q(std::size_t{kBranches} * kHeads * kDim), out(q.size());
  std::vector<std::uint16_t> k(poolTokens * kKvHeads * kDim), v(k.size());
  std::mt19937 random(1);
  for (auto *values : {&q, &k, &v})
    for (std::uint16_t &value : *values) // between -1 and 1
      value = static_cast<std::uint16_t>(0x3f00 | (random() & 0x807f));
  for (int round = 0; round < rounds; ++round)
    for (Subject &subject : subjects) {
      auto start = Clock::now();
      subject.plan = need(deft::Plan::make(attention, subject.tree, {.workers = threads}));
      subject.planUs = std::min(subject.planUs, 1e6 * deft::secondsSince(start));
      start = Clock::now();
      need(runtime.run(attention, subject.plan,
                       {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = subject.pages},
                       {.out = out.data()}));
      subject.runUs = std::min(subject.runUs, 1e6 * deft::secondsSince(start));
    }
  bool isWithin = true;
  for (const Subject &subject : subjects) {
    const double ratio = subject.runUs / subjects[0].runUs;
    isWithin &= ratio <= kMost;
    std::printf("%-16s %8d %10.1f us %6.3f%s   plan %8.1f us, %lld tokens read\n", own.name, subject.prompt,
                subject.runUs, ratio, ratio <= kMost ? " " : "!", subject.planUs,
                static_cast<long long>(subject.plan.summary().tokensRead));
  }
  return isWithin;
}

} // namespace

int main(int count, char **arguments) try {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 50,
            threads = count > 2 ? std::atoi(arguments[2]) : 1;
  const std::array<Case, 3> cases{{{"window 128", "sliding_window(128)", 128, 0},
                                   {"window 4096", "sliding_window(4096)", 4096, 0},
                                   {"sink 4, 4096", "attention_sink(4, 4096)", 4096, 4}}};
  std::printf("%-16s %8s %13s %6s\n", "mask", "prompt", "a step", "ratio");
  bool areWithin = true;
  for (const Case &own : cases)
    areWithin &= measure(own, rounds, threads);
  std::printf("! beyond %.1f times the first\n", kMost);
  return areWithin ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "window_bench: %s\n", error.what());
  return 1;
}
