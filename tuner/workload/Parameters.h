#pragma once

#include "compiler/support/Result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft::workload {

/// A parameter of a workload.
struct Parameter {
  std::string name;
  std::string defaultValue; ///< empty: none
  std::string description;
};

using GivenParameters = std::vector<std::pair<std::string, std::string>>;

/// A workload as users write it: `few_shot:prompt=4000,branches=20`. A piece without `=` continues the
/// previous value, so `levels:nodes=1,10,tokens=4000,400` means what it appears to.
struct WorkloadName {
  std::string name;
  GivenParameters parameters;
};
support::Result<WorkloadName> parseName(std::string_view text);

/// Values by name; given ones override defaults. The first wrong value is kept as an error.
class Parameters {
public:
  /// Fails on a repeated name, or one that is not in `known`.
  static support::Result<Parameters> make(const std::string &workload, const GivenParameters &given,
                                          const std::vector<Parameter> &known);

  int integer(const std::string &name, int low, int high);
  /// Integers separated by commas.
  std::vector<int> integers(const std::string &name, int low, int high);
  std::string choice(const std::string &name, const std::vector<std::string> &choices);
  std::string text(const std::string &name) const;
  bool has(const std::string &name) const { return !text(name).empty(); }

  /// Keeps the first error.
  void fail(support::Error error);
  const std::optional<support::Error> &error() const { return error_; }

private:
  GivenParameters values_;
  std::optional<support::Error> error_;
};

} // namespace deft::workload
