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

/// Of a variant that selects, the kernels of its other two attentions, loaded.
class SelectingCudaKernels {
public:
  static support::Result<SelectingCudaKernels> load(const std::shared_ptr<device::Device> &device,
                                                    const spec::Variant &variant,
                                                    const package::SelectingKernels &kernels,
                                                    const config::Config &config,
                                                    std::vector<config::SparseCut> sparseCuts);

  /// Attends and gives what tokens are worth, in place of the full attention's kernel of the phase.
  const device::Kernel &attend(std::size_t phase) const { return selecting_[kFirstPhase + phase]; }
  unsigned attendBlocks(std::size_t phase, int items) const;

  const device::Kernel &select() const { return selecting_[0]; }
  /// So many blocks, which are a cluster, make a list.
  int blocksOfList() const { return blocksOfList_; }

  const device::Kernel &sparse() const { return sparse_.front(); }
  const config::PhaseConfig &sparsePhase() const { return sparsePhase_; }
  int sparseUnits() const { return sparseUnits_; } ///< of an item: a list each, or one for several
  unsigned sparseBlocks(int items) const;
  /// What was measured for it: by rising budget and queries.
  const std::vector<config::SparseCut> &sparseCuts() const { return sparseCuts_; }

  /// What reads the lists of several queries as one, of a shape of no queries where nothing does.
  const UnionShape &unionShape() const { return unionShape_; }
  const device::Kernel &unite() const { return uniting_[0]; }
  int blocksOfUnion() const { return blocksOfUnion_; } ///< of each of its lists, likewise
  const device::Kernel &united() const { return uniting_[1]; }
  unsigned unitedBlocks(int items) const;

private:
  static constexpr std::size_t kFirstPhase = 1;
  std::vector<device::Kernel> sparse_;    ///< one
  std::vector<device::Kernel> selecting_; ///< select, and one a phase; none where lists are a caller's
  std::vector<device::Kernel> uniting_;   ///< unite and united, or none
  UnionShape unionShape_;
  std::vector<int> mostBlocks_; ///< of a launch of each phase's
  int kvHeads_ = 0, sparseUnits_ = 0, mostSparseBlocks_ = 0, blocksOfList_ = 1, blocksOfUnion_ = 1;
  config::PhaseConfig sparsePhase_;
  std::vector<config::SparseCut> sparseCuts_;
};

/// The kernels of one variant under one config, loaded on one device. Immutable: all threads and streams may
/// use them at once.
class CudaKernels {
public:
  /// `sparseCuts`: into how large items lists of tokens are best cut for the kernel that reads them, where
  /// somebody has measured that.
  static support::Result<std::shared_ptr<const CudaKernels>>
  load(std::shared_ptr<device::Device> device, const spec::Variant &variant,
       const package::KernelSet &kernels, std::vector<config::SparseCut> sparseCuts = {});

  const std::shared_ptr<device::Device> &device() const { return device_; }
  const spec::Variant &variant() const { return variant_; }
  const config::Config &config() const { return config_; }

  /// Blocks that run at a time, of the phase that runs fewest: what a planner wants to know.
  int blocksAtOnce() const;

  /// Whether a phase copies by tensor maps.
  bool readByTensorMap() const;

  std::size_t phases() const { return attend_.size(); }
  const device::Kernel &attend(std::size_t phase) const { return attend_[phase]; }
  const device::Kernel &merge() const { return merge_.front(); }
  /// Null: they do not select.
  const SelectingCudaKernels *selecting() const { return selecting_ ? &*selecting_ : nullptr; }
  /// That of the hook `query`; null: q is read as it is.
  const device::Kernel *query() const { return query_.empty() ? nullptr : &query_.front(); }

  /// Blocks to start for so many items of a phase: past that, blocks find their work in a loop.
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
  std::vector<device::Kernel> attend_; ///< one a phase
  std::vector<int> mostBlocks_;        ///< of a launch of each
  std::vector<device::Kernel> merge_;  ///< one
  std::vector<device::Kernel> query_;  ///< one or none
  std::optional<SelectingCudaKernels> selecting_;
};

/// The values of a variant's parameters as its kernels take them, arrays on the device. Immutable.
class CudaParams {
public:
  /// Waits for the arrays to be there.
  static support::Result<std::unique_ptr<const CudaParams>> upload(std::shared_ptr<device::Device> device,
                                                                   const spec::Variant &variant,
                                                                   const std::vector<ParamValue> &values);

  const abi::ParamSlot *slots() const { return slots_.data(); }
  /// Elements of each parameter.
  const std::vector<std::size_t> &counts() const { return counts_; }

private:
  explicit CudaParams(std::shared_ptr<device::Device> device) : arrays_(std::move(device)) {}

  device::Buffer arrays_;
  std::vector<abi::ParamSlot> slots_; ///< never empty, so that it has an address
  std::vector<std::size_t> counts_;
};

} // namespace deft::exec
