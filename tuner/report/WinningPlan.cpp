#include "tuner/report/WinningPlan.h"

#include "compiler/kernels/Occupancy.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/VariantSignature.h"
#include "runtime/plan/report/PlanReport.h"
#include "tuner/workload/Similar.h"
#include "tuner/workload/Workload.h"

#include <optional>

namespace deft::report {

namespace {

constexpr int kMostTokens = 1 << 20;
constexpr std::size_t kMostBytes = std::size_t{512} << 10;

/// Rebuilds a tree from its name and seed; none if it differs from the journal's tree.
std::optional<tree::KvTree> remade(const TreeData &wanted) {
  if (wanted.isHeldOut || wanted.tokens > kMostTokens)
    return std::nullopt;
  const auto workload = workload::make(wanted.name, wanted.seed);
  if (!workload)
    return std::nullopt;
  tree::KvTree tree =
      wanted.similar > 0 ? workload::similarTree(workload->tree(), wanted.similar) : workload->tree();
  const bool isSame = tree.tokens() == wanted.tokens && std::ssize(tree.queries()) == wanted.queries;
  return isSame ? std::optional(std::move(tree)) : std::nullopt;
}

} // namespace

std::string winningPlan(const SessionData &session, const ClassData &one) {
  const CandidateData *winner = one.find(one.winnerId);
  const auto signature = config_cache::VariantSignature::parse(session.signature);
  const bool showsAll = signature && (signature->hooks == "plain" || signature->hooks == "sigmoid");
  if (!winner || winner->config.phases.empty() || one.trees.empty() || !showsAll || !session.key)
    return {};
  auto tree = remade(one.trees.front());
  if (!tree)
    return {};
  const target::Target *target = targetOf(*session.key);
  if (session.key->kind == config::DeviceKind::Gpu && !target)
    return {};
  const int blocks = kernels::estimateBlocks(signature->shape(), winner->config, target, session.key->units);
  auto report =
      plan::reportPlan(std::move(*tree), plan::VariantFacts::of(signature->variant(), session.key->kind),
                       winner->config, winner->config.cost, blocks);
  if (!report)
    return {};
  report->treeName = one.trees.front().name;
  report->variantName = session.variant;
  report->machineName = session.key->text();
  std::string picture = plan::drawPlan(*report);
  return picture.size() <= kMostBytes ? picture.substr(std::min(picture.find("<svg"), picture.size()))
                                      : std::string();
}

} // namespace deft::report
