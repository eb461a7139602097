#include "runtime/peers/Peers.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/VariantJson.h"
#include "runtime/api/Attention.h"
#include "runtime/api/Checks.h"
#include "runtime/api/GpuPlan.h"
#include "runtime/api/Plan.h"
#include "runtime/api/Ranks.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Sized.h"
#include "runtime/api/Tree.h"

#include <deft/c/peers.h>

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace deft;
using namespace deft::api;
using deft::peers::Agreement;

struct deft_peers {
  peers::Peers peers;
};

namespace {

std::string optionsText(const Plan &plan) {
  const deft_plan_options &options = plan.options;
  std::string text;
  for (const int value : {options.partition, options.chunk_tokens, options.is_invariant})
    text += std::to_string(value) + " ";
  // Others depend on the part of the tree that the rank holds.
  return plan.isInvariant() ? text + config::toJson(plan.config).dump() : text;
}

Result<Agreement> agreementOf(const deft_agreement &known) {
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

Result<void> agree(deft_peers &group, const deft_agreement *given) {
  const auto known = readSized("deft_agreement", given);
  if (!known)
    return known.error();
  const auto own = agreementOf(*known);
  if (!own)
    return own.error();
  const tree::Ranks *const ranks = known->tree ? known->tree->tree().ranks() : nullptr;
  if (ranks && (ranks->count() != group.peers.count() || ranks->rank() != group.peers.rank()))
    return wrong("deft_agreement::tree", "is that of rank " + std::to_string(ranks->rank()) + " of " +
                                             std::to_string(ranks->count()) + ", and this is rank " +
                                             std::to_string(group.peers.rank()) + " of " +
                                             std::to_string(group.peers.count()));
  const bool isByNode = ranks && ranks->layout() == tree::RankLayout::ByNode;
  const std::span<const int> holders = ranks ? std::span(ranks->holders()) : std::span<const int>();
  return group.peers.agree(*own, isByNode ? "node" : "page", holders);
}

Result<void> merge(deft_peers &group, const deft_state *own, int headBegin, int headCount,
                   const deft_state *to) {
  const auto dtype = stateDtype(own, 1);
  if (!dtype)
    return dtype.error();
  const auto type = stateTypeOf(*dtype);
  if (!type)
    return type.error();
  const auto given = checkStates(own, 1, own, *dtype, {});
  if (!given)
    return given.error();
  const auto wanted = checkStates(nullptr, 0, to, *dtype, {});
  if (!wanted)
    return wanted.error();
  if (auto checked = checkMergedHeads(*given, headBegin, headCount, *wanted); !checked)
    return checked;
  return group.peers.merge(
      {.out = given->states[0].out,
       .lse = given->states[0].lse,
       .type = *type,
       .queries = given->queries,
       .heads = given->heads,
       .dim = given->dim},
      {.begin = headBegin, .count = headCount, .out = wanted->to.out, .lse = wanted->to.lse});
}

} // namespace

deft_status deft_agreement_get_hashes(const deft_agreement *of, deft_agreement_hashes *hashes) {
  return call({{"of", of}, {"hashes", hashes}}, [&]() -> Result<void> {
    const auto known = readSized("deft_agreement", of);
    if (!known)
      return known.error();
    const auto own = agreementOf(*known);
    if (!own)
      return own.error();
    deft_agreement_hashes values{};
    values.version = own->hashes[Agreement::Version];
    values.attention = own->hashes[Agreement::Attention];
    values.options = own->hashes[Agreement::Options];
    values.tree = own->hashes[Agreement::Tree];
    return writeSized("deft_agreement_hashes", values, hashes);
  });
}

deft_status deft_peers_meet(const deft_peers_options *options, deft_peers **peers) {
  return make({{"options", options}}, peers, [&]() -> Result<std::unique_ptr<deft_peers>> {
    const auto known = readSized("deft_peers_options", options);
    if (!known)
      return known.error();
    if (!known->name)
      return wrong("deft_peers_options::name", "is null");
    auto met = peers::Peers::meet({.name = known->name,
                                   .count = known->count,
                                   .rank = known->rank,
                                   .bytes = known->bytes,
                                   .timeoutSeconds = known->timeout_seconds == 0
                                                         ? peers::PeersOptions{}.timeoutSeconds
                                                         : known->timeout_seconds});
    if (!met)
      return met.error();
    return std::unique_ptr<deft_peers>(new deft_peers{std::move(*met)});
  });
}

void deft_peers_destroy(deft_peers *peers) { delete peers; }

deft_status deft_peers_agree(deft_peers *peers, const deft_agreement *own) {
  return call({{"peers", peers}, {"own", own}}, [&] { return agree(*peers, own); });
}

deft_status deft_peers_merge(deft_peers *peers, const deft_state *own, int32_t head_begin, int32_t head_count,
                             const deft_state *to) {
  return call({{"peers", peers}, {"own", own}, {"to", to}},
              [&] { return merge(*peers, own, head_begin, head_count, to); });
}
