#pragma once

#include <deft/attention.hpp>
#include <deft/c/plan.h>
#include <deft/c/tensor.h>
#include <deft/plan.hpp>

#include <optional>
#include <span>

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
  std::optional<CacheStrides> strides = {};
  void *out = nullptr;
  float *lse = nullptr;
  const deft_params *params = nullptr;
};

/// An error names the tensor that is wrong, what it is and what it must be. One that is missing is null here:
/// the run itself knows whether it needs it.
Result<RunTensors> checkTensors(const Attention &attention, int queries, const RunPlace &place,
                                const deft_inputs *inputs, const deft_outputs *outputs);

/// How long requests are, for a plan that follows them: an int32 for each query.
Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunPlace &place);

/// Which drafts see which. What it says of the batch the plan itself checks.
Result<DraftMask> checkMask(const deft_draft_mask *mask, const RunPlace &place);

} // namespace deft::c
