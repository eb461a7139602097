#include "tools/deftc/common/Gpus.h"

namespace deft::cli {

support::Result<std::vector<FoundGpu>> findGpus(const device::Driver &driver) {
  std::vector<FoundGpu> gpus;
  for (int ordinal = 0; ordinal < driver.deviceCount(); ++ordinal) {
    auto facts = device::lookAt(driver, ordinal);
    if (!facts)
      return facts.error();
    const target::Target *target = target::targetForDevice(facts->major, facts->minor);
    gpus.push_back({std::move(*facts), target});
  }
  return gpus;
}

} // namespace deft::cli
