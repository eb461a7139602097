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

/// All that is known of the families of attend kernels, each a value. Nobody else asks which family a phase
/// is of. How to add one: docs/add-a-family.md.
namespace deft::kernels {

using config::PhaseConfig;

struct Family;

/// A phase and all that its legality hangs on.
struct PhaseSite {
  const KernelShape &shape;
  const PhaseConfig &phase;
  const target::Target *target; ///< null: the CPU, which has none
  const Family &family;         ///< the phase's
};

/// One condition on a phase. A rule may count on those before it.
struct PhaseRule {
  const char *name; ///< what it guards, in a word or two: "shared memory"
  bool (*holds)(const PhaseSite &);
  std::string (*message)(const PhaseSite &); ///< the observed number and the limit
  std::string (*hint)(const PhaseSite &);    ///< null: none
};

/// What one tile costs beside what all tiles do.
struct TileCost {
  double gflops = 0;    ///< of one block, its products
  double stepShare = 1; ///< of CostCoefficients::stepUs
  double itemShare = 1; ///< of CostCoefficients::itemUs
};

/// A kernel that serves items of every size, and the order of the plans that it is compiled for.
struct DefaultKernel {
  PhaseConfig phase;
  config::Order order = config::Order::FromRoot;
};

/// A phase with the values that the tuner tries; a number without any stays as the phase has it.
struct TunedPhase {
  PhaseConfig phase;
  std::vector<int> rowsAbove, tileQ, tileKv, stages, warps;
};
/// Phases that the tuner tries together, under a word for its tables.
struct TunedPhases {
  std::string name;
  std::vector<TunedPhase> phases;
};

/// Where the values lie that kernels read: in memory of their own, or in a latent cache's keys.
enum class Values { Apart, InKeys, Anywhere };

struct Family {
  /// Of config files, and of a GPU's header templates/deft/attend_NAME.cuh and its namespace deft::NAME.
  std::string_view name;
  config::DeviceKind device = config::DeviceKind::Gpu; ///< that its kernels run on
  target::Mma mma = target::Mma::Sync;                 ///< of a GPU: what its products are made of
  Values values = Values::Apart; ///< of every shape it has kernels for: its rules say no to others

  /// Whether it has kernels that multiply in 8 bits, for variants that ask for that (rule A12).
  bool multipliesBytes = false;

  // What can be compiled and launched, beyond what holds for all families of the device (Legality.cpp):
  std::span<const PhaseRule> rules;
  /// Of a phase only the rows matter, the most of an item: no kernel is compiled for the other numbers, so
  /// they are kept unchanged.
  bool countsRowsAlone = false;
  /// Dynamic shared memory of one block, in bytes, as smemBytes<Config>() of the header has it; a CPU's:
  /// null.
  int (*smemBytes)(const KernelShape &, const PhaseConfig &) = nullptr;
  /// 32-bit registers that a thread is counted with where blocks share a multiprocessor; a CPU's: null.
  int (*registers)(const PhaseSite &) = nullptr;

  // Its kernels' text (codegen::cuda::instantiateAttend):
  /// An expression of Config, the blocks of `__launch_bounds__` that share a multiprocessor; empty: not said.
  std::string_view blocksAtOnce;
  /// Whether its kernels are compiled for plans that deal tokens to warps apart from those for others
  /// (kIsDealt): they would pay for it. Plans of order `mixed` deal then.
  bool canDeal = false;

  // What executors and planners go by:
  int mostWaves = 1; ///< blocks launched, at most, in multiples of those that run at a time
  /// Copies by tensor maps, which take whole pieces of pages: items begin with them (plan::RunOrder).
  bool readsByTensorMap = false;
  /// Why an invariant plan cannot use it: "which ..."; empty: a row's sums do not depend on other rows.
  std::string_view whyNotInvariant;

  // What plans cost (plan::CostModel):
  int (*paddedRows)(const PhaseConfig &, int rows); ///< that are computed for so many
  TileCost (*tileCost)(const PhaseConfig &, int paddedRows, const config::CostCoefficients &);
  /// Rows of one group of warps where groups pass over what none of their own rows sees; 0: all go together.
  int groupRows = 0;

  // What is chosen from:
  /// Where a schedule names no phases, the kernels among which a tree chooses, first the one that most trees
  /// are served best by; null or empty: an older family should serve this shape.
  std::vector<DefaultKernel> (*defaults)(const KernelShape &, const target::Target *) = nullptr;
  /// The phases that a schedule names, or what is preferred where it names none, with numbers for what it
  /// leaves open: the first legal ones. An error says that none are. Null: schedules are for an older family.
  support::Result<std::vector<PhaseConfig>> (*scheduled)(const KernelShape &,
                                                         std::span<const spec::PhaseSpec>,
                                                         const target::Target *) = nullptr;
  /// What the tuner tries, where it is legal.
  std::vector<TunedPhases> (*tuned)(const KernelShape &);
  /// What it tries of the numbers that a schedule leaves open; null where `scheduled` is.
  TunedPhase (*tunedOfSchedule)(const KernelShape &) = nullptr;
  int mostTunedRows = 0; ///< of a phase that is worth its time; 0: as many as are legal
  /// How far from what is usually fast a kernel is, from 0: where the tuner enters a space.
  double (*oddness)(const PhaseSite &) = nullptr; ///< null: nowhere
};

#define DEFT_DECLARE_FAMILY(ID, NAME) extern const Family NAME;
DEFT_KERNEL_FAMILIES(DEFT_DECLARE_FAMILY)
#undef DEFT_DECLARE_FAMILY

/// By the number of their config::Family, older ones first.
using Families = std::span<const Family *const>;

/// Those of this program: DEFT_KERNEL_FAMILIES.
Families families();

inline const Family &familyOf(const PhaseConfig &phase, Families all = families()) {
  return *all[static_cast<std::size_t>(phase.family)];
}

/// Null: the CPU.
inline config::DeviceKind deviceOf(const target::Target *target) {
  return target ? config::DeviceKind::Gpu : config::DeviceKind::Cpu;
}
/// Whether its kernels run there, whatever their phases.
bool runsOn(const Family &family, const target::Target *target);
/// Whether it reads values where these tensors have them.
bool readsValuesOf(const Family &family, const spec::Tensors &tensors);
/// Those that run there, older ones first.
std::vector<const Family *> familiesOn(const target::Target *target, Families all = families());
/// The one whose phases a schedule names there, of a latent cache on a CPU alone.
const Family &familyOfSchedules(const target::Target *target, Families all = families());
/// Of these, "family sm80 or sm90"; empty: there is none.
std::string namesOf(const std::vector<const Family *> &some);

/// Whether the phase's kernel is compiled for plans that deal tokens to its warps, as those of this order do.
inline bool isDealt(const PhaseConfig &phase, config::Order order, Families all = families()) {
  return familyOf(phase, all).canDeal && order == config::Order::Mixed;
}
/// Whether some phase's kernel is.
bool isDealt(const config::Config &config, Families all = families());
/// Whether some phase's kernel copies by tensor maps.
bool readsByTensorMap(const config::Config &config, Families all = families());
/// Whether of every phase the rows alone count.
bool countsRowsAlone(const config::Config &config, Families all = families());

/// Of these numbers of rows, those that hold the rows of one query; the fewest that do, where none does.
std::vector<int> rowsThatHold(const KernelShape &shape, std::vector<int> values);

} // namespace deft::kernels
