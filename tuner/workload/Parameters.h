#pragma once

#include "compiler/support/Result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft::workload {

/// What a workload can be told.
struct Parameter {
  std::string name;
  std::string defaultValue; ///< empty: none
  std::string description;
};

using GivenParameters = std::vector<std::pair<std::string, std::string>>;

/// A workload as users write it: `few_shot:prompt=4000,branches=20`. A piece without `=` goes on with the
/// value before it, so that `levels:nodes=1,10,tokens=4000,400` reads as it looks.
struct WorkloadName {
  std::string name;
  GivenParameters parameters;
};
support::Result<WorkloadName> parseName(std::string_view text);

/// Values by name, the given ones before the defaults. The first value that is wrong is kept as an error.
class Parameters {
public:
  /// Fails on a name that is given twice or that `known` lacks.
  static support::Result<Parameters> make(const std::string &workload, const GivenParameters &given,
                                          const std::vector<Parameter> &known);

  int integer(const std::string &name, int low, int high);
  /// Integers with commas between them.
  std::vector<int> integers(const std::string &name, int low, int high);
  std::string choice(const std::string &name, const std::vector<std::string> &choices);
  std::string text(const std::string &name) const;
  bool has(const std::string &name) const { return !text(name).empty(); }

  /// Keeps the first.
  void fail(support::Error error);
  const std::optional<support::Error> &error() const { return error_; }

private:
  GivenParameters values_;
  std::optional<support::Error> error_;
};

} // namespace deft::workload
