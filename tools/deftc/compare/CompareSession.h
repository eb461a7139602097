#pragma once

#include "tools/deftc/compare/CompareOptions.h"
#include "tools/deftc/compare/CompareReport.h"

namespace deft::cli {

support::Result<CompareReport> compareSession(Context &context, const CompareOptions &options);

} // namespace deft::cli
