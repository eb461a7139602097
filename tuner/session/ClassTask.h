#pragma once

#include "tuner/session/Candidates.h"
#include "tuner/session/ChildProcesses.h"
#include "tuner/session/ClassClock.h"
#include "tuner/session/ClassTrees.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Race.h"
#include "tuner/session/Related.h"
#include "tuner/session/Tune.h"

namespace deft::session {

/// The racer that uses each tree's choice without an entry; no config has this id.
inline constexpr char kUntuned[] = "untuned";

/// Data shared by all classes of a session.
struct SessionContext {
  const TuneInput &input;
  const TuneOptions &options;
  const Listener &listener;
  const TunedDevice &device;
  const space::Space &space;
  ChildProcesses &processes;
  Journal &journal;

  /// Other programs share a processor, and they only add to a time.
  Estimator estimator() const {
    return device.key.kind == config::DeviceKind::Cpu ? Estimator::Fastest : Estimator::Median;
  }
  bool isRecording() const { return !options.recordFolder.empty(); }
};

/// A class to tune.
struct ClassTask {
  const TreesOfClass &trees;
  int index = 0, classes = 1; ///< its index, and the number of classes
  UntunedChoices untuned;
  Related related; ///< tried first; if `isKnown`, nothing else is tried
  std::optional<ClassClock::Time> deadline, sessionEnd;

  std::string name() const { return trees.treeClass.text(); }
};

} // namespace deft::session
