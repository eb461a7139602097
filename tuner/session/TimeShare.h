#pragma once

#include <span>

namespace deft::session {

/// A class whose turn has come or will come.
struct Waiting {
  enum class Stands { New, Cut, Done }; ///< without a result; with one that had too little time; with one
  Stands stands = Stands::New;
  double openSeconds = 0; ///< that making its inputs is expected to take
};

/// Seconds of the budget's rest for the first one, which there is, to search in. New ones come before those
/// that were cut, and share all that there is: a result first for each, then better ones.
double shareOf(std::span<const Waiting> waiting, double restSeconds);

} // namespace deft::session
