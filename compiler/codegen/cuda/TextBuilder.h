#pragma once

#include <algorithm>
#include <string>
#include <utility>

namespace deft::codegen::cuda {

/// Collects lines and counts them, so that `#line` can point back to the generated file after the hooks have
/// pointed to the spec.
class TextBuilder {
public:
  void line(const std::string &text) { text_ += text + "\n"; }
  void constant(const std::string &name, int value) {
    line("  static constexpr int " + name + " = " + std::to_string(value) + ";");
  }
  void constant(const std::string &name, bool value) {
    line("  static constexpr bool " + name + " = " + (value ? "true" : "false") + ";");
  }
  void paste(const std::string &text) { text_ += text; }
  void resumeLines(const std::string &fileName) {
    const auto lines = std::count(text_.begin(), text_.end(), '\n');
    line("#line " + std::to_string(lines + 2) + " \"" + fileName + "\"");
  }
  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

} // namespace deft::codegen::cuda
