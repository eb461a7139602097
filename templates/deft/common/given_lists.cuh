#pragma once

/// Lists of slots of the cache that a caller hands over, with -1 for none. They are in place of the page
/// table (AttendArgs::pageTable): [query, caller's index][abi::Selected::budget].
namespace deft {

/// Whether a kernel reads such lists. Configs that say nothing of it have runs.
template <class Config> constexpr bool kListsAreGiven = requires { requires Config::kListsAreGiven; };

} // namespace deft
