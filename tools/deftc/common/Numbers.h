#pragma once

#include "compiler/support/Numbers.h"

namespace deft::cli {

using support::bytesOf;
using support::counted;
using support::rounded;
using support::significant;
using support::withSeparators;

} // namespace deft::cli
