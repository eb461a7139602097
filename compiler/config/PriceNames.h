#pragma once

#include "compiler/config/CostCoefficients.h"

#include <span>

namespace deft::config {

struct PriceName {
  const char *key; ///< as files have it
  double CostCoefficients::*member;
};

/// The prices, without the steps to which rows and tokens are rounded, in the order of files.
std::span<const PriceName> priceNames();

} // namespace deft::config
