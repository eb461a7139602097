#pragma once

#include <optional>
#include <string>
#include <vector>

namespace deft::specs {

/// A numbered rule of the language.
struct LanguageRule {
  std::string name; ///< "V4"
  std::string text; ///< as LANGUAGE.md has it, on one line
  std::string section;
};

/// In the order of the document.
const std::vector<LanguageRule> &languageRules();

/// Whether `word` is written like a rule's name: a capital letter and digits.
bool isRuleName(const std::string &word);

} // namespace deft::specs
