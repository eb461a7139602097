#include "runtime/nvrtc/Templates.h"

#include <algorithm>

namespace deft::nvrtc {
namespace {

/// Calls `visit` with each name in `#include "name"`. The templates include by full name and never
/// under a condition, so no preprocessor is needed.
template <class Visit> void forEachInclude(std::string_view text, Visit &&visit) {
  constexpr std::string_view kInclude = "#include \"";
  for (std::size_t at = text.find(kInclude); at != std::string_view::npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    visit(text.substr(at, text.find('"', at) - at));
  }
}

} // namespace

std::vector<TemplateHeader> reachedHeaders(std::string_view source) {
  const auto all = templateHeaders();
  std::vector<bool> reached(all.size(), false);
  std::vector<std::string_view> pending{source};
  while (!pending.empty()) {
    const std::string_view text = pending.back();
    pending.pop_back();
    forEachInclude(text, [&](std::string_view name) {
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const TemplateHeader &header) { return header.name == name; });
      if (found == all.end() || reached[found - all.begin()])
        return;
      reached[found - all.begin()] = true;
      pending.push_back(found->text);
    });
  }
  std::vector<TemplateHeader> headers;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (reached[i])
      headers.push_back(all[i]);
  return headers;
}

} // namespace deft::nvrtc
