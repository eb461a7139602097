#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace deft::nvrtc {

/// A device header inside the binary. `name` is its name in includes: "deft/merge.cuh".
struct TemplateHeader {
  std::string_view name;
  std::string_view text;
};

/// All headers below templates/, sorted by name.
std::span<const TemplateHeader> templateHeaders();

/// The headers that `source` includes, directly or indirectly, sorted by name. Only these are part of a
/// cubin's key, so a change of one template does not rebuild the kernels of others.
std::vector<TemplateHeader> reachedHeaders(std::string_view source);

} // namespace deft::nvrtc
