#include <deft/deft.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  auto attention = deft::compileSpec("attention mine { query_heads = 8; kv_heads = 2; head_dim = 64;"
                                     "                 kv_cache = contiguous; }")
                       .value();
  auto runtime = deft::Runtime::create().value();

  deft::Tree tree; // a prompt of 100 tokens with two branches
  const int prompt = tree.addRoot(100, /*location=*/0).value();
  tree.addQuery(tree.addChild(prompt, 5, /*location=*/100).value()).value();
  tree.addQuery(tree.addChild(prompt, 9, /*location=*/105).value()).value();
  const auto plan = deft::Plan::make(attention, tree).value();

  const std::uint16_t one = 0x3f80; // 1 in bf16: the mean of values that are all 1 is 1
  std::vector<std::uint16_t> q(2 * 8 * 64), k(114 * 2 * 64), v(k.size(), one), out(q.size());
  runtime.run(attention, plan, {.q = q.data(), .k = k.data(), .v = v.data()}, {.out = out.data()}).value();
  const bool isRight = out == std::vector<std::uint16_t>(out.size(), one);
  std::puts(isRight ? "every output is 1" : "WRONG");
  return isRight ? 0 : 1;
}
