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

/// Of the racer that is on each tree what the tree gets without an entry; no config has this id.
inline constexpr char kUntuned[] = "untuned";

/// What all classes of a session have in common.
struct SessionContext {
  const TuneInput &input;
  const TuneOptions &options;
  const Listener &listener;
  const TunedDevice &device;
  const space::Space &space;
  ChildProcesses &processes;
  Journal &journal;

  /// A processor has others beside us, who only add to a time.
  Estimator estimator() const {
    return device.key.kind == config::DeviceKind::Cpu ? Estimator::Fastest : Estimator::Median;
  }
  bool isRecording() const { return !options.recordFolder.empty(); }
};

/// One class that is to be tuned.
struct ClassTask {
  const TreesOfClass &trees;
  int index = 0, classes = 1; ///< which of the session's it is
  UntunedChoices untuned;
  Related related; ///< tried first; where it is known, nothing else is
  std::optional<ClassClock::Time> deadline, sessionEnd;

  std::string name() const { return trees.treeClass.text(); }
};

} // namespace deft::session
