#pragma once

#include "tests/gpu/execution/Rig.h"

#include <numeric>

/// A step that times are taken of.
namespace deft::gpu_test {

/// A prompt and `queries` branches, back to back in the cache.
struct FewShot {
  FewShot(int queries, int promptTokens, int branchTokens) : slack(64) {
    const int prompt = tree.addRoot(promptTokens, 0).value();
    int location = promptTokens;
    for (int i = 0; i < queries; ++i) {
      leaves.push_back(tree.addChild(prompt, branchTokens, location).value());
      tree.addQuery(leaves.back()).value();
      location += branchTokens + slack;
    }
    tokens = location;
  }
  Tree tree;
  std::vector<int> leaves;
  int slack = 0; ///< tokens that a branch may gain
  int tokens = 0;
};

/// Of a run whose result nobody reads.
struct Memory {
  Memory(const Subject &subject, int tokens, int queries)
      : q(subject.device), k(subject.device), v(subject.device), out(subject.device), table(subject.device) {
    const spec::Variant &variant = subject.variant();
    const std::size_t cache =
        2ull * static_cast<std::size_t>(tokens + 256) * variant.kvHeads * variant.tensors.k.dim;
    const std::size_t rows =
        2ull * static_cast<std::size_t>(queries) * variant.queryHeads * variant.tensors.q.dim;
    const int pageSize = variant.cache.pageSize;
    std::vector<int> pages(pageSize == 0 ? 0 : static_cast<std::size_t>(tokens / pageSize + 1));
    std::iota(pages.begin(), pages.end(), 0);
    isReady = q.reserve(rows, "q").ok() && k.reserve(cache, "k").ok() && v.reserve(cache, "v").ok() &&
              out.reserve(rows, "out").ok() && table.upload(pages, "the page table").ok() &&
              q.fill(0, rows).ok() && k.fill(0, cache).ok() && v.fill(0, cache).ok();
  }
  device::Buffer q, k, v, out, table;
  bool isReady = false;
};

} // namespace deft::gpu_test
