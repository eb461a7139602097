#pragma once

/// In which units kernels count where rows of q, K and V begin (abi::CachePlaces): rows of q and out, and
/// tokens, pages and heads of K and V, are multiples of these apart. Without includes, as abi.h.
namespace deft::abi {

/// Elements of a unit: 16, or 8 where these do not divide a row of K or of V, which halves what 32 bits of
/// units reach.
constexpr int strideElements(int keyDim, int valueDim) { return (keyDim | valueDim) % 16 == 0 ? 16 : 8; }

} // namespace deft::abi
