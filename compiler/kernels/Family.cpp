#include "compiler/kernels/Family.h"

#include <algorithm>
#include <array>

namespace deft::kernels {

#define DEFT_DECLARE_FAMILY(ID, NAME) extern const Family NAME;
DEFT_KERNEL_FAMILIES(DEFT_DECLARE_FAMILY)
#undef DEFT_DECLARE_FAMILY

Families families() {
  static constexpr std::array kAll{
#define DEFT_LIST_FAMILY(ID, NAME) &NAME,
      DEFT_KERNEL_FAMILIES(DEFT_LIST_FAMILY)
#undef DEFT_LIST_FAMILY
  };
  return kAll;
}

bool isDealt(const config::Config &config, Families all) {
  return std::any_of(config.phases.begin(), config.phases.end(),
                     [&](const PhaseConfig &phase) { return isDealt(phase, config.order, all); });
}

bool readsByTensorMap(const config::Config &config, Families all) {
  return std::any_of(config.phases.begin(), config.phases.end(),
                     [&](const PhaseConfig &phase) { return familyOf(phase, all).readsByTensorMap; });
}

std::vector<int> rowsThatHold(const KernelShape &shape, std::vector<int> values) {
  std::erase_if(values, [&](int value) { return value < shape.ratio(); });
  if (values.empty())
    values.push_back(shape.fewestRows());
  return values;
}

} // namespace deft::kernels
