#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/CudaPointers.h"

#include <memory>

namespace deft::exec {

/// The inputs of one attention, copied from the host, and its outputs, in device memory that only grows. For
/// tools: a server has its cache on the device already. Calls wait for the device, so no run uses the memory
/// while they change it. For one thread at a time.
class CudaInputs {
public:
  CudaInputs(std::shared_ptr<device::Device> device, const spec::Variant &variant);

  /// Uploads queries, cache, page table and parameters, and makes room for the outputs.
  support::Result<void> load(const Inputs &inputs);

  /// Uploads lists for sparse runs. Call load() first.
  support::Result<void> loadLists(const GivenLists &lists);

  /// Fills the outputs of the first `queryCount` queries, which must be loaded, with NaN, so that a row that
  /// no item writes is detected.
  support::Result<void> clearOutputs(int queryCount);

  /// Copies the outputs of the first `queryCount` queries, which must be loaded, to the host.
  support::Result<void> read(int queryCount, Outputs &outputs) const;

  /// For tests, before load(): fills the memory with NaN and invalid pages, in place of older inputs.
  support::Result<void> poisonInputs();

  /// For tests, before a run: fills all of the outputs' memory with NaN, including room for more queries.
  support::Result<void> poisonOutputs();

  /// Pointers to the loaded inputs; valid until the next call of load().
  const CudaPointers &pointers() const { return pointers_; }

  /// An error if fewer queries are loaded.
  support::Result<void> checkQueries(int queryCount) const;

private:
  std::size_t rows(int queryCount) const;
  std::size_t outBytes(int queryCount) const;
  std::size_t lseBytes(int queryCount) const; ///< 0 if the variant has no lse

  std::shared_ptr<device::Device> device_;
  spec::Variant variant_;
  device::Buffer q_, k_, v_, pageTable_, lists_, out_, lse_;
  std::unique_ptr<const CudaParams> params_;
  CudaPointers pointers_;
  int queryCount_ = 0; ///< loaded queries
};

} // namespace deft::exec
