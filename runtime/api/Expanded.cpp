#include "runtime/api/Expanded.h"

#include "runtime/api/Checks.h"
#include "runtime/api/GpuPlan.h"
#include "runtime/api/Plan.h"
#include "runtime/plan/Forms.h"

#include <algorithm>
#include <string>
#include <utility>

namespace deft::api {

Result<void> Division::check(const deft_tree &tree) const {
  if (!isOf(tree))
    return usage("the tree has other nodes or queries than when it was divided between two plans",
                 "divide it again");
  return tree::checkExpanded(tree.tree(), chosen);
}

namespace {

/// One of the two plans.
struct FormPlan {
  const char *name; ///< of the argument
  Plan &plan;
  config::CostCoefficients prices;

  int heads() const { return plan.facts.ratio * plan.facts.kvHeads; }
  plan::FormRun run() const { return {plan.facts, plan.config, prices, plan.workers}; }
};

Result<void> checkForms(const FormPlan &absorbed, const FormPlan &expanded) {
  const spec::Tensors &latent = absorbed.plan.facts.tensors, &own = expanded.plan.facts.tensors;
  const auto is = [](const FormPlan &part, const std::string &text) {
    return wrong(part.name, "is a plan of " + part.plan.attention + ", " + text);
  };
  if (!latent.valueInKey)
    return is(absorbed, "whose cache is not latent");
  if (own.valueInKey)
    return is(expanded, "whose cache is latent");
  for (const FormPlan *part : {&absorbed, &expanded})
    if (!part->plan.givesLse) {
      Error error = is(*part, "which gives no lse to merge by");
      error.hint = "write `output = ... with lse` in the spec";
      return error;
    }
  for (const FormPlan *part : {&absorbed, &expanded})
    if (!part->plan.whyNotOverRanks.empty())
      return usage(part->plan.whyNotOverRanks + ": its trees are read in one run");
  if (absorbed.heads() != expanded.heads())
    return is(expanded, "which has " + std::to_string(expanded.heads()) + " query heads, and " +
                            absorbed.plan.attention + " has " + std::to_string(absorbed.heads()));
  if (expanded.plan.facts.ratio != 1)
    return is(expanded, "which has " + std::to_string(expanded.plan.facts.kvHeads) + " KV heads for " +
                            std::to_string(expanded.heads()) +
                            " query heads; expanded K and V are of each head");
  if (const int rope = latent.k.dim - latent.v.dim; own.k.dim <= rope)
    return is(expanded, "whose key_dim of " + std::to_string(own.k.dim) +
                            " has no room beside the rotary part of " + std::to_string(rope));
  if (latent.out.dtype != own.out.dtype)
    return is(expanded, "whose output is of another type than that of " + absorbed.plan.attention +
                            ", and results of two types do not merge");
  return {};
}

Result<void> checkTree(const FormPlan &absorbed, const FormPlan &expanded, const deft_tree &tree,
                       deft_expanded_choice choice) {
  if (tree.beams())
    return wrong("tree", "has beams, which are read in one run");
  if (!tree.drafted().empty())
    return usage("a tree that is divided between two plans does not support drafts whose tree comes later",
                 "give each draft's query by a tree");
  if (tree.tree().ranks())
    return wrong("tree", "is over ranks, and cannot be divided between two plans as well");
  if (choice == DEFT_EXPANDED_BY_PRICE && (absorbed.plan.isInvariant() || expanded.plan.isInvariant()))
    return wrong("choice", "is by price, which depends on other requests, and a plan is invariant",
                 "let the second plan read all expanded nodes");
  return {};
}

Result<std::vector<tree::ExpandedNode>> nodesOf(const deft_expanded_node *nodes, std::size_t count) {
  if (auto checked = checkArray("nodes", nodes, count); !checked)
    return checked.error();
  std::vector<tree::ExpandedNode> own;
  for (std::size_t i = 0; i < count; ++i)
    own.push_back({nodes[i].node, nodes[i].tokens, nodes[i].location});
  return own;
}

Result<std::shared_ptr<const Division>> makeDivision(const FormPlan &absorbed, const FormPlan &expanded,
                                                     const deft_tree &tree,
                                                     std::vector<tree::ExpandedNode> nodes,
                                                     deft_expanded_choice choice) {
  if (auto checked = tree::checkExpanded(tree.tree(), nodes); !checked)
    return Error(checked.error());
  auto made = std::make_shared<Division>();
  if (choice == DEFT_EXPANDED_ALL)
    made->chosen = nodes;
  else
    for (const int i : plan::cheaperExpanded(tree.tree(), nodes, absorbed.run(), expanded.run()))
      made->chosen.push_back(nodes[static_cast<std::size_t>(i)]);
  made->given = std::move(nodes);
  made->choice = choice;
  made->stamp = tree.stamp;
  made->structure = tree.tree().structureGeneration();
  return std::shared_ptr<const Division>(std::move(made));
}

/// The plan's next tree is read in these parts.
void setDivision(Plan &plan, const std::shared_ptr<const Division> &division, bool isExpanded) {
  plan.division = division;
  plan.readsExpanded = isExpanded;
  plan.stamp = nullptr;
}

Result<void> forgetRoom(deft_plan &) { return {}; }
/// A plan that was made for all of the tree has room for it, and the launches of a captured graph are as
/// large as the room.
Result<void> forgetRoom(deft_gpu_plan &plan) {
  if (plan.host.division || plan.isReserved || plan.device->isFixed())
    return {};
  plan.host.stamp = nullptr;
  exec::PlanRoom room;
  room.items.resize(plan.device->room().items.size());
  return plan.device->setRoom(std::move(room));
}

/// `prepare` is for handles that get another division, and `advance` brings both to the tree.
template <typename Prepare, typename Advance>
Result<std::vector<int>> divide(const FormPlan &absorbed, const FormPlan &expanded, const deft_tree &tree,
                                const deft_expanded_node *nodes, std::size_t count,
                                deft_expanded_choice choice, Prepare &&prepare, Advance &&advance) {
  if (auto checked = checkForms(absorbed, expanded); !checked)
    return checked.error();
  if (auto checked = checkRange("choice", choice, DEFT_EXPANDED_BY_PRICE, DEFT_EXPANDED_ALL); !checked)
    return checked.error();
  if (auto checked = checkTree(absorbed, expanded, tree, choice); !checked)
    return checked.error();
  auto given = nodesOf(nodes, count);
  if (!given)
    return given.error();
  std::shared_ptr<const Division> division = absorbed.plan.division;
  const bool isKept = division && division == expanded.plan.division && division->isOf(tree) &&
                      division->choice == choice && division->given == *given;
  if (!isKept) {
    auto made = makeDivision(absorbed, expanded, tree, std::move(*given), choice);
    if (!made)
      return made.error();
    division = std::move(*made);
    if (auto prepared = prepare(); !prepared)
      return prepared.error();
    setDivision(absorbed.plan, division, false);
    setDivision(expanded.plan, division, true);
  }
  if (auto advanced = advance(); !advanced)
    return advanced.error();
  std::vector<int> chosen;
  for (const tree::ExpandedNode &node : division->chosen)
    chosen.push_back(node.node);
  return chosen;
}

template <typename Handle> Result<void> forgetRooms(Handle &absorbed, Handle &expanded) {
  const auto forgotten = forgetRoom(absorbed);
  return forgotten ? forgetRoom(expanded) : forgotten;
}

template <typename Handle>
Result<void> advanceBoth(Handle &absorbed, Handle &expanded, const deft_tree &tree) {
  for (Handle *handle : {&absorbed, &expanded})
    if (const auto advanced = handle->advance(tree); !advanced)
      return advanced.error();
  return {};
}

template <typename Handle, typename PartOf>
deft_status divideAs(Handle *absorbed, Handle *expanded, const deft_tree *tree,
                     const deft_expanded_node *nodes, std::size_t count, deft_expanded_choice choice,
                     std::int32_t **chosen, std::size_t *chosenCount, PartOf &&partOf, DEFT_CALLER) {
  clear(chosen);
  const auto divides = [&]() -> Result<void> {
    if (absorbed == expanded)
      return wrong("expanded", "is the same plan as the absorbed one");
    const auto found = divide(
        partOf("absorbed", *absorbed), partOf("expanded", *expanded), *tree, nodes, count, choice,
        [&] { return forgetRooms(*absorbed, *expanded); },
        [&] { return advanceBoth(*absorbed, *expanded, *tree); });
    if (!found)
      return found.error();
    giveArray(*found, chosen, chosenCount, [](int node) { return node; });
    return {};
  };
  return call({{"absorbed", absorbed},
               {"expanded", expanded},
               {"tree", tree},
               {"chosen", chosen},
               {"chosen_count", chosenCount}},
              divides, function);
}

} // namespace

} // namespace deft::api

using namespace deft::api;

deft_status deft_plan_divide(deft_plan *absorbed, deft_plan *expanded, const deft_tree *tree,
                             const deft_expanded_node *nodes, size_t count, deft_expanded_choice choice,
                             int32_t **chosen, size_t *chosen_count) {
  return divideAs(absorbed, expanded, tree, nodes, count, choice, chosen, chosen_count,
                  [](const char *name, deft_plan &plan) { return FormPlan{name, plan, plan.config.cost}; });
}

deft_status deft_gpu_plan_divide(deft_gpu_plan *absorbed, deft_gpu_plan *expanded, const deft_tree *tree,
                                 const deft_expanded_node *nodes, size_t count, deft_expanded_choice choice,
                                 int32_t **chosen, size_t *chosen_count) {
  return divideAs(absorbed, expanded, tree, nodes, count, choice, chosen, chosen_count,
                  [](const char *name, deft_gpu_plan &plan) {
                    return FormPlan{name, plan.host, plan.host.kernelPrices()};
                  });
}
