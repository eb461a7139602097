#pragma once

#include "tests/bench/choice/PricedClass.h"

namespace deft::choice {

/// Prices by which the model's choices take least beyond the fastest, found by changing one at a time from
/// `start`; of equal ones those by which prices are in proportion to times.
config::CostCoefficients fit(const std::vector<PricedClass> &classes, const config::CostCoefficients &start);

} // namespace deft::choice
