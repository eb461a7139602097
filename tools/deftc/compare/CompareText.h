#pragma once

#include "tools/deftc/compare/CompareReport.h"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>

namespace deft::cli {

/// A table for each tree, under a sentence that says what is fastest.
void printCompare(const CompareReport &report, std::ostream &out);
nlohmann::json toJson(const CompareReport &report);

} // namespace deft::cli
