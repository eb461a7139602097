#pragma once

#include "runtime/api/Params.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <optional>
#include <span>

/// Whether arrays over tokens and queries (LANGUAGE.md, rules P4 and P5) have the elements that a run reads.
namespace deft::api {

/// Of a run on the host, where all that it reads is known.
Result<void> checkSizedParams(const deft_params &params, const plan::Plan &plan, const int *pageTable);

/// Of a run on a GPU, whose page table only the device knows, or over lists of a caller: by how many pages
/// the cache has, which has to be said where arrays are over tokens of a paged one.
Result<void> checkSizedParams(const spec::Variant &variant, std::span<const std::size_t> counts,
                              std::optional<std::int64_t> cachePages, const plan::Plan &plan);

} // namespace deft::api
