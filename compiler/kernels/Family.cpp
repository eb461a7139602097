#include "compiler/kernels/Family.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace deft::kernels {

Families families() {
  static constexpr std::array kAll{
#define DEFT_LIST_FAMILY(ID, NAME) &(NAME),
      DEFT_KERNEL_FAMILIES(DEFT_LIST_FAMILY)
#undef DEFT_LIST_FAMILY
  };
  return kAll;
}

bool runsOn(const Family &family, const target::Target *target) {
  return family.device == deviceOf(target) && (!target || target->has(family.mma));
}

bool readsValuesOf(const Family &family, const spec::Tensors &tensors) {
  return family.values == Values::Anywhere || (family.values == Values::InKeys) == tensors.valueInKey;
}

std::vector<const Family *> familiesOn(const target::Target *target, Families all) {
  std::vector<const Family *> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const Family *family) { return runsOn(*family, target); });
  return some;
}

const Family &familyOfSchedules(const target::Target *target, Families all) {
  const Family *newest = nullptr;
  for (const Family *family : familiesOn(target, all))
    if (family->scheduled)
      newest = family;
  return *newest; // the CPU's own, or sm80, which runs on every GPU
}

std::string namesOf(const std::vector<const Family *> &some) {
  std::string text;
  for (const Family *family : some)
    text += (text.empty() ? "family " : " or ") + std::string(family->name);
  return text;
}

bool isDealt(const config::Config &config, Families all) {
  return std::any_of(config.phases.begin(), config.phases.end(),
                     [&](const PhaseConfig &phase) { return isDealt(phase, config.order, all); });
}

bool readsByTensorMap(const config::Config &config, Families all) {
  return std::any_of(config.phases.begin(), config.phases.end(),
                     [&](const PhaseConfig &phase) { return familyOf(phase, all).readsByTensorMap; });
}

bool countsRowsAlone(const config::Config &config, Families all) {
  return !config.phases.empty() &&
         std::all_of(config.phases.begin(), config.phases.end(),
                     [&](const PhaseConfig &phase) { return familyOf(phase, all).countsRowsAlone; });
}

std::vector<int> rowsThatHold(const KernelShape &shape, std::vector<int> values) {
  std::erase_if(values, [&](int value) { return value < shape.ratio(); });
  if (values.empty())
    values.push_back(shape.fewestRows());
  return values;
}

} // namespace deft::kernels
