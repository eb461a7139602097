#pragma once

#include <string>

namespace deft::test {

/// The text of hooks for plain attention, in the emitter's form.
inline std::string plainHooks(double scale) {
  return R"(struct Params {};
struct Variant {
  using Params = ::Params;
  static constexpr bool kHasMask = false;
  static constexpr bool kHasScore = false;
  static constexpr bool kSigmoid = false;
  static constexpr float kScale = )" +
         std::to_string(scale) + R"(;
  struct Row {};
  static __device__ __forceinline__ Row row(const Params &, int, int, int, int) { return {}; }
  static __device__ __forceinline__ float score(const Params &, const Row &, float s, int, int, int) { return s; }
  static __device__ __forceinline__ bool mask(const Params &, const Row &, int, int, int) { return true; }
  static __device__ __forceinline__ deft::TileVisibility tile(const Params &, const deft::TileBounds &) {
    return {true, true};
  }
};
)";
}

} // namespace deft::test
