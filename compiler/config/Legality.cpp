#include "compiler/config/Legality.h"

#include "compiler/config/SharedMemory.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace deft::config {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;

/// Addresses, loop state and the row facts of the hooks, beside the fragments; from resource reports
/// of the shipped specs.
constexpr int kOtherRegisters = 96;

std::string number(int value) { return std::to_string(value); }

bool isIdentifier(const std::string &name) {
  const auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), isWord);
}

} // namespace

int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase) {
  const int tokenWarps = std::max(1, phase.warps / std::max(1, phase.tileQ / 16));
  const int accumulators = shape.headDim / 2;
  const int scores = phase.tileKv / tokenWarps / 2;
  const int queries = shape.headDim <= 128 ? shape.headDim / 4 : 0;
  return accumulators + scores + queries + kOtherRegisters;
}

namespace {

using Site = PhaseSite;
using Of = PhaseRule::Of;

int rowWarps(const Site &site) { return site.phase.tileQ / 16; }
int tokenWarps(const Site &site) { return site.phase.warps / rowWarps(site); }
int bytesOf(const Site &site) { return smemBytes(site.shape.headDim, site.phase); }

int registersLeft(const Site &site) {
  return std::min(site.target.registersPerThread, site.target.registersPerSm / (32 * site.phase.warps));
}

constexpr PhaseRule kRules[] = {
    {"name", Of::Both, [](const Site &site) { return isIdentifier(site.phase.name); },
     [](const Site &) -> std::string { return "its name is not an identifier"; }, nullptr},
    {"name", Of::Both, [](const Site &site) { return site.phase.name != "merge"; },
     [](const Site &) -> std::string { return "the name is taken by the merge kernel"; }, nullptr},
    {"mma shape", Of::Both,
     [](const Site &site) { return site.phase.tileQ >= 16 && site.phase.tileQ % 16 == 0; },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + ", not a positive multiple of 16";
     },
     nullptr},
    {"rows of a query", Of::Both, [](const Site &site) { return site.phase.tileQ >= site.shape.ratio(); },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + ", less than the " + number(site.shape.ratio()) +
              " query heads that share a KV head";
     },
     [](const Site &site) { return "use at least " + number((site.shape.ratio() + 15) / 16 * 16); }},
    {"mma shape", Of::Both,
     [](const Site &site) { return site.phase.tileKv >= 16 && site.phase.tileKv % 16 == 0; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", not a positive multiple of 16";
     },
     nullptr},
    {"stages", Of::Both, [](const Site &site) { return site.phase.stages >= 2 && site.phase.stages <= 8; },
     [](const Site &site) { return "stages is " + number(site.phase.stages) + ", not between 2 and 8"; },
     nullptr},
    {"threads", Of::Both,
     [](const Site &site) {
       return site.phase.warps >= 1 && site.phase.warps * 32 <= site.target.threadsPerBlock;
     },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not between 1 and " +
              number(site.target.threadsPerBlock / 32);
     },
     nullptr},

    {"warps share a tile", Of::Sm80, [](const Site &site) { return site.phase.warps % rowWarps(site) == 0; },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not a multiple of the " + number(rowWarps(site)) +
              " that a tile of " + number(site.phase.tileQ) + " rows takes";
     },
     nullptr},
    {"warps share a tile", Of::Sm80,
     [](const Site &site) { return site.phase.tileKv % (16 * tokenWarps(site)) == 0; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", not a multiple of the " +
              number(16 * tokenWarps(site)) + " tokens that its " + number(tokenWarps(site)) +
              " token warps take at a time";
     },
     nullptr},
    {"threads", Of::Sm80, [](const Site &site) { return site.phase.tileKv <= 32 * site.phase.warps; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", more than the block's " +
              number(32 * site.phase.warps) + " threads";
     },
     nullptr},
    {"registers", Of::Sm80,
     [](const Site &site) { return estimateRegisters(site.shape, site.phase) <= registersLeft(site); },
     [](const Site &site) {
       return "a thread needs about " + number(estimateRegisters(site.shape, site.phase)) +
              " registers; a block of " + number(site.phase.warps) + " warps leaves " +
              number(registersLeft(site));
     },
     [](const Site &) -> std::string { return "lower tile_kv or tile_q"; }},

    {"architecture", Of::Sm90, [](const Site &site) { return site.target.has(target::Mma::Wgmma); },
     [](const Site &site) {
       return "family sm90 needs wgmma, which " + std::string(site.target.arch) + " does not have";
     },
     [](const Site &) -> std::string { return "use family sm80"; }},
    {"threads", Of::Sm90,
     [](const Site &site) { return site.phase.warps == kSm90Warps || isLight(site.phase); },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + "; a block of family sm90 has " + number(kSm90Warps) +
              " or " + number(kSm90LightWarps);
     },
     nullptr},
    {"mma shape", Of::Sm90,
     [](const Site &site) {
       return site.phase.tileQ == 64 || (site.phase.tileQ == 128 && !isLight(site.phase));
     },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + "; family sm90 takes 64" +
              (isLight(site.phase) ? " with " + number(kSm90LightWarps) + " warps" : " or 128");
     },
     nullptr},
    {"mma shape", Of::Sm90, [](const Site &site) { return site.phase.tileKv == 64; },
     [](const Site &site) { return "tile_kv is " + number(site.phase.tileKv) + "; family sm90 takes 64"; },
     nullptr},
    // Where warpgroups take tiles in turn, each has its own stages within a unit, at whose end they wait for
    // each other: one that came to the other's might take an older phase of its barrier for the one it waits
    // for.
    {"stages", Of::Sm90, [](const Site &site) { return site.phase.stages % 2 == 0 || isLight(site.phase); },
     [](const Site &site) {
       return "stages is " + number(site.phase.stages) + "; family sm90 takes an even number";
     },
     nullptr},
    {"shared memory", Of::Sm90,
     [](const Site &site) { return !isLight(site.phase) || bytesOf(site) <= halfSmem(site.target); },
     [](const Site &site) {
       return "it needs " + number(bytesOf(site)) + " bytes of shared memory; two blocks of " +
              number(kSm90LightWarps) + " warps share a multiprocessor, which leaves each " +
              number(halfSmem(site.target));
     },
     [](const Site &) -> std::string { return "lower stages"; }},
    {"head dim", Of::Sm90, [](const Site &site) { return site.shape.headDim >= kSm90LeastHeadDim; },
     [](const Site &site) {
       return "head_dim is " + number(site.shape.headDim) + ", less than family sm90's " +
              number(kSm90LeastHeadDim);
     },
     [](const Site &) -> std::string { return "use family sm80"; }},

    {"shared memory", Of::Both, [](const Site &site) { return bytesOf(site) <= site.target.smemPerBlock; },
     [](const Site &site) {
       return "it needs " + number(bytesOf(site)) + " bytes of shared memory; " +
              std::string(site.target.arch) + " allows " + number(site.target.smemPerBlock);
     },
     [](const Site &) -> std::string { return "lower tile_kv or stages"; }},
};

} // namespace

std::span<const PhaseRule> phaseRules() { return kRules; }

const PhaseRule *brokenRule(const PhaseSite &site) {
  for (const PhaseRule &rule : kRules)
    if (rule.isOf(site.phase.family) && !rule.holds(site))
      return &rule;
  return nullptr;
}

Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase, const target::Target &target) {
  const PhaseSite site{shape, phase, target};
  if (const PhaseRule *rule = brokenRule(site))
    return Error{ErrorCode::Diagnostics, "phase `" + phase.name + "`: " + rule->message(site),
                 rule->hint ? rule->hint(site) : ""};
  return {};
}

Result<void> checkConfig(const KernelShape &shape, const Config &config, const target::Target &target) {
  if (config.phases.empty())
    return Error{ErrorCode::Diagnostics, "a config without phases serves no item", {}};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Diagnostics, "chunk is " + number(config.chunkTokens) + ", less than 0", {}};
  if (Result<void> priced = checkCost(config.cost); !priced)
    return priced;
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const PhaseConfig &phase = config.phases[i];
    if (Result<void> result = checkPhase(shape, phase, target); !result)
      return result;
    if (!names.insert(phase.name).second)
      return Error{ErrorCode::Diagnostics, "two phases are called `" + phase.name + "`", {}};
    const bool last = i + 1 == config.phases.size();
    if (last && phase.rowsAbove >= 0)
      return Error{ErrorCode::Diagnostics,
                   "the last phase, `" + phase.name + "`, serves only items of more than " +
                       number(phase.rowsAbove) + " rows",
                   "end with a phase `otherwise`"};
    if (!last && phase.rowsAbove <= config.phases[i + 1].rowsAbove)
      return Error{ErrorCode::Diagnostics,
                   "phase `" + config.phases[i + 1].name + "` is never reached: `" + phase.name +
                       "` before it serves its items",
                   {}};
  }
  return {};
}

} // namespace deft::config
