#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deft::exec {

/// A one-dimensional array of f32 or i32 from numpy.save. Exactly one of the vectors is filled.
struct NpyArray {
  enum class Type { F32, I32 } type = Type::F32;
  std::vector<float> f32;
  std::vector<std::int32_t> i32;
};

support::Result<NpyArray> parseNpy(std::string_view bytes);
support::Result<NpyArray> readNpyFile(const std::string &path);

} // namespace deft::exec
