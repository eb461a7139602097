#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace deft::test {

/// Sets or unsets an environment variable during the lifetime of the object.
class SetVariable {
public:
  SetVariable(const char *name, const std::optional<std::string> &value) : name_(name) {
    if (const char *before = std::getenv(name))
      before_ = before;
    set(value);
  }
  ~SetVariable() { set(before_); }
  SetVariable(const SetVariable &) = delete;
  SetVariable &operator=(const SetVariable &) = delete;

private:
  void set(const std::optional<std::string> &value) {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }

  const char *name_;
  std::optional<std::string> before_;
};

} // namespace deft::test
