#pragma once

#include <bit>

namespace deft::sharing {

/// How many tokens a page has. Nearly always a power of two: then nothing is divided, which would take longer
/// than all else that is done for a request that grew.
class PageSize {
public:
  explicit PageSize(int tokens)
      : tokens_(tokens), shift_(std::has_single_bit(static_cast<unsigned>(tokens))
                                    ? std::countr_zero(static_cast<unsigned>(tokens))
                                    : -1) {}

  int tokens() const { return tokens_; }
  /// The page that a token lies in.
  int pageOf(int token) const { return shift_ >= 0 ? token >> shift_ : token / tokens_; }
  /// How many pages hold so many tokens.
  int pagesFor(int tokens) const { return tokens > 0 ? pageOf(tokens - 1) + 1 : 0; }

private:
  int tokens_;
  int shift_; ///< -1: it is no power of two
};

} // namespace deft::sharing
