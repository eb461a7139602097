#pragma once

#include "templates/deft/abi.h"

/// Partial attentions of the same rows become one, on the host: the twin of
/// templates/deft/merge_states.cuh.
namespace deft::exec {

enum class StateType { F32, F16, BF16 };

constexpr int bytesOf(StateType type) { return type == StateType::F32 ? 4 : 2; }

/// `args` in memory of the host; lanesOfRow is not used. The element type is any, the dim, too.
void mergeStates(const abi::StatesArgs &args, StateType type);

} // namespace deft::exec
