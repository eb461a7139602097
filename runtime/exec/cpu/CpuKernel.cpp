#include "runtime/exec/cpu/CpuKernel.h"

namespace deft::exec {

std::string differenceOf(const abi::CpuKernel &kernel, const spec::Variant &variant) {
  const spec::Tensors tensors = variant.tensors.scaled();
  const struct {
    const char *what;
    int kernel, variant;
  } facts[] = {
      {"version", kernel.version, abi::kCpuKernelVersion},
      {"table size", kernel.tableBytes, static_cast<int>(sizeof(abi::CpuKernel))},
      {"query_heads", kernel.queryHeads, variant.queryHeads},
      {"kv_heads", kernel.kvHeads, variant.kvHeads},
      {"dim of q and k", kernel.keyDim, tensors.k.dim},
      {"dim of v", kernel.valueDim, tensors.v.dim},
      {"dtype of q", kernel.queryDtype, static_cast<int>(tensors.q.dtype)},
      {"dtype of k", kernel.keyDtype, static_cast<int>(tensors.k.dtype)},
      {"dtype of v", kernel.valueDtype, static_cast<int>(tensors.v.dtype)},
      {"output dtype", kernel.outputDtype, static_cast<int>(tensors.out.dtype)},
      {"normalize", kernel.sigmoid, variant.normalize == spec::Normalize::Sigmoid ? 1 : 0},
      {"keeping of scores", kernel.keepsScores, variant.select ? 1 : 0},
      {"reading of slots", kernel.readsSlots, variant.tokenParams() > 0 ? 1 : 0},
      {"rounding to 8 bits", kernel.byteProducts, tensors.byteProducts ? 1 : 0},
      {"number of parameters", kernel.paramCount, static_cast<int>(variant.params.size())},
  };
  for (const auto &fact : facts)
    if (fact.kernel != fact.variant)
      return std::string("its ") + fact.what + " is " + std::to_string(fact.kernel) + ", not " +
             std::to_string(fact.variant);
  return {};
}

} // namespace deft::exec
