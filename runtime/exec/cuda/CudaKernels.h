#pragma once

#include "compiler/config/SparseCut.h"
#include "compiler/package/KernelSet.h"
#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cuda/Unions.h"

#include <memory>
#include <optional>
#include <vector>

namespace deft::exec {

/// The loaded kernels of the two other attentions of a variant that selects.
class SelectingCudaKernels {
public:
  static support::Result<SelectingCudaKernels> load(const std::shared_ptr<device::Device> &device,
                                                    const spec::Variant &variant,
                                                    const package::SelectingKernels &kernels,
                                                    const config::Config &config,
                                                    std::vector<config::SparseCut> sparseCuts);

  /// Replaces the phase's kernel of the full attention: attends, and also computes the worth of tokens.
  const device::Kernel &attend(std::size_t phase) const { return selecting_[kFirstPhase + phase]; }
  unsigned attendBlocks(std::size_t phase, int items) const;

  const device::Kernel &select() const { return selecting_[0]; }
  /// The number of blocks that make one list; they form a cluster.
  int blocksOfList() const { return blocksOfList_; }
  /// Launches `select` for lists of paths with up to `positions`. With few, several blocks fit on a
  /// multiprocessor.
  support::Result<void> launchSelect(int lists, int positions, void **params,
                                     device::cu::Stream stream) const;

  const device::Kernel &sparse() const { return sparse_.front(); }
  const config::PhaseConfig &sparsePhase() const { return sparsePhase_; }
  int sparseUnits() const { return sparseUnits_; } ///< of an item: one per list, or one for several
  unsigned sparseBlocks(int items) const;
  /// The measured cuts for this kernel, sorted by budget and queries.
  const std::vector<config::SparseCut> &sparseCuts() const { return sparseCuts_; }

  /// The shape of the kernel that reads several queries' lists as one; 0 queries: there is no such kernel.
  const UnionShape &unionShape() const { return unionShape_; }
  const device::Kernel &unite() const { return uniting_[0]; }
  int blocksOfUnion() const { return blocksOfUnion_; } ///< for each list of a union, also as a cluster
  const device::Kernel &united() const { return uniting_[1]; }
  unsigned unitedBlocks(int items) const;

private:
  static constexpr std::size_t kFirstPhase = 1;
  std::vector<device::Kernel> sparse_;    ///< one kernel
  std::vector<device::Kernel> selecting_; ///< select, then one per phase; empty if callers give lists
  std::vector<device::Kernel> uniting_;   ///< unite and united, or empty
  UnionShape unionShape_;
  std::vector<int> mostBlocks_; ///< of a launch, for each phase
  int kvHeads_ = 0, sparseUnits_ = 0, mostSparseBlocks_ = 0, blocksOfList_ = 1, cachedKeys_ = 0,
      blocksOfUnion_ = 1;
  config::PhaseConfig sparsePhase_;
  std::vector<config::SparseCut> sparseCuts_;
};

/// The kernels of one variant under one config, loaded on one device. Immutable: all threads and streams may
/// use them at once.
class CudaKernels {
public:
  /// `sparseCuts`: measured sizes of the items into which lists of tokens are best cut for the kernel that
  /// reads them.
  static support::Result<std::shared_ptr<const CudaKernels>>
  load(std::shared_ptr<device::Device> device, const spec::Variant &variant,
       const package::KernelSet &kernels, std::vector<config::SparseCut> sparseCuts = {});

  const std::shared_ptr<device::Device> &device() const { return device_; }
  const spec::Variant &variant() const { return variant_; }
  const config::Config &config() const { return config_; }

  /// Blocks that run at a time, in the phase that runs the fewest: an argument of planners.
  int blocksAtOnce() const;

  /// Whether any phase copies with tensor maps.
  bool readByTensorMap() const;

  std::size_t phases() const { return attend_.size(); }
  const device::Kernel &attend(std::size_t phase) const { return attend_[phase]; }
  const device::Kernel &merge() const { return merge_.front(); }
  /// Null: the variant does not select.
  const SelectingCudaKernels *selecting() const { return selecting_ ? &*selecting_ : nullptr; }
  /// The kernel of the hook `query`; null: the variant has no such hook, and kernels read q directly.
  const device::Kernel *query() const { return query_.empty() ? nullptr : &query_.front(); }

  /// Blocks to launch for `items` items of a phase: at most one wave, since blocks loop over their work.
  unsigned attendBlocks(std::size_t phase, int items) const;
  unsigned mergeBlocks(int mergedQueries) const;
  unsigned queryBlocks(int queries) const;

private:
  CudaKernels(std::shared_ptr<device::Device> device, const spec::Variant &variant,
              const config::Config &config)
      : device_(std::move(device)), variant_(variant), config_(config) {}

  std::shared_ptr<device::Device> device_;
  spec::Variant variant_;
  config::Config config_;
  std::vector<device::Kernel> attend_; ///< one for each phase
  std::vector<int> mostBlocks_;        ///< of a launch of each
  std::vector<device::Kernel> merge_;  ///< one kernel
  std::vector<device::Kernel> query_;  ///< one kernel or none
  std::optional<SelectingCudaKernels> selecting_;
};

/// The values of a variant's parameters in the form that kernels take, with arrays on the device. Immutable.
class CudaParams {
public:
  /// Waits until the arrays are uploaded.
  static support::Result<std::unique_ptr<const CudaParams>> upload(std::shared_ptr<device::Device> device,
                                                                   const spec::Variant &variant,
                                                                   const std::vector<ParamValue> &values);

  const abi::ParamSlot *slots() const { return slots_.data(); }
  /// The number of elements of each parameter.
  const std::vector<std::size_t> &counts() const { return counts_; }

private:
  explicit CudaParams(std::shared_ptr<device::Device> device) : arrays_(std::move(device)) {}

  device::Buffer arrays_;
  std::vector<abi::ParamSlot> slots_; ///< never empty, so data() is not null
  std::vector<std::size_t> counts_;
};

} // namespace deft::exec
