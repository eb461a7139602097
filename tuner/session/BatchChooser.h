#pragma once

#include "tuner/search/Strategy.h"
#include "tuner/session/Candidates.h"
#include "tuner/session/CompilePool.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Related.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace deft::session {

/// Which candidates of a class are raced together next: those that a resumed session raced then, else what is
/// related, else what the strategy proposes. The journal is told of each once, when its turn has come.
class BatchChooser {
public:
  /// What it chooses from, and whom it asks and tells; all must outlive it.
  struct Sources {
    const space::Space &space;
    const UntunedChoices &untuned;
    Candidates &candidates;
    search::Strategy &strategy;
    search::Predictor &predictor;
    CompilePool &compilers;
    Journal &journal;
    std::string treeClass, strategyName;
    config::DeviceKind device;
  };
  BatchChooser(Sources sources, Related related);

  /// The first is told to the journal and compiled ahead: nothing is raced without it.
  void begin();
  /// Ids of up to `most` candidates for the race of this round, those first whose kernels are there; none:
  /// there is nothing more to try. While all wait for a compiler, `isOver` is asked now and then whether to
  /// go on.
  std::vector<std::string> next(int round, std::size_t most, const std::function<bool()> &isOver);

private:
  std::vector<std::string> ofJournal(int round);
  void addRelated();
  void add(const config::Config &config, const std::optional<space::Point> &point, const std::string &origin);
  void takeReady(std::size_t most, std::vector<std::string> &ready);
  void announce(const std::string &id);

  Sources from_;
  Related related_;
  std::set<std::string> announced_;
  std::set<std::string> asked_;      ///< candidates that have had their turn, or will
  std::vector<std::string> waiting_; ///< those of them whose kernels are being compiled
  bool hasRelated_ = false;          ///< what is related has had its turn
  bool isExhausted_ = false;         ///< the strategy has no more
};

} // namespace deft::session
