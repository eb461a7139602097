#pragma once

#include "runtime/api/Plan.h"
#include "runtime/api/RunPlace.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/MergeStates.h"
#include "runtime/exec/Selection.h"

#include <deft/c/merge_states.h>
#include <deft/c/tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

/// The tensors of a call: what a caller hands over, checked, as executors take it. An error names the tensor
/// that is wrong, what it is and what it must be.
namespace deft::api {

/// Entries of a page table; of how many nobody says: -1.
struct PageEntries {
  const int *entries = nullptr;
  std::int64_t count = 0;
};

struct RunTensors {
  const void *q = nullptr, *k = nullptr;
  const void *v = nullptr; ///< of a latent cache: K's columns behind V's; null: they lie behind these in k
  exec::CacheLayouts cache;
  PageEntries pageTable;
  exec::GivenLists lists;                 ///< without slots: a caller gives none
  std::optional<std::int64_t> cachePages; ///< of a contiguous cache tokens; none: nobody says it
  std::int64_t qStride = 0, outStride = 0;
  void *out = nullptr;
  float *lse = nullptr;
  deft_inputs asked = {}; ///< what the caller asks of the run beside its tensors
};

/// Those of a run, as far as they can be seen from the host.
Result<RunTensors> checkTensors(const spec::Variant &variant, const Plan &plan, const RunPlace &place,
                                const deft_inputs *inputs, const deft_outputs *outputs);

/// Whether there are lists of a caller where a run reads such, and nowhere else.
Result<void> checkGivenLists(const spec::Variant &variant, const RunTensors &tensors, bool isSparse);

/// How long requests are, for a plan that follows them: an int32 for each query.
Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunPlace &place);

/// Which drafts see which. What it says of the batch the plan itself checks.
Result<DraftMask> checkMask(const deft_draft_mask *mask, const RunPlace &place);

/// States that are to become one (<deft/c/merge_states.h>).
struct StateTensors {
  struct State {
    void *out = nullptr;
    float *lse = nullptr;
  };
  std::vector<State> states;
  State to;
  std::int64_t rows = 0; ///< queries * heads
  std::int64_t queries = 0;
  int heads = 0, dim = 0;
};

/// The type of the states' `out`, as the first one says it.
Result<deft_dtype> stateDtype(const deft_state *states, std::size_t count);

/// An error where states may not be of this type.
Result<exec::StateType> stateTypeOf(deft_dtype dtype);

/// All of one shape and of this type.
Result<StateTensors> checkStates(const deft_state *states, std::size_t count, const deft_state *to,
                                 deft_dtype dtype, const RunPlace &place);

/// Of the rows that a rank gives, those of some heads, and where they go.
Result<void> checkMergedHeads(const StateTensors &given, int headBegin, int headCount,
                              const StateTensors &wanted);

} // namespace deft::api
