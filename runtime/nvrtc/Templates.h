#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace deft::nvrtc {

/// A device header as the binary carries it. `name` is how an include spells it: "deft/merge.cuh".
struct TemplateHeader {
  std::string_view name;
  std::string_view text;
};

/// All headers under templates/, ordered by name.
std::span<const TemplateHeader> templateHeaders();

/// The headers that `source` includes, directly or through others, ordered by name. Only these are
/// part of a cubin's key, so a change to one template does not rebuild the kernels of the others.
std::vector<TemplateHeader> reachedHeaders(std::string_view source);

} // namespace deft::nvrtc
