#include "runtime/plan/report/PlanPage.h"

#include "compiler/support/Svg.h"
#include "runtime/plan/report/PageData.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace deft::plan {

using nlohmann::json;

namespace {

/// JSON within a script element: `<` would begin a tag that ends it or a comment.
std::string embedded(const json &data) {
  std::string safe;
  for (const char c : data.dump(-1, ' ', false, json::error_handler_t::replace))
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

} // namespace

std::string planPage(std::span<const PagePlan> plans, const std::string &title) {
  json data = {{"plans", json::array()}};
  for (const PagePlan &plan : plans)
    data["plans"].push_back(pageData(plan));
  std::string heading = title;
  if (heading.empty() && !plans.empty())
    heading = (plans.size() > 1 ? "Plans of " : "Plan of ") + plans[0].report->treeName + " for " +
              plans[0].report->variantName;
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{title}}", support::Svg::escaped(heading)},
      {"{{style}}", std::string(pageFile("page.css"))},
      {"{{data}}", embedded(data)},
      {"{{scripts}}", std::string(pageFile("page.js"))}};
  // In one walk over the template, because what is put in may contain such marks.
  std::string page;
  std::string_view rest = pageFile("page.html");
  while (!rest.empty()) {
    const auto *part = std::find_if(std::begin(parts), std::end(parts),
                                    [&](const auto &one) { return rest.starts_with(one.first); });
    if (part == std::end(parts)) {
      const std::size_t next = std::min(rest.find("{{", 1), rest.size());
      page += rest.substr(0, next);
      rest.remove_prefix(next);
    } else {
      page += part->second;
      rest.remove_prefix(part->first.size());
    }
  }
  return page;
}

} // namespace deft::plan
