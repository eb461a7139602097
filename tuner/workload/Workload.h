#pragma once

#include "runtime/tree/TreeEdit.h"
#include "tuner/workload/Parameters.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Trees as requests create them: generated, or replayed from a record. See list().
namespace deft::workload {

class Generator;
struct GeneratorSource;

struct Description {
  std::string name;
  std::string line; ///< a description in one line
  std::vector<Parameter> parameters;
  bool isRecorded = false; ///< from a file in the folder of records
};

/// A tree and its changes, one decode step after the other, from step 1 to steps(). The same name, parameters
/// and seed always give the same steps and node numbers.
///
/// The tree of a step holds the tokens that the step's queries see, including their own. Between steps it
/// changes by the operations of KvTree, so that a plan can follow it by advance(). edits() has these as
/// values, for a second tree (tree::apply, SequenceTree::apply). Nodes have no place in a cache.
class Workload {
public:
  ~Workload();
  Workload(Workload &&) noexcept;
  Workload &operator=(Workload &&) noexcept;

  /// In a form that make() accepts; without the seed.
  const std::string &name() const { return name_; }
  std::uint64_t seed() const { return seed_; }

  const tree::KvTree &tree() const { return tree_; }
  int step() const { return step_; } ///< of the current tree
  int steps() const;                 ///< the last step

  /// Goes to the next step; false after the last one. After an error, only seek(1) is useful.
  support::Result<bool> next();

  /// Goes to any step, from 1 to steps(). Going backwards starts again.
  support::Result<void> seek(int step);

  /// The edits from the previous step to this one; at step 1, from an empty tree. Valid after seek as well.
  const std::vector<tree::TreeEdit> &edits() const { return edits_; }

private:
  friend support::Result<Workload> make(std::string_view, std::uint64_t, const std::string &);
  Workload();
  support::Result<void> start();
  support::Result<void> finishStep(const std::optional<support::Error> &error);

  std::string name_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<GeneratorSource> source_;
  std::unique_ptr<Generator> generator_;
  tree::KvTree tree_;
  std::vector<tree::TreeEdit> edits_;
  std::vector<tree::Query> queries_;
  int step_ = 0;
};

/// All workloads: the generated ones and, with a folder, the recorded ones in it (named by their files).
/// Fails if the folder cannot be read, but not on files in it that are no records.
support::Result<std::vector<Description>> list(const std::string &recordsFolder = "");

/// Makes a workload at its first step, or at the step of the parameter `step`, which all workloads have. For
/// names, see parseName. Recorded workloads are in the folder.
support::Result<Workload> make(std::string_view name, std::uint64_t seed,
                               const std::string &recordsFolder = "");

} // namespace deft::workload
