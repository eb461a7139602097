#pragma once

#include "compiler/package/KernelSet.h"
#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaInputs.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "tuner/measure/Work.h"
#include "tuner/sparse/SparseMachine.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace deft::sparse {

/// A kernel that reads lists, in one shape.
struct SparseKernel {
  config::PhaseConfig phase;
  package::Kernel kernel;
};

/// A GPU in this process, with caches of random values; a run that selects makes the lists. Every tile has
/// its own kernel, every cut its own plan, so switching between them copies nothing.
class CudaSparseMachine : public SparseMachine {
public:
  struct Options {
    int threads = 1; ///< of the host
    std::uint64_t seed = 1;
  };

  /// `base`: the kernels that are not timed, and that of the untuned tile; `others`: those that are tried
  /// as well. A kernel that cannot be loaded, or has wrong results on some lists, is left out with a
  /// note.
  static support::Result<std::unique_ptr<CudaSparseMachine>>
  open(std::shared_ptr<device::Device> device, const spec::Variant &variant,
       std::vector<exec::ParamValue> params, const package::KernelSet &base,
       const std::vector<SparseKernel> &others, const std::vector<Lists> &lists, const Options &options,
       std::vector<std::string> &notes);

  const std::vector<config::PhaseConfig> &tiles() const override { return tiles_; }
  support::Result<void> open(const Lists &lists) override;
  support::Result<std::vector<int>> cuts(std::size_t tile) override;
  support::Result<double> time(std::size_t tile, int itemTokens) override;

private:
  /// The plan of a cut, with its lists on the device.
  struct Candidate {
    std::unique_ptr<exec::CudaPlan> plan;
    double lastUs = 0; ///< of a run; 0: unknown
  };

  CudaSparseMachine(std::shared_ptr<device::Device> device, measure::Work work, device::Timer timer,
                    std::vector<Lists> lists)
      : device_(std::move(device)), work_(std::move(work)), pool_(work_), inputs_(device_, work_.variant),
        timer_(std::move(timer)), lists_(std::move(lists)) {}

  support::Result<Candidate *> candidate(std::size_t tile, int itemTokens);
  /// A fault in the tile's results on the open lists, or an error of the machine.
  support::Result<std::string> faultOf(std::size_t tile);

  std::shared_ptr<device::Device> device_;
  measure::Work work_;
  measure::InputPool pool_;
  exec::CudaInputs inputs_;
  device::Timer timer_;
  std::vector<Lists> lists_; ///< in the order of the work's classes
  std::vector<config::PhaseConfig> tiles_;
  std::vector<std::shared_ptr<const exec::CudaKernels>> kernels_; ///< for each tile
  Lists now_;
  bool isLoaded_ = false; ///< the pool's inputs are loaded
  plan::Plan plan_;
  std::map<std::pair<std::size_t, int>, Candidate> candidates_; ///< for the open lists
};

} // namespace deft::sparse
