#pragma once

#include "tuner/session/ClassTrees.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Lab.h"
#include "tuner/session/Race.h"
#include "tuner/session/Related.h"
#include "tuner/session/Tune.h"

#include <chrono>
#include <memory>
#include <set>

namespace deft::session {

/// What all classes of a session have in common.
struct SessionState {
  const TuneInput &input;
  const TuneOptions &options;
  const Listener &listener;
  Lab &lab;
  Journal &journal;
  const space::Space &space;
  config_cache::DeviceKey device;
  std::string driver;
  std::vector<config::Config> untuned; ///< what each of the class's trees gets without an entry
  int made = 0, reused = 0;
};

/// Finds the config of one class: search, final, confirmation.
class ClassTuner {
public:
  using Clock = std::chrono::steady_clock;

  /// `deadline` none: as long as it takes; inputs and oracle put it off. `related` is tried first; where it
  /// is known, nothing else is.
  ClassTuner(SessionState &state, const TreesOfClass &trees, int index, int classes, Related related,
             std::optional<Clock::time_point> deadline, std::optional<Clock::time_point> sessionEnd);
  ClassReport run();

  /// The search ended because its time was over.
  bool isCut() const { return isCut_; }
  /// Of every candidate, its time over the untuned config's; for a recording.
  std::map<std::string, double> recordedRatios() const;
  double untunedUs() const { return untunedUs_; }
  /// What making the inputs took; 0: they were not needed.
  double openSeconds() const { return openSeconds_; }

private:
  static constexpr const char *kNeighbour = "neighbour", *kRelated = "related"; ///< origins
  /// Of the racer that is on each tree what the tree gets without an entry; no config has this id.
  static constexpr const char *kUntuned = "untuned";

  struct Known {
    config::Config config;
    std::optional<space::Point> point;
    std::string origin;
    bool isTold = false;     ///< the journal has it
    bool isAdmitted = false; ///< the device's process has it
  };

  std::string enter(const config::Config &config, std::optional<space::Point> point,
                    const std::string &origin);
  void tellCandidate(const std::string &id);
  Estimator estimator() const;
  double sampleOf(const std::vector<double> &us) const;
  std::optional<double> measureOnce(const std::string &id, int tree, int round);
  /// The same; of the reference's id, what the tree gets without an entry.
  std::optional<double> measureFor(const std::string &id, int tree, int round, const char *stage);
  void postpone(Clock::time_point since);
  void reject(const std::string &id, const Lab::Fault &fault);
  bool search();
  std::vector<Racer> nextBatch();
  std::vector<std::string> batchOfJournal();
  std::vector<std::string> chooseBatch();
  double ratioOf(const Racer &racer) const;
  void take(const std::vector<Racer> &racers);
  void rank(const Racer &racer, double ratio);
  std::vector<std::string> final();
  /// What a config costs that a measurement of one step does not show: phases, which are launches one after
  /// the other, and whether a step in which leaves have grown needs a new plan.
  std::size_t burdenOf(const std::string &id) const {
    const config::Config &config = known_.at(id).config;
    return config.phases.size() + (config.order == config::Order::Mixed ? 1 : 0);
  }
  std::vector<std::string> bestOfSome() const;
  void confirmInTurn(ClassReport &report);
  bool confirm(const std::string &winner, int attempt, ClassReport &report);
  Racer duel(const std::string &finalist, int attempt, const RaceOptions &options);
  bool isClearlyFaster(const Racer &racer) const;
  /// False: nothing is settled by that.
  bool keepUntuned(const std::string &why, ClassReport &report) const;
  std::vector<config_cache::Coordinates> placesOf(const std::vector<std::size_t> &trees, int first) const;
  void finish(ClassReport &report);
  bool isCancelled() const;
  int mostCandidates() const;
  bool isEnough(const Racer &reference) const;
  bool isTimeFor(std::size_t measurements) const;
  std::size_t fewestToConfirm() const;
  bool isSearchOver();
  void tellProgress(const char *stage);
  void forgetAllBut(const std::set<std::string> &ids);
  bool isUntunedOfAll(const std::string &id) const;

  SessionState &state_;
  const TreesOfClass &trees_;
  std::string name_; ///< of the class
  int index_, classes_;
  Related related_;
  std::optional<Clock::time_point> deadline_, sessionEnd_;
  std::unique_ptr<search::Predictor> predictor_;
  std::unique_ptr<search::Strategy> strategy_;
  std::map<std::string, Known> known_;
  std::map<std::string, double> ratios_, us_;           ///< of what was measured
  std::vector<std::pair<double, std::string>> ranking_; ///< of those that stayed to the end of their race
  std::map<std::size_t, std::pair<double, std::string>> bestOfTree_; ///< of each given tree, ratio and id
  std::set<std::string> asked_;      ///< candidates that have had their turn, or will
  std::vector<std::string> waiting_; ///< those of them whose kernels are being compiled
  bool hasRelated_ = false;          ///< what is related has had its turn
  bool isExhausted_ = false;         ///< the strategy has no more
  Racer reference_{kUntuned, {}, false};
  std::vector<std::string> untunedIds_;              ///< of each tree, what it gets without an entry
  std::set<std::tuple<std::string, int, int>> made_; ///< id, tree and round of what this run measured
  double untunedUs_ = 0;
  int rounds_ = 0; ///< of the search, so far
  int measured_ = 0, rejected_ = 0;
  bool isOpen_ = false, isCut_ = false, isStopped_ = false;
  Clock::time_point start_ = Clock::now();
  double timedSeconds_ = 0; ///< of all in made_
  double openSeconds_ = 0;  ///< of the inputs
  double setupSeconds_ = 0; ///< of these, and of the untuned config
};

} // namespace deft::session
