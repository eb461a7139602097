#pragma once

#include "tuner/session/ClassTask.h"

#include <set>
#include <span>
#include <tuple>

namespace deft::session {

/// Measures the candidates of a class, once per tree and round: it reuses measurements of the journal.
class CandidateTimer {
public:
  CandidateTimer(const SessionContext &context, const ClassTask &task, const Candidates &candidates,
                 ClassClock &clock)
      : context_(context), task_(task), candidates_(candidates), clock_(clock), class_(task.name()) {}

  /// Microseconds; for kUntuned, those of the tree's choice without an entry. None: the candidate is
  /// rejected, and the journal has the reason.
  std::optional<double> measure(const std::string &id, int tree, int round);
  /// Keeps only these on the device.
  void forgetAllBut(std::span<const std::string> ids);

  int made() const { return static_cast<int>(made_.size()); } ///< measurements
  int reused() const { return reused_; }
  int rejected() const { return rejected_; } ///< candidates
  /// The time for making the inputs; 0: they were not needed.
  double openSeconds() const { return openSeconds_; }

private:
  bool open(const std::string &id);
  bool admit(const std::string &id);
  void reject(const std::string &id, const ChildProcesses::Fault &fault);

  const SessionContext &context_;
  const ClassTask &task_;
  const Candidates &candidates_;
  ClassClock &clock_;
  std::string class_;
  std::set<std::tuple<std::string, int, int>> made_; ///< id, tree and round
  std::set<std::string> admitted_;                   ///< ids in the device's process
  int reused_ = 0, rejected_ = 0;
  bool isOpen_ = false;
  double openSeconds_ = 0;
};

} // namespace deft::session
