#pragma once

#include "runtime/plan/report/PlanReport.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deft::plan {

/// A plan on a page.
struct PagePlan {
  /// A row of figures next to those of the page, such as {"measured", "12.3 µs", "median of 20"}.
  struct Fact {
    std::string name, text;
    std::string note = {}; ///< in small print; may be empty
  };

  const PlanReport *report = nullptr;
  std::string why = {};   ///< the reason for its config, in words; may be empty
  std::string label = {}; ///< its name on a page with two plans; empty: its partition
  std::vector<Fact> facts = {};
};

/// A page of HTML with one plan, or with two next to each other: tree, items, blocks over time by the price
/// model, bytes. It needs no other file and no network. `title` is plain text; empty: made from the names of
/// the first plan.
std::string planPage(std::span<const PagePlan> plans, const std::string &title = {});

/// A file of page/, which the library contains: "page.html", "page.css", or all scripts as "page.js".
std::string_view pageFile(std::string_view name);

} // namespace deft::plan
