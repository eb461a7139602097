#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/KernelShape.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The families of attend kernels, each a value with all facts about it. No other code may ask for the family
/// of a phase. How to add one: docs/add-a-family.md.
namespace deft::kernels {

using config::PhaseConfig;

struct Family;

/// A phase and everything that decides its legality.
struct PhaseSite {
  const KernelShape &shape;
  const PhaseConfig &phase;
  const target::Target *target; ///< null: the CPU
  const Family &family;         ///< of the phase
};

/// One condition on a phase. A rule may rely on the rules before it.
struct PhaseRule {
  const char *name; ///< its subject, in a word or two: "shared memory"
  bool (*holds)(const PhaseSite &);
  std::string (*message)(const PhaseSite &); ///< the observed number and the limit
  std::string (*hint)(const PhaseSite &);    ///< null: no hint
};

/// The cost of a tile relative to the costs that all tiles share.
struct TileCost {
  double gflops = 0;    ///< products of one block
  double stepShare = 1; ///< share of CostCoefficients::stepUs
  double itemShare = 1; ///< share of CostCoefficients::itemUs
};

/// A kernel for items of every size, and the order of the plans that it is compiled for.
struct DefaultKernel {
  PhaseConfig phase;
  config::Order order = config::Order::FromRoot;
};

/// A phase with the values that the tuner tries; a number with an empty list stays unchanged.
struct TunedPhase {
  PhaseConfig phase;
  std::vector<int> rowsAbove, tileQ, tileKv, stages, warps;
};
/// Phases that the tuner tries together, with a name for its tables.
struct TunedPhases {
  std::string name;
  std::vector<TunedPhase> phases;
};

/// The memory from which kernels read values: separate memory, or the keys of a latent cache.
enum class Values { Apart, InKeys, Anywhere };

struct Family {
  /// The name in config files, in a GPU's header templates/deft/attend_NAME.cuh, and as deft::NAME.
  std::string_view name;
  config::DeviceKind device = config::DeviceKind::Gpu; ///< the kind that runs its kernels
  target::Mma mma = target::Mma::Sync;                 ///< on a GPU: the instruction of its products
  Values values = Values::Apart; ///< of all shapes with kernels; rules refuse the others

  /// Whether it has kernels with products of 8 bits, for variants that ask for these (rule A12).
  bool multipliesBytes = false;

  // Rules for compiling and launching, in addition to those for all families of the device (Legality.cpp):
  std::span<const PhaseRule> rules;
  /// Only the rows of a phase matter, the most of an item. No kernel is compiled for the other numbers, so
  /// they stay unchanged.
  bool countsRowsAlone = false;
  /// Dynamic shared memory of one block in bytes, equal to smemBytes<Config>() of the header; null for a
  /// CPU.
  int (*smemBytes)(const KernelShape &, const PhaseConfig &) = nullptr;
  /// 32-bit registers to assume for a thread when blocks share a multiprocessor; null for a CPU.
  int (*registers)(const PhaseSite &) = nullptr;

  // The text of its kernels (codegen::cuda::instantiateAttend):
  /// An expression of Config: blocks that share a multiprocessor, for `__launch_bounds__`. Empty: not given.
  std::string_view blocksAtOnce;
  /// Whether plans that deal tokens to warps, which are those of order `mixed`, get kernels of their own
  /// (kIsDealt): dealing would slow the other kernels down.
  bool canDeal = false;

  // For executors and planners:
  int mostWaves = 1; ///< most blocks of a launch, in multiples of those that run at once
  /// Copies with tensor maps, in whole pieces of pages, so items begin with these (plan::RunOrder).
  bool readsByTensorMap = false;
  /// Why an invariant plan cannot use it, "which ..."; empty: rows do not affect each other's sums.
  std::string_view whyNotInvariant;

  // The costs of plans (plan::CostModel):
  int (*paddedRows)(const PhaseConfig &, int rows); ///< rows that are computed for `rows` rows
  TileCost (*tileCost)(const PhaseConfig &, int paddedRows, const config::CostCoefficients &);
  /// Rows of a group of warps, if a group skips tokens that none of its rows sees; 0: all warps go together.
  int groupRows = 0;

  // Choices:
  /// If a schedule names no phases: the kernels among which the prices of a tree choose, beginning with the
  /// one that is best for most trees. Null or empty: an older family serves this shape.
  std::vector<DefaultKernel> (*defaults)(const KernelShape &, const target::Target *) = nullptr;
  /// The phases that a schedule names, or else the preferred ones, with the first legal values for numbers
  /// that are left open. An error says that none are legal. Null: schedules belong to an older family.
  support::Result<std::vector<PhaseConfig>> (*scheduled)(const KernelShape &,
                                                         std::span<const spec::PhaseSpec>,
                                                         const target::Target *) = nullptr;
  /// The phases that the tuner tries, as far as they are legal.
  std::vector<TunedPhases> (*tuned)(const KernelShape &);
  /// The values that it tries for numbers that a schedule leaves open; null if `scheduled` is null.
  TunedPhase (*tunedOfSchedule)(const KernelShape &) = nullptr;
  int mostTunedRows = 0; ///< larger phases are not worth the time; 0: all legal ones
  /// The distance of a kernel from a usually fast one, from 0: the tuner begins its search at small values.
  double (*oddness)(const PhaseSite &) = nullptr; ///< null: always 0
};

#define DEFT_DECLARE_FAMILY(ID, NAME) extern const Family NAME;
DEFT_KERNEL_FAMILIES(DEFT_DECLARE_FAMILY)
#undef DEFT_DECLARE_FAMILY

/// Indexed by config::Family, older ones first.
using Families = std::span<const Family *const>;

/// The families of this program: DEFT_KERNEL_FAMILIES.
Families families();

inline const Family &familyOf(const PhaseConfig &phase, Families all = families()) {
  return *all[static_cast<std::size_t>(phase.family)];
}

/// Null: the CPU.
inline config::DeviceKind deviceOf(const target::Target *target) {
  return target ? config::DeviceKind::Gpu : config::DeviceKind::Cpu;
}
/// Whether any of its kernels runs there.
bool runsOn(const Family &family, const target::Target *target);
/// Whether it reads values from the memory where these tensors have them.
bool readsValuesOf(const Family &family, const spec::Tensors &tensors);
/// The families that run there, older ones first.
std::vector<const Family *> familiesOn(const target::Target *target, Families all = families());
/// The family whose phases a schedule for this target names; latent caches have schedules only on a CPU.
const Family &familyOfSchedules(const target::Target *target, Families all = families());
/// "family sm80 or sm90"; empty if there is none.
std::string namesOf(const std::vector<const Family *> &some);

/// Whether the phase's kernel is compiled for plans that deal tokens to its warps, as plans of this order do.
inline bool isDealt(const PhaseConfig &phase, config::Order order, Families all = families()) {
  return familyOf(phase, all).canDeal && order == config::Order::Mixed;
}
/// Whether this holds for the kernel of some phase.
bool isDealt(const config::Config &config, Families all = families());
/// Whether the kernel of some phase copies with tensor maps.
bool readsByTensorMap(const config::Config &config, Families all = families());
/// Whether in every phase only the rows count.
bool countsRowsAlone(const config::Config &config, Families all = families());

/// The numbers that hold the rows of one query; if none does, the smallest number that would.
std::vector<int> rowsThatHold(const KernelShape &shape, std::vector<int> values);

} // namespace deft::kernels
