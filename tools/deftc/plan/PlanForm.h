#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <vector>

namespace deft::cli {

/// What a plan can be written as: text, json, svg, html.
std::vector<std::string> planForms();

struct PlanForm {
  std::string name;
  std::string byFile; ///< what the file's ending says where --as says another form; else empty
};

/// What --as says (empty: nothing), else what the file's ending does. Without a file, for `-` and for names
/// without an ending it is text.
support::Result<PlanForm> choosePlanForm(const std::string &as, const std::string &file);

} // namespace deft::cli
