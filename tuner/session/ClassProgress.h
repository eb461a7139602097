#pragma once

#include "compiler/support/Log.h"
#include "tuner/session/ClassTask.h"
#include "tuner/session/SearchScores.h"

namespace deft::session {

/// Reports the progress of a class to a listener.
class ClassProgress {
public:
  ClassProgress(const Listener &listener, const ClassTask &task, const ClassClock &clock)
      : listener_(listener), clock_(clock) {
    status_.classIndex = task.index;
    status_.classes = task.classes;
    status_.treeClass = task.name();
  }

  /// `left`: the most candidates that remain.
  void setLeft(int left) { status_.left = left; }
  void setScores(const SearchScores &scores, double untunedUs) {
    status_.measured = scores.count();
    status_.untunedUs = untunedUs;
    status_.bestUs = scores.leastRatio() * untunedUs;
  }
  void tell(const char *stage) {
    if (support::isLogged())
      support::log({support::LogKind::Tune, "class " + status_.treeClass + ", " + stage + ": " +
                                                std::to_string(status_.measured) + " configs measured"});
    if (!listener_.progress)
      return;
    status_.stage = stage;
    status_.secondsLeft = clock_.secondsLeft().value_or(-1);
    listener_.progress(status_);
  }

private:
  const Listener &listener_;
  const ClassClock &clock_;
  Status status_;
};

} // namespace deft::session
