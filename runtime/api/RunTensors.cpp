#include "runtime/api/RunTensors.h"

#include "runtime/api/CacheTensors.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Dtypes.h"
#include "runtime/api/Sized.h"
#include "runtime/api/TensorCheck.h"

#include <algorithm>
#include <limits>
#include <string>

namespace deft::api {

namespace {

Result<void> checkPageTable(const TensorCheck &check, const spec::Variant &variant, const Plan &plan,
                            const deft_inputs &inputs, RunTensors &tensors, Memory &memory) {
  if (!variant.cache.isPaged())
    return {};
  const int pages = plan.tablePages(variant.cache.pageSize);
  if (!inputs.page_table)
    return pages == 0 || inputs.lists
               ? Result<void>()
               : wrong("page_table", "is null, and the cache of " + variant.called() + " is paged",
                       variant.readsGivenLists()
                           ? "give the page of each page of the tree's locations, or `lists` to a sparse run"
                           : "give the page of each page of the tree's locations");
  const auto table = check.checkPacked("page_table", inputs.page_table, DEFT_I32, {{"entries", kAny}});
  if (!table)
    return table.error();
  if (table->count().value_or(pages) < pages)
    return wrong("page_table", "has " + std::to_string(table->shape[0]) +
                                   " pages, the tree needs the first " + std::to_string(pages));
  tensors.pageTable = {static_cast<const int *>(table->data), table->shape[0]};
  memory.reads("page_table", *table);
  return {};
}

Result<void> checkLists(const TensorCheck &check, const spec::Variant &variant, const Plan &plan,
                        const deft_inputs &inputs, RunTensors &tensors, Memory &memory) {
  if (!inputs.lists)
    return {};
  if (!variant.readsGivenLists())
    return wrong("lists", "is given, and " + variant.called() + " takes no lists from a caller",
                 "write `select { budget = 2048; by = caller; }` in the spec");
  const auto lists =
      check.checkPacked("lists", inputs.lists, DEFT_I32, {{"queries", plan.queryCount()}, {"budget", kAny}});
  if (!lists)
    return lists.error();
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const int budget = static_cast<int>(std::min(lists->shape[1], kMost));
  if (auto checked = exec::checkBudget(variant, budget); !checked)
    return wrong("lists", "is " + listText(lists->shape) + ", and " + checked.error().message);
  tensors.lists = {static_cast<const std::int32_t *>(lists->data), plan.queryCount(), budget};
  memory.reads("lists", *lists);
  return {};
}

} // namespace

Result<void> checkGivenLists(const spec::Variant &variant, const RunTensors &tensors, bool isSparse) {
  if (!isSparse)
    return tensors.lists.slots ? wrong("lists", "is given, and only sparse runs read lists") : Result<void>();
  if (!variant.readsGivenLists())
    return {};
  if (!tensors.asked.lists)
    return wrong("lists", "is null, and " + variant.called() + " reads lists of its caller",
                 "give each query a list of slots of the cache");
  if (tensors.asked.settings.check_finite != 0)
    return wrong("deft_run_settings::check_finite",
                 "is not 0, and a run over a caller's lists looks at no values");
  return {};
}

Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunDevice &device) {
  const auto checked =
      TensorCheck(device, "the plan").checkPacked("lengths", lengths, DEFT_I32, {{"queries", queries}});
  if (!checked)
    return checked.error();
  return static_cast<const int *>(checked->data);
}

Result<DraftMask> checkMask(const deft_draft_mask *given, const RunDevice &device) {
  const auto known = readSized("deft_draft_mask", given);
  if (!known)
    return known.error();
  if (!known->bits)
    return wrong("deft_draft_mask::bits", "is null");
  const TensorCheck check(device, "the plan");
  const auto first = readSized("deft_tensor", known->bits);
  const deft_dtype dtype = first && first->dtype == DEFT_I32 ? DEFT_I32 : DEFT_U32;
  const bool hasDrafts = first && first->ndim == 3 && first->shape;
  const std::int64_t drafts = hasDrafts ? first->shape[1] : kAny;
  const std::int64_t words = drafts < 0 ? kAny : (drafts + 31) / 32;
  const auto bits =
      check.checkPacked("bits", known->bits, dtype, {{"requests", kAny}, {"drafts", kAny}, {"words", words}});
  if (!bits)
    return bits.error();
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (bits->shape[0] == 0 || std::max(bits->shape[0], drafts) > kMost)
    return wrong("bits", "is " + listText(bits->shape) + ", which is for no batch");
  DraftMask mask{.bits = static_cast<const std::uint32_t *>(bits->data),
                 .drafts = static_cast<int>(drafts),
                 .requests = static_cast<int>(bits->count().value_or(0))};
  const Dimension requests{"requests", bits->shape[0]};
  const auto take = [&](const char *name, const deft_tensor *tensor, const Dimensions &dimensions,
                        const int *&to) -> Result<void> {
    if (!tensor)
      return {};
    const auto checked = check.checkPacked(name, tensor, DEFT_I32, dimensions);
    if (!checked)
      return checked.error();
    to = static_cast<const int *>(checked->data);
    return {};
  };
  if (auto taken = take("depths", known->depths, {requests, {"drafts", drafts}}, mask.depths); !taken)
    return taken.error();
  if (auto taken = take("lengths", known->lengths, {requests}, mask.lengths); !taken)
    return taken.error();
  return mask;
}

Result<RunTensors> checkTensors(const spec::Variant &variant, const Plan &plan, const RunDevice &device,
                                const deft_inputs *givenInputs, const deft_outputs *givenOutputs) {
  const auto inputs = readSized("deft_inputs", givenInputs);
  if (!inputs)
    return inputs.error();
  const auto outputs = readSized("deft_outputs", givenOutputs);
  if (!outputs)
    return outputs.error();
  for (const std::int32_t reserved : inputs->settings.reserved)
    if (reserved != 0)
      return wrong("deft_run_settings::reserved", "is " + std::to_string(reserved) + ", not 0");
  if (outputs->lse && !variant.withLse)
    return wrong("lse", "is asked for, and " + variant.called() + " gives none",
                 "write `output = ... with lse` in the spec");
  if (plan.queryCount() > 0 && !inputs->q)
    return wrong("q", "is null");
  if (plan.queryCount() > 0 && !outputs->out)
    return wrong("out", "is null");
  const TensorCheck check(device, variant.called());
  RunTensors tensors;
  Memory memory;
  tensors.asked = *inputs;
  const auto rowsOf = [&](const char *name, const spec::TensorType &tensor) {
    return Dimensions{{"queries", plan.queryCount()},
                      {"query_heads", variant.queryHeads},
                      {dimNameOf(variant, name), tensor.dim}};
  };
  if (inputs->q) {
    const spec::TensorType &type = variant.tensors.q;
    const auto q = check.checkRows("q", inputs->q, dtypeOf(type.dtype), rowsOf("q", type));
    if (!q)
      return q.error();
    tensors.q = q->data;
    tensors.qStride = q->strides[0];
    memory.reads("q", *q);
  }
  if (auto checked =
          checkCaches(check, variant, plan.plan.tableTokens, *inputs, device.isGpu, tensors, memory);
      !checked)
    return checked.error();
  if (auto checked = checkPageTable(check, variant, plan, *inputs, tensors, memory); !checked)
    return checked.error();
  if (auto checked = checkLists(check, variant, plan, *inputs, tensors, memory); !checked)
    return checked.error();
  if (outputs->out) {
    const spec::TensorType &type = variant.tensors.out;
    const auto out = check.checkRows("out", outputs->out, dtypeOf(type.dtype), rowsOf("out", type));
    if (!out)
      return out.error();
    tensors.out = out->data;
    tensors.outStride = out->strides[0];
    memory.writes("out", *out);
  }
  if (outputs->lse) {
    const auto lse = check.checkPacked("lse", outputs->lse, DEFT_F32,
                                       {{"queries", plan.queryCount()}, {"query_heads", variant.queryHeads}});
    if (!lse)
      return lse.error();
    tensors.lse = static_cast<float *>(lse->data);
    memory.writes("lse", *lse);
  }
  if (auto apart = memory.checkApart(); !apart)
    return apart.error();
  return tensors;
}

Result<deft_dtype> stateDtype(const char *name, const deft_state &state) {
  if (!state.out)
    return wrong(name, "is null");
  const auto out = readSized("deft_tensor", state.out);
  return out ? Result<deft_dtype>(out->dtype) : out.error();
}

namespace {

/// Reads states; the first one's shape is that of all.
class StateReader {
public:
  StateReader(deft_dtype dtype, const RunDevice &device) : check_(device, "the merge"), dtype_(dtype) {}

  Result<StateTensors::State> read(const std::string &name, const deft_state &given, bool needsLse) {
    const std::string outName = name + ".out", lseName = name + ".lse";
    if (!given.out || (needsLse && !given.lse))
      return wrong(given.out ? lseName : outName, "is null");
    const auto out = check_.checkPacked(outName.c_str(), given.out, dtype_, rows_);
    if (!out)
      return out.error();
    if (!out->count())
      return wrong(outName, "does not say how many queries it has");
    for (std::size_t i = 0; i < rows_.size(); ++i)
      rows_[i].size = out->shape[i];
    StateTensors::State state{.out = out->data, .lse = nullptr};
    if (!given.lse)
      return state;
    const auto lse = check_.checkPacked(lseName.c_str(), given.lse, DEFT_F32, {rows_[0], rows_[1]});
    if (!lse)
      return lse.error();
    state.lse = static_cast<float *>(lse->data);
    return state;
  }

  /// The tensors of all states that were read. `to` was the last one.
  StateTensors tensors(const StateTensors::State &to) const {
    const auto count = [&](std::size_t i) {
      return static_cast<int>(std::min<std::int64_t>(rows_[i].size, std::numeric_limits<int>::max()));
    };
    StateTensors tensors;
    tensors.to = to;
    tensors.rows = rows_[0].size * rows_[1].size;
    tensors.queries = rows_[0].size;
    tensors.heads = count(1);
    tensors.dim = count(2);
    return tensors;
  }

private:
  TensorCheck check_;
  deft_dtype dtype_;
  Dimensions rows_ = {{"queries", kAny}, {"query_heads", kAny}, {"head_dim", kAny}};
};

} // namespace

Result<StateTensors> checkStates(const deft_state *states, std::size_t count, const deft_state *to,
                                 deft_dtype dtype, const RunDevice &device) {
  StateReader reader(dtype, device);
  std::vector<StateTensors::State> own;
  for (std::size_t i = 0; i < count; ++i) {
    const auto state = reader.read("states[" + std::to_string(i) + "]", states[i], true);
    if (!state)
      return state.error();
    own.push_back(*state);
  }
  const auto merged = reader.read("to", *to, false);
  if (!merged)
    return merged.error();
  StateTensors tensors = reader.tensors(*merged);
  tensors.states = std::move(own);
  return tensors;
}

Result<StateTensors> checkState(const std::string &name, const deft_state *state, deft_dtype dtype,
                                const RunDevice &device) {
  StateReader reader(dtype, device);
  const auto read = reader.read(name, *state, true);
  return read ? Result<StateTensors>(reader.tensors(*read)) : read.error();
}

Result<void> checkMergedHeads(const StateTensors &given, int headBegin, int headCount,
                              const StateTensors &wanted) {
  if (auto checked = checkRange("head_begin", headBegin, 0, given.heads); !checked)
    return checked;
  if (auto checked = checkRange("head_count", headCount, 0, given.heads - headBegin); !checked)
    return checked;
  const auto shape = [](std::int64_t queries, std::int64_t heads, std::int64_t dim) {
    return "[" + std::to_string(queries) + ", " + std::to_string(heads) + ", " + std::to_string(dim) + "]";
  };
  if (wanted.queries != given.queries || wanted.heads != headCount || wanted.dim != given.dim)
    return wrong("to", "is of shape " + shape(wanted.queries, wanted.heads, wanted.dim) + ", not " +
                           shape(given.queries, headCount, given.dim));
  return {};
}

} // namespace deft::api
