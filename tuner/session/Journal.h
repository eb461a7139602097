#pragma once

#include "compiler/support/Descriptor.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/ConfigFile.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// What a tuning session has found out, on disk as it finds it out: the session that is killed goes on from
/// here, and the report is made of it.
///
/// A file of JSON lines, `{"sum": "1f2e3d4c", "event": {...}}`, where `sum` is the first eight hexadecimal
/// digits of the SHA-256 of the event's text as nlohmann::json dumps it. A line that is torn, or whose sum is
/// wrong, ends the journal: what follows is not used when the session goes on. Every event has `event`, its
/// kind:
///
///   session    version, identity (what must be equal to go on), parts (a hash of each fact in it), shard
///              ({index, count}; none: a whole session), variant, signature, device, driver, deftc,
///              kernel_hash, backend, strategy, space (space::toJson), space_size: {all, legal, broken:
///              {rule: count}}, classes: names of all that it is about, those of other shards among them,
///              command (how it was begun), started
///   resumed    at
///   class      class, trees: [{name, tokens, queries, held_out, seed?, similar?, untuned}], default; these
///   two are
///              candidates' ids, of what the tree gets without an entry and of what the first one does.
///              A class that a resumed session comes to again is told again, as are its candidates
///   candidate  class, id, config, origin ("default", "related", "neighbour", the strategy), and predicted_us
///              where it is known
///   batch      class, round, ids: candidates that are raced together from this round on
///   checked    class, id: its result is right
///   rejected   class, id, stage ("compile", "prepare", "check", "time"), reason
///   measured   class, id, tree, round, us: runs in a row. Rounds below 1,000,000 are of the search; those
///              from 1,000,000 of the final; from 2,000,000 of the confirmation; from 3,000,000 of it on
///              held-out trees
///   dropped    class, id, round, ratio: hopeless, its time over the best's
///   scored     class, id, us, ratio: over all trees; ratio to the untuned config
///   done       class, entry (config_cache::toJson), winner, gain, gain_error, held_out_gain (null: no such
///              trees), candidates, rejected, is_cut (the search had no more time), note, seconds
///   end        reason ("complete", "budget", "interrupted", "not saved"), made, reused, seconds
///   sparse     what was tuned behind it of layers that read lists (sparse::toJson)
namespace deft::session {

inline constexpr int kJournalVersion = 1;
inline constexpr std::string_view kJournalBegin = "{\"sum\":\""; ///< of each line
/// The first rounds of the final, of the confirmation, and of it on held-out trees.
inline constexpr int kFinalFrom = 1'000'000, kConfirmFrom = 2'000'000, kHeldOutFrom = 3'000'000;

class Journal {
public:
  /// Opens the file for this session alone and reads what it holds. One of the same identity and shard goes
  /// on; one that is complete, or `isFresh`, is put aside (its name with its date) and begun anew, but a
  /// complete shard goes on, with nothing to do, so that all shards can be started again; one of another
  /// identity or shard, one that another process has open, and a file that is no journal are errors. What
  /// follows a broken line is put aside, too, unless that is the last one, which a session was killed in. One
  /// in the cache has to be this user's alone and no link, as all files there; one that somebody names is
  /// taken through links and whoever owns it, but not where anyone may write it.
  static support::Result<Journal> open(const std::string &path, const nlohmann::json &session, bool isFresh,
                                       config_cache::Place place = config_cache::Place::Named);

  const std::string &path() const { return path_; }
  bool isResumed() const { return isResumed_; }
  /// The copy of a journal that had a broken line; empty: it had none.
  const std::string &setAside() const { return setAside_; }

  /// Appends one event by a single write, so that a process that is killed leaves whole lines. After the
  /// first failure nothing is written any more; warning() says why.
  void write(const nlohmann::json &event);
  /// Lets the disk have it.
  void sync();
  const std::string &warning() const { return warning_; }

  // What was there when it was opened, or has been written since:
  const std::vector<double> *measured(const std::string &treeClass, const std::string &id, int tree,
                                      int round) const;
  bool isChecked(const std::string &treeClass, const std::string &id) const {
    return checked_.contains({treeClass, id});
  }
  /// Why a candidate is not to be tried. A plan that cannot be made is of one class; what fails otherwise is
  /// not trusted with any.
  const std::string *rejected(const std::string &treeClass, const std::string &id) const;
  /// Which candidates were raced from this round on.
  const std::vector<std::string> *batch(const std::string &treeClass, int round) const;
  /// The `candidate` event.
  const nlohmann::json *candidate(const std::string &treeClass, const std::string &id) const;
  /// The `done` event of a class.
  const nlohmann::json *done(const std::string &treeClass) const;

private:
  Journal() = default;
  support::Result<void> cut(const std::string &text, std::size_t bytes);
  void note(const nlohmann::json &event);

  std::string path_, warning_, setAside_;
  support::Descriptor file_{-1};
  bool isResumed_ = false;
  std::map<std::tuple<std::string, std::string, int, int>, std::vector<double>> measured_;
  std::set<std::pair<std::string, std::string>> checked_;
  std::map<std::pair<std::string, std::string>, std::string> rejected_; ///< class empty: in all
  std::map<std::pair<std::string, int>, std::vector<std::string>> batches_;
  std::map<std::pair<std::string, std::string>, nlohmann::json> candidates_;
  std::map<std::string, nlohmann::json> done_;
};

/// Appends an event behind a session that has ended.
support::Result<void> appendToJournal(const std::string &path, const nlohmann::json &event);

/// The events of a journal's text, up to the first broken line. `bytes`: of that text.
std::vector<nlohmann::json> parseJournal(std::string_view text, std::size_t *bytes = nullptr);
/// For reports: an error where the file cannot be read or holds no session.
support::Result<std::vector<nlohmann::json>> readJournal(const std::string &path);

} // namespace deft::session
