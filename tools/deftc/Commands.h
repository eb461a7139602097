#pragma once

#include "tools/deftc/Context.h"

namespace deft::cli {


} // namespace deft::cli
