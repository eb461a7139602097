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

/// The results of a tuning session, on disk as they appear: a killed session continues from here, and the
/// report is made from this file.
///
/// A file of JSON lines, `{"sum": "1f2e3d4c", "event": {...}}`, where `sum` is the first eight
/// hexadecimal digits of the SHA-256 of the event's text as nlohmann::json dumps it. A torn line, or one
/// with a wrong sum, ends the journal: a resumed session ignores the rest. Every event has `event`, its
/// kind:
///
///   session    version, identity (must be equal to continue), parts (a hash of each fact in it), shard
///              ({index, count}; none: a whole session), variant, signature, device, driver, deftc,
///              kernel_hash, backend, strategy, space (space::toJson), space_size: {all, legal, broken:
///              {rule: count}}, classes: names of all its classes, including those of other shards,
///              command (the command that started it), started
///   resumed    at
///   class      class, trees: [{name, tokens, queries, held_out, seed?, similar?, untuned}], default.
///              `untuned` and `default` are candidates' ids: the choices without an entry of the tree and of
///              the first tree. If a resumed session reaches a class again, it writes the class and its
///              candidates again
///   candidate  class, id, config, origin ("default", "related", "neighbour", the strategy), and predicted_us
///              if it is known
///   batch      class, round, ids: candidates that are raced together from this round on
///   checked    class, id: its result is right
///   rejected   class, id, stage ("compile", "prepare", "check", "time"), reason
///   measured   class, id, tree, round, us: runs in a row. Rounds below 1,000,000 are of the search; those
///              from 1,000,000 of the final; from 2,000,000 of the confirmation; from 3,000,000 of the
///              confirmation on held-out trees
///   dropped    class, id, round, ratio (its time over the best's): hopeless
///   scored     class, id, us, ratio: over all trees; the ratio is to the untuned config
///   done       class, entry (config_cache::toJson), winner, gain, gain_error, held_out_gain (null: no such
///              trees), candidates, rejected, is_cut (the search ran out of time), note, seconds
///   end        reason ("complete", "budget", "interrupted", "not saved"), made, reused, seconds
///   sparse     the later tuning of layers that read lists (sparse::toJson)
namespace deft::session {

inline constexpr int kJournalVersion = 1;
inline constexpr std::string_view kJournalBegin = "{\"sum\":\""; ///< of each line
/// The first rounds of the final, of the confirmation, and of the confirmation on held-out trees.
inline constexpr int kFinalFrom = 1'000'000, kConfirmFrom = 2'000'000, kHeldOutFrom = 3'000'000;

class Journal {
public:
  /// Opens the file exclusively for this session and reads its contents. A journal of the same identity and
  /// shard is continued. A complete one, or any with `isFresh`, is set aside (renamed with its date) and
  /// started again. However, a complete shard is continued without work, so that all shards can be restarted.
  /// Errors: another identity or shard, a journal that another process has open, a file that is no journal.
  /// Lines after a broken line are also set aside, unless it is the last one, from a killed session. In the
  /// cache, the file must belong only to this user and be no link. A path from the user may contain links and
  /// have any owner, but the file must not be writable by everyone.
  static support::Result<Journal> open(const std::string &path, const nlohmann::json &session, bool isFresh,
                                       config_cache::Owner owner = config_cache::Owner::User);

  const std::string &path() const { return path_; }
  bool isResumed() const { return isResumed_; }
  /// The copy of a journal that had a broken line; empty: there was none.
  const std::string &setAside() const { return setAside_; }

  /// Appends one event by a single write, so that a killed process leaves whole lines. After the first
  /// failure it writes nothing more; warning() has the reason.
  void write(const nlohmann::json &event);
  /// Flushes it to disk.
  void sync();
  const std::string &warning() const { return warning_; }

  // From the file when it was opened, or written since:
  const std::vector<double> *measured(const std::string &treeClass, const std::string &id, int tree,
                                      int round) const;
  bool isChecked(const std::string &treeClass, const std::string &id) const {
    return checked_.contains({treeClass, id});
  }
  /// Why a candidate must not be tried. A plan that cannot be made concerns one class; other failures exclude
  /// the candidate from all.
  const std::string *rejected(const std::string &treeClass, const std::string &id) const;
  /// The candidates that were raced from this round on.
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
  std::map<std::pair<std::string, std::string>, std::string> rejected_; ///< empty class: in all classes
  std::map<std::pair<std::string, int>, std::vector<std::string>> batches_;
  std::map<std::pair<std::string, std::string>, nlohmann::json> candidates_;
  std::map<std::string, nlohmann::json> done_;
};

/// Appends an event after a finished session.
support::Result<void> appendToJournal(const std::string &path, const nlohmann::json &event);

/// The events of a journal's text, up to the first broken line. `bytes`: the length of that part.
std::vector<nlohmann::json> parseJournal(std::string_view text, std::size_t *bytes = nullptr);
/// For reports: an error if the file cannot be read or has no session.
support::Result<std::vector<nlohmann::json>> readJournal(const std::string &path);

} // namespace deft::session
