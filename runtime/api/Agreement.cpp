#include "runtime/api/Agreement.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/VariantJson.h"
#include "runtime/api/Attention.h"
#include "runtime/api/GpuPlan.h"
#include "runtime/api/Plan.h"
#include "runtime/api/Ranks.h"
#include "runtime/api/Sized.h"
#include "runtime/api/Tree.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace deft::api {

using peers::Agreement;

namespace {

std::string optionsText(const Plan &plan) {
  const deft_plan_options &options = plan.options;
  std::string text;
  for (const int value : {options.partition, options.chunk_tokens, options.is_invariant})
    text += std::to_string(value) + " ";
  // Others depend on the part of the tree that the rank holds.
  return plan.isInvariant() ? text + config::toJson(plan.config).dump() : text;
}

Result<Agreement> hashesOf(const deft_agreement &known) {
  if (known.plan && known.gpu_plan)
    return wrong("deft_agreement::gpu_plan", "is given beside a plan of the processor");
  Agreement own;
  own.hashes[Agreement::Version] = peers::hashOf(deft_version());
  if (known.attention)
    own.hashes[Agreement::Attention] = peers::hashOf(spec::toJson(known.attention->variant()).dump());
  if (known.plan)
    own.hashes[Agreement::Options] = peers::hashOf(optionsText(*known.plan));
  if (known.gpu_plan)
    own.hashes[Agreement::Options] = peers::hashOf(optionsText(known.gpu_plan->host));
  if (known.tree)
    own.hashes[Agreement::Tree] = std::max<std::uint64_t>(tree::hashOf(known.tree->tree()), 1);
  return own;
}

} // namespace

Result<Agreement> hashesOf(const deft_agreement *given) {
  const auto known = readSized("deft_agreement", given);
  if (!known)
    return known.error();
  return hashesOf(*known);
}

Result<RanksAgreement> agreementOf(const deft_agreement *given, int count, int rank) {
  const auto known = readSized("deft_agreement", given);
  if (!known)
    return known.error();
  auto hashes = hashesOf(*known);
  if (!hashes)
    return hashes.error();
  const tree::Ranks *const ranks = known->tree ? known->tree->tree().ranks() : nullptr;
  if (ranks && (ranks->count() != count || ranks->rank() != rank))
    return wrong("deft_agreement::tree", "is that of rank " + std::to_string(ranks->rank()) + " of " +
                                             std::to_string(ranks->count()) + ", and this is rank " +
                                             std::to_string(rank) + " of " + std::to_string(count));
  const bool isByNode = ranks && ranks->layout() == tree::RankLayout::ByNode;
  return RanksAgreement{*hashes, isByNode ? "node" : "page",
                        ranks ? std::span(ranks->holders()) : std::span<const int>()};
}

} // namespace deft::api
