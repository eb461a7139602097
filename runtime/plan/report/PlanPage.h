#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deft::plan {

/// One of the plans that a page shows.
struct PagePlan {
  /// A row of the plan's figures beside those of the page, such as {"measured", "12.3 µs", "median of 20"}.
  struct Fact {
    std::string name, text;
    std::string note = {}; ///< in small letters; may be empty
  };

  const PlanReport *report = nullptr;
  std::string why = {};   ///< for which reason it has its config, in words; may be empty
  std::string label = {}; ///< its name where there are two; empty: its partition
  std::vector<Fact> facts = {};
};

/// A page of HTML that shows one plan, or two side by side: tree, items, blocks over time by the price model,
/// bytes. It needs no other file and no network. `title` is plain text; empty: made of the first plan's
/// names.
std::string planPage(std::span<const PagePlan> plans, const std::string &title = {});

/// A file of page/, which are part of the library: "page.html", "page.css", or all scripts as "page.js".
std::string_view pageFile(std::string_view name);

} // namespace deft::plan
