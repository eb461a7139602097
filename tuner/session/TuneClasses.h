#pragma once

#include "tuner/session/ClassTask.h"
#include "tuner/session/EntryFile.h"
#include "tuner/session/TimeShare.h"

#include <optional>
#include <vector>

namespace deft::session {

/// What a session came to, class by class.
struct ClassResults {
  std::vector<ClassReport> classes; ///< all of the session's, in their order
  Ended ended = Ended::Complete;
  int made = 0, reused = 0; ///< measurements
  std::vector<std::string> warnings;
};

/// What classes of a session get without an entry, and what is known of them.
struct KnownConfigs {
  const std::vector<config::Config> &untuned; ///< the tree decides among them
  const config::DevicePrices &prices;         ///< by which it does
  const target::Target *target;               ///< null: a processor
  const RelatedConfigs &related;
};

/// Tunes class after class, those without a result first, and puts each one's entry into the file. What an
/// earlier run of the session came to stays where this one has less to say. An error: a recording could not
/// be written.
support::Result<ClassResults> tuneClasses(const SessionContext &context,
                                          const std::vector<TreesOfClass> &classes, const KnownConfigs &known,
                                          EntryFile &file, std::optional<ClassClock::Time> sessionEnd);

/// What each class has come to in earlier runs.
std::vector<Standing> standingsOf(const Journal &journal, const std::vector<TreesOfClass> &classes);

/// What a class begins with: configs that are related to it, those that trees get without an entry, and
/// where a GPU is tuned by what is known, their other orders.
Related relatedTo(const TreesOfClass &trees, const std::vector<ClassReport> &tuned, const KnownConfigs &known,
                  bool isFromRelated);

} // namespace deft::session
