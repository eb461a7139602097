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

/// Chooses the candidates of a class for the next race: in a resumed session those of its journal, then
/// related ones, then the strategy's proposals. It writes each to the journal once, when it is raced.
class BatchChooser {
public:
  /// Its sources and listeners; all must outlive it.
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

  /// Writes the first one to the journal and compiles it ahead: no race runs without it.
  void begin();
  /// Ids of up to `most` candidates for this round's race, those with compiled kernels first. None: no
  /// more to try. While all wait for a compiler, it calls `isOver` regularly to decide whether to
  /// continue.
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
  std::set<std::string> asked_;      ///< candidates that were chosen or will be
  std::vector<std::string> waiting_; ///< those whose kernels are being compiled
  bool hasRelated_ = false;          ///< related configs have been added
  bool isExhausted_ = false;         ///< the strategy has no more proposals
};

} // namespace deft::session
