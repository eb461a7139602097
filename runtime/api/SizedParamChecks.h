#pragma once

#include "runtime/api/Params.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <optional>
#include <span>

/// Checks that arrays over tokens and queries (LANGUAGE.md, rules P4, P5) have all elements that a run reads.
namespace deft::api {

/// For a run on the host, where all data are known.
Result<void> checkSizedParams(const deft_params &params, const plan::Plan &plan, const int *pageTable);

/// For a run on a GPU, where only the device knows the page table, or over a caller's lists. Uses the number
/// of pages in the cache, which is required for arrays over tokens of a paged cache.
Result<void> checkSizedParams(const spec::Variant &variant, std::span<const std::size_t> counts,
                              std::optional<std::int64_t> cachePages, const plan::Plan &plan);

} // namespace deft::api
