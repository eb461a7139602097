#pragma once

#include "runtime/api/Plan.h"
#include "runtime/api/RunDevice.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/MergeStates.h"
#include "runtime/exec/Selection.h"

#include <deft/c/merge_states.h>
#include <deft/c/tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

/// The tensors of a call: given by the caller, checked, in the form for executors. An error names the wrong
/// tensor, its actual properties and the required ones.
namespace deft::api {

/// Entries of a page table; -1: their number is unknown.
struct PageEntries {
  const int *entries = nullptr;
  std::int64_t count = 0;
};

struct RunTensors {
  const void *q = nullptr, *k = nullptr;
  const void *v = nullptr; ///< of a latent cache: K's columns after V's; null: they follow these in k
  exec::CacheLayouts cache;
  PageEntries pageTable;
  exec::GivenLists lists;                 ///< without slots: the caller gives none
  std::optional<std::int64_t> cachePages; ///< of a contiguous cache the tokens; none: unknown
  std::int64_t qStride = 0, outStride = 0;
  void *out = nullptr;
  float *lse = nullptr;
  deft_inputs asked = {}; ///< the caller's, for settings and parameters
};

/// Checks the tensors of a run, as far as the host can see them.
Result<RunTensors> checkTensors(const spec::Variant &variant, const Plan &plan, const RunDevice &device,
                                const deft_inputs *inputs, const deft_outputs *outputs);

/// Checks that a caller's lists are given if and only if the run reads such lists.
Result<void> checkGivenLists(const spec::Variant &variant, const RunTensors &tensors, bool isSparse);

/// The lengths of requests for a plan that follows them: an int32 for each query.
Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunDevice &device);

/// Which drafts see which. The plan itself checks the mask against its batch.
Result<DraftMask> checkMask(const deft_draft_mask *mask, const RunDevice &device);

/// States to merge (<deft/c/merge_states.h>).
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

/// The type of a state's `out`, which errors call `name`.
Result<deft_dtype> stateDtype(const char *name, const deft_state &state);

/// An error, about `field`, if states must not have this type.
Result<exec::StateType> stateTypeOf(deft_dtype dtype, const std::string &field);

/// Checks that all have one shape and this type. Errors call tensors "states[1].lse" and "to.out".
Result<StateTensors> checkStates(const deft_state *states, std::size_t count, const deft_state *to,
                                 deft_dtype dtype, const RunDevice &device);
/// The same for one state with an lse, StateTensors::to of the result. Errors call it `name`.
Result<StateTensors> checkState(const std::string &name, const deft_state *state, deft_dtype dtype,
                                const RunDevice &device);

/// Selects some heads from the rows of a rank, and checks their destination.
Result<void> checkMergedHeads(const StateTensors &given, int headBegin, int headCount,
                              const StateTensors &wanted);

} // namespace deft::api
