#pragma once

#include "tuner/session/ClassTask.h"
#include "tuner/session/EntryFile.h"
#include "tuner/session/TimeShare.h"

#include <optional>
#include <vector>

namespace deft::session {

/// The outcome of a session, class by class.
struct ClassResults {
  std::vector<ClassReport> classes; ///< all of the session, in order
  Ended ended = Ended::Complete;
  int made = 0, reused = 0; ///< measurements
  std::vector<std::string> warnings;
};

/// The choices of a session's classes without an entry, and prior knowledge about them.
struct KnownConfigs {
  const std::vector<config::Config> &untuned; ///< the tree decides among them
  const config::DevicePrices &prices;         ///< for its decision
  const target::Target *target;               ///< null: a processor
  const RelatedConfigs &related;
};

/// Tunes class after class, those without a result first, and writes each one's entry into the
/// file. A result of an earlier run stays if this run has less. Fails if a recording could not be
/// written.
support::Result<ClassResults> tuneClasses(const SessionContext &context,
                                          const std::vector<TreesOfClass> &classes, const KnownConfigs &known,
                                          EntryFile &file, std::optional<ClassClock::Time> sessionEnd);

/// The state of each class after earlier runs.
std::vector<Standing> standingsOf(const Journal &journal, const std::vector<TreesOfClass> &classes);

/// The first configs of a class: related ones, the trees' choices without an entry, and, on a GPU that is
/// tuned from prior knowledge, other orders of these.
Related relatedTo(const TreesOfClass &trees, const std::vector<ClassReport> &tuned, const KnownConfigs &known,
                  bool isFromRelated);

} // namespace deft::session
