#pragma once

#include "runtime/tree/TreeEdit.h"
#include "tuner/workload/Parameters.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Trees as requests make them: generated, or replayed from a record. See list().
namespace deft::workload {

class Generator;
struct GeneratorSource;

struct Description {
  std::string name;
  std::string line; ///< what it is, in one line
  std::vector<Parameter> parameters;
  bool isRecorded = false; ///< comes from a file of the folder of records
};

/// A tree and what happens to it, one decode step after the other, from step 1 to steps(). The same name,
/// parameters and seed give the same steps, and the same node numbers, however they are reached.
///
/// The tree of a step holds the tokens that the step's queries see, their own included. Between two steps
/// it changes by the operations of KvTree, so that a plan can follow it by advance(); edits() has them as
/// values for who keeps a second tree (tree::apply, SequenceTree::apply). Nodes lie nowhere in a cache.
class Workload {
public:
  ~Workload();
  Workload(Workload &&) noexcept;
  Workload &operator=(Workload &&) noexcept;

  /// As it can be given to make() again; without the seed.
  const std::string &name() const { return name_; }
  std::uint64_t seed() const { return seed_; }

  const tree::KvTree &tree() const { return tree_; }
  int step() const { return step_; } ///< whose tree it is
  int steps() const;                 ///< the last step

  /// Goes to the next step; false where this was the last one. After an error only seek(1) is of use.
  support::Result<bool> next();

  /// Goes to any step, from 1 to steps(). Backwards it starts anew.
  support::Result<void> seek(int step);

  /// What led from the step before to this one; at step 1, from an empty tree. After seek too.
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

/// All workloads: the generated ones and, with a folder, the recorded ones in it (their names are those of
/// the files). Fails on a folder that cannot be read, not on files in it that are no records.
support::Result<std::vector<Description>> list(const std::string &recordsFolder = "");

/// Makes a workload at its first step, or at the step that the parameter `step` names, which all of them
/// have. Names as parseName reads them. A recorded one is looked up in the folder.
support::Result<Workload> make(std::string_view name, std::uint64_t seed,
                               const std::string &recordsFolder = "");

} // namespace deft::workload
