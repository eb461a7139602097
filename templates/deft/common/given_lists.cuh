#pragma once

/// Lists of cache slots from the caller, with -1 for no token. They replace the page table
/// (AttendArgs::pageTable): [query, caller's index][abi::Selected::budget].
namespace deft {

/// Whether a kernel reads such lists. By default, configs have runs.
template <class Config> constexpr bool kListsAreGiven = requires { requires Config::kListsAreGiven; };

} // namespace deft
