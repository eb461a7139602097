#pragma once

#include <span>
#include <vector>

namespace deft::session {

/// The state of a class after earlier runs of its session.
enum class Standing {
  New,  ///< no result yet
  Cut,  ///< a result of a search without enough time
  Done, ///< a final result
};

/// The order in which classes are tuned, by their indices: those without a result first, otherwise in the
/// given order.
std::vector<int> turnsOf(std::span<const Standing> classes);

/// A class that is tuned now or later.
struct WaitingClass {
  Standing standing = Standing::New;
  double openSeconds = 0; ///< expected time for making its inputs
};

/// The search time, in seconds, of the first class out of the remaining budget. New classes come before cut
/// ones and share all of it: first a result for each, then better ones. `waiting` is not empty.
double shareOf(std::span<const WaitingClass> waiting, double restSeconds);

} // namespace deft::session
