#pragma once

#include <deft/attention.hpp>
#include <deft/c/merge_states.h>
#include <deft/c/plan.h>
#include <deft/c/tensor.h>
#include <deft/merge_states.hpp>
#include <deft/plan.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// The tensors of a run: what a caller hands over, checked, as the C++ API takes it.
namespace deft::c {

/// Whose memory a run takes.
struct RunPlace {
  bool isGpu = false;
  int gpu = 0;
};

struct RunTensors {
  const void *q = nullptr;
  const void *k = nullptr;
  const void *v = nullptr;
  std::span<const int> pageTable = {};
  std::optional<CacheStrides> strides = {}, vStrides = {};
  std::int64_t qStride = 0;                    ///< as Inputs::qStride
  std::optional<std::int64_t> cachePages = {}; ///< of k; of a contiguous cache tokens
  void *out = nullptr;
  std::int64_t outStride = 0;
  float *lse = nullptr;
  const deft_params *params = nullptr;
  bool checksFinite = false;
};

/// An error names the tensor that is wrong, what it is and what it must be. One that is missing is null here:
/// the run itself knows whether it needs it.
Result<RunTensors> checkTensors(const Attention &attention, int queries, const RunPlace &place,
                                const deft_inputs *inputs, const deft_outputs *outputs);

/// How long requests are, for a plan that follows them: an int32 for each query.
Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunPlace &place);

/// Which drafts see which. What it says of the batch the plan itself checks.
Result<DraftMask> checkMask(const deft_draft_mask *mask, const RunPlace &place);

/// States that are to become one (<deft/c/merge_states.h>).
struct StateTensors {
  std::vector<State> states;
  MergedState to;
  std::int64_t rows = 0;
  int dim = 0;
};

/// The type of the states' `out`, as the first one says it.
Result<deft_dtype> stateDtype(const deft_state *states, std::size_t count);

/// All of one shape and of this type.
Result<StateTensors> checkStates(const deft_state *states, std::size_t count, const deft_state *to,
                                 deft_dtype dtype, const RunPlace &place);

} // namespace deft::c
