#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/api/Call.h"
#include "runtime/tree/Ranks.h"

#include <deft/c/ranks.h>

#include <string>

namespace deft::api {

/// A caller's ranks.
Result<tree::Ranks> ranksOf(const deft_ranks *given);

/// Why results over a part of the tokens do not make the attention over all of them; empty: they do.
std::string whyNotOverRanks(const spec::Variant &variant);

} // namespace deft::api
