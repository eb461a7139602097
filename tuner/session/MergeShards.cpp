#include "tuner/session/MergeShards.h"

#include "tuner/session/DoneEvent.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Shard.h"
#include "tuner/space/Space.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace deft::session {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error bad(const std::string &message, const std::string &hint = "") {
  return {ErrorCode::Diagnostics, message, hint};
}

struct ShardJournal {
  std::string path;
  std::vector<json> events;
  Shard shard;
  std::vector<std::string> classes; ///< of the whole session
  std::map<std::string, json> done; ///< the last `done` event of each class
  std::string end;                  ///< reason of the last `end` event; empty: killed, or still running
  int measured = 0;

  const json &head() const { return events.front(); }
  std::string text() const { return "shard " + shard.text() + " (`" + path + "`)"; }
};

/// The name of a part of a session's identity, for people.
std::string wordOf(const std::string &part) {
  static const std::map<std::string, std::string> words = {
      {"deftc", "release"},           {"is_recording", "--record"},        {"from_related", "--from-related"},
      {"kernel_hash", "device code"}, {"most_candidates", "--candidates"}, {"params", "parameters"},
      {"scattered", "page order"},    {"signature", "attention"},          {"space", "search space"},
      {"untuned", "untuned config"}};
  const auto found = words.find(part);
  return found == words.end() ? part : found->second;
}

/// The differences between two sessions, as far as their journals show them.
std::string differences(const json &a, const json &b) {
  std::string text;
  const json ours = a.value("parts", json::object()), theirs = b.value("parts", json::object());
  std::set<std::string> names;
  for (const json &parts : {ours, theirs})
    for (const auto &[name, hash] : parts.items())
      names.insert(name);
  for (const std::string &name : names)
    if (ours.value(name, "") != theirs.value(name, ""))
      text += (text.empty() ? "" : ", ") + wordOf(name);
  return text;
}

std::string deviceText(const json &head) {
  const auto device = config_cache::deviceKeyFromJson(head.value("device", json()));
  return device ? device->text() : "an unknown device";
}

/// Checks that a journal is a shard of the same session.
Result<void> checkSameSession(const ShardJournal &first, const ShardJournal &other) {
  const json &a = first.head(), &b = other.head();
  const std::string both = "`" + first.path + "` and `" + other.path + "`";
  if (a.value("device", json()) != b.value("device", json()))
    return bad(both + " are of two devices: " + deviceText(a) + ", and " + deviceText(b),
               "merge the shards of one device");
  if (a.value("deftc", "") != b.value("deftc", ""))
    return bad(both + " are of two releases: deftc " + a.value("deftc", "") + " and " + b.value("deftc", ""),
               "run all shards with one release");
  if (a.value("identity", "") != b.value("identity", "")) {
    const std::string what = differences(a, b);
    return bad(both + " are of two sessions" + (what.empty() ? "" : ", which differ in: " + what),
               "run all shards with the same spec, trees and options");
  }
  if (first.shard.count != other.shard.count)
    return bad(both + " are shards of " + std::to_string(first.shard.count) + " and of " +
                   std::to_string(other.shard.count),
               "run all shards with the same number");
  if (first.shard == other.shard)
    return bad(both + " are both shard " + first.shard.text(), "give each shard once");
  return {};
}

Result<ShardJournal> readShard(const std::string &path) try {
  auto events = readJournal(path);
  if (!events)
    return events.error();
  ShardJournal journal{path, std::move(*events), {}, {}, {}, {}, 0};
  const auto shard = shardOf(journal.head());
  if (!shard)
    return bad("journal `" + path + "`: " + shard.error().message);
  journal.shard = shard->value_or(Shard{});
  journal.classes = journal.head().at("classes").get<std::vector<std::string>>();
  if (const std::string release = journal.head().value("deftc", ""); release != DEFT_VERSION)
    return bad("journal `" + path + "` is of deftc " + release + ", this is " DEFT_VERSION,
               "merge it with the release that wrote it");
  const std::vector<std::string> own = ownClasses(journal.classes, journal.shard);
  for (const json &event : journal.events) {
    const std::string kind = event.at("event");
    if (kind == "end")
      journal.end = event.at("reason").get<std::string>();
    else if (kind == "resumed")
      journal.end.clear();
    if (!event.contains("class"))
      continue;
    const std::string name = event.at("class").get<std::string>();
    if (std::find(own.begin(), own.end(), name) == own.end())
      return bad("journal `" + path + "` of shard " + journal.shard.text() + " has results of class " + name +
                 ", which is not its own");
    journal.measured += kind == "measured";
    if (kind == "done")
      journal.done[name] = event;
  }
  return journal;
} catch (const json::exception &) {
  return bad("journal `" + path + "` has events that deftc did not write");
}

/// "1/4, 3/4".
std::string missingShards(const std::vector<ShardJournal> &journals, int count) {
  std::set<int> there;
  for (const ShardJournal &journal : journals)
    there.insert(journal.shard.index);
  constexpr int kMostNamed = 8;
  std::string text;
  int named = 0, missing = 0;
  for (int i = 0; i < count; ++i) {
    if (there.contains(i))
      continue;
    if (++missing <= kMostNamed) {
      text += (named > 0 ? ", " : "") + Shard{i, count}.text();
      ++named;
    }
  }
  return missing > named ? text + " and " + std::to_string(missing - named) + " more" : text;
}

/// Configs with a wrong result, and the shard that found it. Such configs are excluded from all classes.
std::map<std::string, const ShardJournal *> wrongConfigs(const std::vector<ShardJournal> &journals) {
  std::map<std::string, const ShardJournal *> wrong;
  for (const ShardJournal &journal : journals)
    for (const json &event : journal.events)
      if (event.at("event") == "rejected" && event.value("stage", "") == "check")
        wrong.emplace(event.value("id", ""), &journal);
  return wrong;
}

class Merging {
public:
  explicit Merging(bool isPartial) : isPartial_(isPartial) {}

  Result<void> add(const std::string &path) {
    auto journal = readShard(path);
    if (!journal)
      return journal.error();
    for (const ShardJournal &other : journals_)
      if (auto same = checkSameSession(other, *journal); !same)
        return same;
    journals_.push_back(std::move(*journal));
    return {};
  }

  Result<MergedShards> finish() {
    std::sort(journals_.begin(), journals_.end(),
              [](const ShardJournal &a, const ShardJournal &b) { return a.shard.index < b.shard.index; });
    const ShardJournal &first = journals_.front();
    const auto device = config_cache::deviceKeyFromJson(first.head().at("device"));
    const auto signature =
        config_cache::VariantSignature::parse(first.head().at("signature").get<std::string>());
    if (!device || !signature)
      return bad("journal `" + first.path + "` is of an unknown device or attention");
    merged_.device = *device;
    merged_.signature = *signature;
    merged_.shards = first.shard.count;
    if (auto whole = checkWhole(); !whole)
      return whole.error();
    for (std::size_t i = 0; i < first.classes.size(); ++i)
      if (auto taken = take(first.classes[i], i); !taken)
        return taken.error();
    return std::move(merged_);
  }

private:
  /// An error, or a warning if parts may be missing.
  Result<void> lack(const std::string &message, const std::string &hint) {
    if (!isPartial_)
      return Error{ErrorCode::Environment, message, hint + ", or --partial to merge what is there"};
    merged_.warnings.push_back(message);
    return {};
  }

  Result<void> checkWhole() {
    const ShardJournal &first = journals_.front();
    if (const std::string missing = missingShards(journals_, first.shard.count); !missing.empty())
      if (auto allowed = lack("there is no journal of shard " + missing, "give those of all shards");
          !allowed)
        return allowed;
    for (const ShardJournal &journal : journals_) {
      merged_.measured += journal.measured;
      if (journal.head().value("driver", "") != first.head().value("driver", ""))
        merged_.warnings.push_back(journal.text() + " ran with driver " + journal.head().value("driver", "") +
                                   ", " + first.text() + " with " + first.head().value("driver", ""));
      const std::string fault = journal.end.empty()            ? "has not ended"
                                : journal.end == "interrupted" ? "was interrupted"
                                : journal.end == "budget"      ? budgetFault(journal)
                                                               : "";
      if (!fault.empty())
        if (auto allowed = lack(journal.text() + " " + fault, "run its command again, which resumes it");
            !allowed)
          return allowed;
    }
    return {};
  }

  /// A class with too little time has a result; a class without time has none.
  static std::string budgetFault(const ShardJournal &journal) {
    const std::vector<std::string> own = ownClasses(journal.classes, journal.shard);
    const auto left = static_cast<long long>(own.size() - journal.done.size());
    return left > 0 ? "was stopped by its budget with " + std::to_string(left) + " of " +
                          std::to_string(own.size()) + " classes to come"
                    : "";
  }

  Result<void> take(const std::string &name, std::size_t place) {
    const auto known = config_cache::TreeClass::parse(name);
    if (!known)
      return bad("journal `" + journals_.front().path + "`: class `" + name + "` is not understood");
    ClassReport report;
    report.treeClass = *known;
    const auto owner = std::find_if(journals_.begin(), journals_.end(),
                                    [&](const ShardJournal &one) { return one.shard.owns(place); });
    if (owner != journals_.end()) {
      if (const auto done = owner->done.find(name); done != owner->done.end()) {
        auto found = reportOfDone(done->second, merged_.device.kind);
        if (!found || !(found->treeClass == *known) || !(found->entry.signature == merged_.signature))
          return bad("journal `" + owner->path + "`: the result of class " + name + " is not understood");
        if (auto wrong = wrongFor(found->entry, *owner); wrong.empty())
          report = std::move(*found);
        else
          merged_.warnings.push_back(name + ": " + wrong);
      } else {
        merged_.warnings.push_back(name + ": " + owner->text() + " has no result");
      }
    }
    merged_.classes.push_back(std::move(report));
    return {};
  }

  /// Why a result is left out; empty: it is kept.
  std::string wrongFor(const config_cache::Entry &entry, const ShardJournal &owner) {
    if (!hasWrong_)
      wrong_ = wrongConfigs(journals_);
    hasWrong_ = true;
    const auto found = wrong_.find(space::configId(entry.config));
    if (entry.keepsDefault || found == wrong_.end() || found->second == &owner)
      return "";
    return "its config " + found->first + " gave a wrong result in " + found->second->text() +
           ", so it is left out";
  }

  bool isPartial_, hasWrong_ = false;
  std::vector<ShardJournal> journals_;
  std::map<std::string, const ShardJournal *> wrong_;
  MergedShards merged_;
};

} // namespace

std::vector<config_cache::Entry> MergedShards::entries() const {
  std::vector<config_cache::Entry> entries;
  for (const ClassReport &one : classes)
    if (one.isDone)
      entries.push_back(one.entry);
  return entries;
}

Result<MergedShards> mergeShards(const std::vector<std::string> &paths, bool isPartial) try {
  if (paths.empty())
    return Error{ErrorCode::Usage, "there is no journal to merge", ""};
  Merging merging(isPartial);
  for (const std::string &path : paths)
    if (auto added = merging.add(path); !added)
      return added.error();
  return merging.finish();
} catch (const json::exception &) {
  return bad("a journal has events that deftc did not write");
}

bool saysJournal(const std::string &path) {
  if (std::error_code none; !std::filesystem::is_regular_file(path, none))
    return false; // a pipe may have no writer, and reading it would consume the data
  std::ifstream file(path, std::ios::binary);
  std::string begin(kJournalBegin.size(), '\0');
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kJournalBegin;
}

} // namespace deft::session
