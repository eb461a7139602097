#include "specs/LanguageRules.h"

#include "specs/Embedded.h"

#include <algorithm>
#include <cctype>

namespace deft::specs {
namespace {

constexpr std::string_view kRule = "- **", kRuleEnd = ".** ", kSection = "## ";

std::vector<LanguageRule> readRules(std::string_view text) {
  std::vector<LanguageRule> rules;
  std::string section;
  bool isInRule = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kSection)) {
      section = line.substr(kSection.size());
      isInRule = false;
    } else if (const std::size_t stop = line.find(kRuleEnd);
               line.starts_with(kRule) && stop != std::string_view::npos &&
               isRuleName(std::string(line.substr(kRule.size(), stop - kRule.size())))) {
      rules.push_back({std::string(line.substr(kRule.size(), stop - kRule.size())),
                       std::string(line.substr(stop + kRuleEnd.size())), section});
      isInRule = true;
    } else if (isInRule && line.starts_with("  ")) { // goes on below its beginning
      rules.back().text += " " + std::string(line.substr(line.find_first_not_of(' ')));
    } else {
      isInRule = false;
    }
  }
  return rules;
}

} // namespace

const std::vector<LanguageRule> &languageRules() {
  static const std::vector<LanguageRule> rules = readRules(languageText());
  return rules;
}

bool isRuleName(const std::string &word) {
  return word.size() >= 2 && std::isupper(static_cast<unsigned char>(word.front())) &&
         std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c); });
}

} // namespace deft::specs
