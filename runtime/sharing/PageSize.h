#pragma once

#include <bit>

namespace deft::sharing {

/// The number of tokens of a page. It is almost always a power of two, which avoids divisions: one would take
/// longer than all other work for a request that grew.
class PageSize {
public:
  explicit PageSize(int tokens)
      : tokens_(tokens), shift_(std::has_single_bit(static_cast<unsigned>(tokens))
                                    ? std::countr_zero(static_cast<unsigned>(tokens))
                                    : -1) {}

  int tokens() const { return tokens_; }
  /// The page of a token.
  int pageOf(int token) const { return shift_ >= 0 ? token >> shift_ : token / tokens_; }
  /// The number of pages that hold so many tokens.
  int pagesFor(int tokens) const { return tokens > 0 ? pageOf(tokens - 1) + 1 : 0; }

private:
  int tokens_;
  int shift_; ///< -1: not a power of two
};

} // namespace deft::sharing
