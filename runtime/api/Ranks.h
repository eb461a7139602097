#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/api/Call.h"
#include "runtime/tree/Ranks.h"

#include <deft/c/ranks.h>

#include <string>

namespace deft::api {

/// The ranks from a caller.
Result<tree::Ranks> ranksOf(const deft_ranks *given);

/// Why results over parts of the tokens cannot be merged into the whole attention; empty: they can.
std::string whyNotOverRanks(const spec::Variant &variant);

} // namespace deft::api
