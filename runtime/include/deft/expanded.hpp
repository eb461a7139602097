#pragma once

#include <deft/c/expanded.h>
#include <deft/gpu.hpp>
#include <deft/plan.hpp>
#include <deft/tree.hpp>

#include <span>
#include <vector>

/// A step over a latent cache in two runs: one reads nodes with many readers in expanded form, with K and V
/// of each head; the other reads all other nodes as latents.
///
///   const deft::ExpandedNode nodes[] = {{.node = prompt, .tokens = 8192, .location = 0}};
///   auto chosen = deft::divide(absorbed, expanded, tree, nodes).value(); // each step, in place of advance()
///   runtime.run(latent, absorbed, {.q = q, .k = cache}, {.out = latents, .lse = lse}).value();
///   runtime.run(heads, expanded, {.q = qExpanded, .k = k, .v = v}, {.out = part, .lse = partLse}).value();
///   ... latents times W_UV, then mergeStates of both (merge_states.hpp)
namespace deft {

/// A node whose K and V exist in expanded form as well, in a cache of their own.
struct ExpandedNode {
  int node = 0;
  int tokens = 0;   ///< as many as the node has
  int location = 0; ///< of the first token in the expanded cache; the others follow
};

enum class ExpandedChoice : deft_expanded_choice {
  ByPrice = DEFT_EXPANDED_BY_PRICE, ///< nodes that are cheaper expanded, if they save a second run's cost
  All = DEFT_EXPANDED_ALL,          ///< all given nodes
};

namespace detail {

template <typename Divide, typename Handle>
Result<std::vector<int>> divided(Divide &&divide, Handle *absorbed, Handle *expanded, const deft_tree *tree,
                                 std::span<const ExpandedNode> nodes, ExpandedChoice choice) {
  std::vector<deft_expanded_node> own;
  for (const ExpandedNode &node : nodes)
    own.push_back({node.node, node.tokens, node.location});
  return array<int, std::int32_t>(
      [&](auto to, auto size) {
        return divide(absorbed, expanded, tree, own.data(), own.size(),
                      static_cast<deft_expanded_choice>(choice), to, size);
      },
      [](std::int32_t node) { return node; });
}

} // namespace detail

/// Divides a tree between two plans (deft_plan_divide). Returns the nodes that `expanded` reads.
inline Result<std::vector<int>> divide(Plan &absorbed, Plan &expanded, const Tree &tree,
                                       std::span<const ExpandedNode> nodes,
                                       ExpandedChoice choice = ExpandedChoice::ByPrice) {
  return detail::divided(deft_plan_divide, absorbed.handle(), expanded.handle(), tree.handle(), nodes,
                         choice);
}
/// The same on a GPU; upload both plans afterwards.
inline Result<std::vector<int>> divide(GpuPlan &absorbed, GpuPlan &expanded, const Tree &tree,
                                       std::span<const ExpandedNode> nodes,
                                       ExpandedChoice choice = ExpandedChoice::ByPrice) {
  return detail::divided(deft_gpu_plan_divide, absorbed.handle(), expanded.handle(), tree.handle(), nodes,
                         choice);
}

} // namespace deft
