#include "runtime/peers/Peers.h"

#include "runtime/api/Agreement.h"
#include "runtime/api/RunTensors.h"
#include "runtime/api/Sized.h"

#include <deft/c/peers.h>

using namespace deft;
using namespace deft::api;
using deft::peers::Agreement;

struct deft_peers {
  peers::Peers peers;
};

namespace {

Result<void> agree(deft_peers &group, const deft_agreement *given) {
  const auto own = agreementOf(given, group.peers.count(), group.peers.rank());
  if (!own)
    return own.error();
  return group.peers.agree(own->hashes, own->kind, own->holders);
}

Result<void> merge(deft_peers &group, const deft_state *own, int headBegin, int headCount,
                   const deft_state *to) {
  const auto dtype = stateDtype("own.out", *own);
  if (!dtype)
    return dtype.error();
  const auto type = stateTypeOf(*dtype, "own.out");
  if (!type)
    return type.error();
  const auto given = checkState("own", own, *dtype, {});
  if (!given)
    return given.error();
  const auto wanted = checkStates(nullptr, 0, to, *dtype, {});
  if (!wanted)
    return wanted.error();
  if (auto checked = checkMergedHeads(*given, headBegin, headCount, *wanted); !checked)
    return checked;
  return group.peers.merge(
      {.out = given->to.out,
       .lse = given->to.lse,
       .type = *type,
       .queries = given->queries,
       .heads = given->heads,
       .dim = given->dim},
      {.begin = headBegin, .count = headCount, .out = wanted->to.out, .lse = wanted->to.lse});
}

} // namespace

deft_status deft_agreement_get_hashes(const deft_agreement *of, deft_agreement_hashes *hashes) {
  return call({{"of", of}, {"hashes", hashes}}, [&]() -> Result<void> {
    const auto own = hashesOf(of);
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
