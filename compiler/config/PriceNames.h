#pragma once

#include "compiler/config/CostCoefficients.h"

#include <span>

namespace deft::config {

struct PriceName {
  const char *key; ///< in files
  double CostCoefficients::*member;
};

/// The prices in the order of files, without the steps to which rows and tokens are rounded.
std::span<const PriceName> priceNames();

} // namespace deft::config
