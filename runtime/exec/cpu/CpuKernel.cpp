#include "runtime/exec/cpu/CpuKernel.h"

namespace deft::exec {

std::string differenceOf(const abi::CpuKernel &kernel, const spec::Variant &variant) {
  const struct {
    const char *what;
    int kernel, variant;
  } facts[] = {
      {"version", kernel.version, abi::kCpuKernelVersion},
      {"table size", kernel.tableBytes, static_cast<int>(sizeof(abi::CpuKernel))},
      {"query_heads", kernel.queryHeads, variant.queryHeads},
      {"kv_heads", kernel.kvHeads, variant.kvHeads},
      {"head_dim", kernel.headDim, variant.headDim},
      {"dtype", kernel.dtype, static_cast<int>(variant.dtype)},
      {"output dtype", kernel.outputDtype, static_cast<int>(variant.outputDtype)},
      {"normalize", kernel.sigmoid, variant.normalize == spec::Normalize::Sigmoid ? 1 : 0},
      {"number of parameters", kernel.paramCount, static_cast<int>(variant.params.size())},
  };
  for (const auto &fact : facts)
    if (fact.kernel != fact.variant)
      return std::string("its ") + fact.what + " is " + std::to_string(fact.kernel) + ", not " +
             std::to_string(fact.variant);
  return {};
}

} // namespace deft::exec
