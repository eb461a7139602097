#pragma once

#include "tuner/workload/Generator.h"

#include <functional>
#include <memory>

namespace deft::workload {

/// Makes a workload's generator each time that the workload starts: going backwards starts again.
struct GeneratorSource {
  std::function<support::Result<std::unique_ptr<Generator>>()> make;
};

} // namespace deft::workload
