#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Words of other languages and libraries, for hints: the intent of `num_heads` or `and` is clear, but no
/// spelling distance leads from them to the word of this language.
namespace deft::spec {

/// "did you mean `x`?": the candidate with this foreign name, else the nearest by spelling; "" if none.
std::string suggest(std::string_view name, const std::vector<std::string> &candidates);

/// A hint that gives this language's operator for `and`, `or` or `not`; "" for any other word.
std::string hintForOperator(std::string_view word);

/// Whether it is a foreign name of some 8-bit float.
bool isForeignFp8(std::string_view dtype);

} // namespace deft::spec
