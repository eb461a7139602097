#include "tools/deftc/plan/PlanForm.h"

#include "tools/deftc/common/Words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace deft::cli {
namespace {

struct Known {
  const char *name, *ending;
};
constexpr std::array kKnown = {Known{"text", ".txt"}, Known{"json", ".json"}, Known{"svg", ".svg"},
                               Known{"html", ".html"}};

/// In lower case; empty: none.
std::string endingOf(const std::string &file) {
  std::string ending = std::filesystem::path(file).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

} // namespace

std::vector<std::string> planForms() {
  std::vector<std::string> names;
  for (const Known &known : kKnown)
    names.emplace_back(known.name);
  return names;
}

support::Result<PlanForm> choosePlanForm(const std::string &as, const std::string &file) {
  const std::string ending = endingOf(file);
  const auto *found =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known &known) { return ending == known.ending; });
  const std::string byFile = found == kKnown.end() ? "" : found->name;
  if (!as.empty())
    return PlanForm{as, byFile == as ? "" : byFile};
  if (!byFile.empty())
    return PlanForm{byFile, ""};
  if (ending.empty())
    return PlanForm{"text", ""};
  std::vector<std::string> endings;
  for (const Known &known : kKnown)
    endings.emplace_back(known.ending);
  return support::Error{
      support::ErrorCode::Usage, "`" + file + "` ends in " + ending + ", which is not a known format",
      "known endings are " + joined(endings) + "; --as " + joined(planForms(), "|") + " works with any name"};
}

} // namespace deft::cli
