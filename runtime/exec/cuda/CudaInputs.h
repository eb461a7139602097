#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/CudaPointers.h"

#include <memory>

namespace deft::exec {

/// One attention's inputs, which come from the host, and its outputs, which go back there, in device memory
/// that is had for them and only grows. For tools: a server has its cache on the device. Calls wait for the
/// device, so that no run is under way on what they change, and are for one thread at a time.
class CudaInputs {
public:
  CudaInputs(std::shared_ptr<device::Device> device, const spec::Variant &variant);

  /// Uploads queries, cache, page table and parameters, and makes room for the outputs.
  support::Result<void> load(const Inputs &inputs);

  /// Uploads lists that sparse runs are handed, after load().
  support::Result<void> loadLists(const GivenLists &lists);

  /// Fills the outputs of so many queries, at most those that were loaded, with NaN: a row nobody writes is
  /// then seen.
  support::Result<void> clearOutputs(int queryCount);

  /// Copies the outputs of so many queries, at most those that were loaded, to the host.
  support::Result<void> read(int queryCount, Outputs &outputs) const;

  /// For tests, before load: what larger inputs leave behind the next ones becomes NaN, and no page.
  support::Result<void> poisonInputs();

  /// For tests, before a run: NaN in all of the outputs' memory, also that of more queries.
  support::Result<void> poisonOutputs();

  /// Of what was loaded; valid until the next call of load().
  const CudaPointers &pointers() const { return pointers_; }

  /// An error where fewer queries were loaded.
  support::Result<void> checkQueries(int queryCount) const;

private:
  std::size_t rows(int queryCount) const;
  std::size_t outBytes(int queryCount) const;
  std::size_t lseBytes(int queryCount) const; ///< 0 where the variant gives none

  std::shared_ptr<device::Device> device_;
  spec::Variant variant_;
  device::Buffer q_, k_, v_, pageTable_, lists_, out_, lse_;
  std::unique_ptr<const CudaParams> params_;
  CudaPointers pointers_;
  int queryCount_ = 0; ///< that were loaded
};

} // namespace deft::exec
