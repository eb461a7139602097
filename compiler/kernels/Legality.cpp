#include "compiler/kernels/Legality.h"

#include "compiler/spec/Names.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace deft::kernels {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;

std::string number(int value) { return std::to_string(value); }

bool isIdentifier(const std::string &name) {
  const auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), isWord);
}

std::string tooFewRows(int rows, int needed) {
  return "tile_q is " + number(rows) + ", less than the " + number(needed) +
         " query heads that share a KV head";
}

using Site = PhaseSite;

constexpr PhaseRule kDeviceRule = {
    "device", [](const Site &site) { return site.family.device == deviceOf(site.target); },
    [](const Site &site) {
      return "family " + std::string(site.family.name) + " is not for " + (site.target ? "GPUs" : "a CPU");
    },
    useOtherFamily};

/// Of every GPU's family, before its own.
constexpr PhaseRule kGpuRules[] = {
    {"name", [](const Site &site) { return isIdentifier(site.phase.name); },
     [](const Site &) -> std::string { return "its name is not an identifier"; }, nullptr},
    {"name", [](const Site &site) { return site.phase.name != "merge"; },
     [](const Site &) -> std::string { return "the name is taken by the merge kernel"; }, nullptr},
    {"mma shape", [](const Site &site) { return site.phase.tileQ >= 16 && site.phase.tileQ % 16 == 0; },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + ", not a positive multiple of 16";
     },
     nullptr},
    {"rows of a query", [](const Site &site) { return site.phase.tileQ >= site.shape.rowsOfQuery(); },
     [](const Site &site) { return tooFewRows(site.phase.tileQ, site.shape.rowsOfQuery()); },
     [](const Site &site) { return "use at least " + number((site.shape.rowsOfQuery() + 15) / 16 * 16); }},
    {"mma shape", [](const Site &site) { return site.phase.tileKv >= 16 && site.phase.tileKv % 16 == 0; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", not a positive multiple of 16";
     },
     nullptr},
    {"stages", [](const Site &site) { return site.phase.stages >= 2 && site.phase.stages <= 8; },
     [](const Site &site) { return "stages is " + number(site.phase.stages) + ", not between 2 and 8"; },
     nullptr},
    {"threads",
     [](const Site &site) {
       return site.phase.warps >= 1 && site.phase.warps * 32 <= site.target->threadsPerBlock;
     },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not between 1 and " +
              number(site.target->threadsPerBlock / 32);
     },
     nullptr},
    {"products",
     [](const Site &site) { return !site.shape.tensors.byteProducts || site.family.multipliesBytes; },
     [](const Site &site) {
       return std::string("products are of ") + toString(spec::kByteProducts) + "; family " +
              std::string(site.family.name) + " multiplies in 16 bits (rule A12)";
     },
     [](const Site &) -> std::string { return "use a CPU, or leave `products` out"; }},
    {"architecture", [](const Site &site) { return site.target->has(site.family.mma); },
     [](const Site &site) {
       return "family " + std::string(site.family.name) + " needs " +
              std::string(target::mmaName(site.family.mma)) + ", which " + std::string(site.target->arch) +
              " does not have";
     },
     useOtherFamily},
};

int bytesOf(const Site &site) { return site.family.smemBytes(site.shape, site.phase); }

/// Of every GPU's family, after its own.
constexpr PhaseRule kLastGpuRule = {
    "shared memory", [](const Site &site) { return bytesOf(site) <= site.target->smemPerBlock; },
    [](const Site &site) {
      return "it needs " + number(bytesOf(site)) + " bytes of shared memory; " +
             std::string(site.target->arch) + " allows " + number(site.target->smemPerBlock);
    },
    [](const Site &) -> std::string { return "lower tile_kv or stages"; }};

} // namespace

bool hasAlikeTensors(const Site &site) {
  const spec::Tensors &tensors = site.shape.tensors;
  return tensors.areAlike() && tensors.k.elementBytes() == 2;
}

std::string unlikeTensors(const Site &site) {
  const spec::Tensors &tensors = site.shape.tensors;
  if (!tensors.valueInKey && tensors.k.dim != tensors.v.dim)
    return "k has dim " + number(tensors.k.dim) + " and v " + number(tensors.v.dim) + "; family " +
           std::string(site.family.name) + " takes one dim for both";
  return tensorsNotApart(site);
}

bool hasTensorsApart(const Site &site) {
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = site.shape.tensors;
  const bool areBytes = k.elementBytes() == 1 && v.elementBytes() == 1;
  const bool areOfOne = q.dtype == k.dtype && k.dtype == v.dtype && k.elementBytes() == 2;
  return !valueInKey && (areOfOne || areBytes);
}

std::string tensorsNotApart(const Site &site) {
  const spec::Tensors &tensors = site.shape.tensors;
  const std::string family = "family " + std::string(site.family.name);
  if (tensors.valueInKey)
    return "v is in k's memory; " + family + " reads it from memory of its own";
  if (tensors.q.dtype != tensors.k.dtype || tensors.k.dtype != tensors.v.dtype)
    return std::string("q is ") + toString(tensors.q.dtype) + ", k " + toString(tensors.k.dtype) + " and v " +
           toString(tensors.v.dtype) + "; " + family + " takes one dtype for all three";
  return "k has elements of " + number(tensors.k.elementBytes()) + " bytes; " + family + " takes 2";
}

std::string keyDimText(const spec::Tensors &tensors) {
  return (tensors.k.dim == tensors.v.dim ? "head_dim is " : "key_dim is ") + number(tensors.k.dim);
}

const PhaseRule *brokenRule(const PhaseSite &site) {
  const auto firstOf = [&](std::span<const PhaseRule> rules) -> const PhaseRule * {
    const auto broken =
        std::find_if(rules.begin(), rules.end(), [&](const PhaseRule &rule) { return !rule.holds(site); });
    return broken == rules.end() ? nullptr : &*broken;
  };
  if (!kDeviceRule.holds(site))
    return &kDeviceRule;
  if (!site.target)
    return firstOf(site.family.rules);
  for (const std::span<const PhaseRule> rules :
       {std::span<const PhaseRule>(kGpuRules), site.family.rules, std::span(&kLastGpuRule, 1)})
    if (const PhaseRule *rule = firstOf(rules))
      return rule;
  return nullptr;
}

Error errorOf(const PhaseRule &broken, const PhaseSite &site) {
  return {ErrorCode::Diagnostics, "phase `" + site.phase.name + "`: " + broken.message(site),
          broken.hint ? broken.hint(site) : ""};
}

std::string useOtherFamily(const PhaseSite &site) {
  std::vector<const Family *> others = familiesOn(site.target);
  std::erase_if(others, [&](const Family *family) {
    const bool isForAll =
        family == &familyOfSchedules(site.target) && readsValuesOf(*family, site.shape.tensors);
    const bool isForShape = family->defaults && !family->defaults(site.shape, site.target).empty();
    return family == &site.family || !(isForAll || isForShape);
  });
  return others.empty() ? "" : "use " + namesOf(others);
}

Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase, const target::Target *target,
                        Families all) {
  const PhaseSite site{shape, phase, target, familyOf(phase, all)};
  if (const PhaseRule *rule = brokenRule(site))
    return errorOf(*rule, site);
  return {};
}

Result<void> checkConfig(const KernelShape &shape, const config::Config &config, const target::Target *target,
                         Families all) {
  if (config.phases.empty())
    return Error{ErrorCode::Diagnostics, "a config without phases serves no item", {}};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Diagnostics, "chunk is " + number(config.chunkTokens) + ", less than 0", {}};
  if (Result<void> priced = config::checkCost(config.cost); !priced)
    return priced;
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const PhaseConfig &phase = config.phases[i];
    if (Result<void> result = checkPhase(shape, phase, target, all); !result)
      return result;
    if (target && !names.insert(phase.name).second) // kernels are named by them
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
  const int needed = target ? shape.rowsOfQuery() : shape.ratio();
  if (const int rows = config::mostRows(config); rows < needed)
    return Error{ErrorCode::Diagnostics, tooFewRows(rows, needed), {}};
  return {};
}

Result<void> checkInvariant(const spec::Tensors &tensors, const PhaseConfig &phase, Families all) {
  const Family &family = familyOf(phase, all);
  if (family.whyNotInvariant.empty())
    return {};
  std::vector<const Family *> others(all.begin(), all.end());
  std::erase_if(others, [&](const Family *other) {
    return other->device != family.device || !other->whyNotInvariant.empty() ||
           !readsValuesOf(*other, tensors);
  });
  return Error{ErrorCode::Usage,
               "an invariant plan cannot use family " + std::string(family.name) + ", " +
                   std::string(family.whyNotInvariant),
               others.empty() ? "" : "use a phase of " + namesOf(others)};
}

} // namespace deft::kernels
