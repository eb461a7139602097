#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Words of other languages and libraries, for hints: who writes `num_heads` or `and` knows what is meant,
/// and letters alone do not lead from there to the word of this language.
namespace deft::spec {

/// "did you mean `x`?": the candidate that others call so, else the nearest by its letters; "" where none is.
std::string suggest(std::string_view name, const std::vector<std::string> &candidates);

/// How this language writes `and`, `or` and `not`, as a hint; "" for any other word.
std::string hintForOperator(std::string_view word);

/// Whether it means 8-bit floats of some kind.
bool isForeignFp8(std::string_view dtype);

} // namespace deft::spec
