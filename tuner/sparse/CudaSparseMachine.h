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

/// The kernel that reads lists, in one shape.
struct SparseKernel {
  config::PhaseConfig phase;
  package::Kernel kernel;
};

/// A GPU, in this process, over caches with random values, in which a run that selects makes the lists. Every
/// tile has its own kernel, every cut a plan of its own, so that going from one to the other copies nothing.
class CudaSparseMachine : public SparseMachine {
public:
  struct Options {
    int threads = 1; ///< of the host
    std::uint64_t seed = 1;
  };

  /// `base` are the kernels of all that is not timed, and of the tile without tuning; `others` of what is
  /// tried beside it. One that cannot be loaded, or computes on some lists what it should not, is left out
  /// with a note.
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
    double lastUs = 0; ///< of a run; 0: not known
  };

  CudaSparseMachine(std::shared_ptr<device::Device> device, measure::Work work, device::Timer timer,
                    std::vector<Lists> lists)
      : device_(std::move(device)), work_(std::move(work)), pool_(work_), inputs_(device_, work_.variant),
        timer_(std::move(timer)), lists_(std::move(lists)) {}

  support::Result<Candidate *> candidate(std::size_t tile, int itemTokens);
  /// Of what the tile computes on the lists that are open: an error of the machine's, or what is wrong.
  support::Result<std::string> faultOf(std::size_t tile);

  std::shared_ptr<device::Device> device_;
  measure::Work work_;
  measure::InputPool pool_;
  exec::CudaInputs inputs_;
  device::Timer timer_;
  std::vector<Lists> lists_; ///< as the work's classes are
  std::vector<config::PhaseConfig> tiles_;
  std::vector<std::shared_ptr<const exec::CudaKernels>> kernels_; ///< of each tile
  Lists now_;
  bool isLoaded_ = false; ///< what the pool has
  plan::Plan plan_;
  std::map<std::pair<std::size_t, int>, Candidate> candidates_; ///< of the lists that are open
};

} // namespace deft::sparse
