#pragma once

#include <span>
#include <vector>

namespace deft::session {

/// What a class has come to in earlier runs of its session.
enum class Standing {
  New,  ///< no result yet
  Cut,  ///< one that had too little time
  Done, ///< one that needs no more time
};

/// In which order classes have their turn, by their numbers: those without a result first, else as they
/// stand.
std::vector<int> turnsOf(std::span<const Standing> classes);

/// A class whose turn has come or will come.
struct WaitingClass {
  Standing standing = Standing::New;
  double openSeconds = 0; ///< that making its inputs is expected to take
};

/// Seconds of the budget's rest for the first one, which there is, to search in. New ones come before those
/// that were cut, and share all that there is: a result first for each, then better ones.
double shareOf(std::span<const WaitingClass> waiting, double restSeconds);

} // namespace deft::session
