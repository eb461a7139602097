#include "tuner/session/Journal.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/GuardedFile.h"
#include "compiler/support/Hash.h"
#include "compiler/support/OpenedFile.h"
#include "compiler/support/WriteAll.h"
#include "runtime/tree/StrictJson.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::session {

using config_cache::Owner;
using nlohmann::json;
using support::Descriptor;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

std::string sumOf(const std::string &text) { return support::sha256Hex(text).substr(0, 8); }

std::string lineOf(const json &event) {
  // The name of a file may be invalid UTF-8.
  const std::string text = event.dump(-1, ' ', false, json::error_handler_t::replace);
  return std::string(kJournalBegin) + sumOf(text) + "\",\"event\":" + text + "}\n";
}

constexpr char kAnother[] = "name another with --journal";

Error cannot(const std::string &what, const std::string &path, int number) {
  return {ErrorCode::Environment, "cannot " + what + " journal `" + path + "`: " + std::strerror(number),
          kAnother};
}

/// Complete lines with types that no session writes.
Error strange(const std::string &path) {
  return {ErrorCode::Environment, "journal `" + path + "` has events that deftc did not write", kAnother};
}

/// JOURNAL -> JOURNAL-20261121T083000, with a number if that exists.
std::string nameAside(const std::string &path) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::strftime(date, sizeof date, "%Y%m%dT%H%M%S", &utc);
  const std::filesystem::path whole(path);
  const std::string stem = (whole.parent_path() / whole.stem()).string() + "-" + date;
  std::string name = stem + whole.extension().string();
  std::error_code none; // a broken link also occupies the name
  for (int i = 2; std::filesystem::exists(std::filesystem::symlink_status(name, none)); ++i)
    name = stem + "-" + std::to_string(i) + whole.extension().string();
  return name;
}

bool isStillAt(const struct stat &own, const std::string &path) {
  struct stat there{};
  return ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

Error noJournal(const std::string &path) {
  return {ErrorCode::Environment, "`" + path + "` is no file for a journal", kAnother};
}

/// Someone else's journal could decide which config counts as the fastest.
Error notTrusted(const std::string &path, const std::string &fault) {
  return {ErrorCode::Environment, "journal `" + path + "` is not trusted: " + fault,
          std::string("remove it, make it writable only by you (`chmod go-w`), or ") + kAnother};
}

support::Trust trustInJournal(Owner owner) {
  return owner == Owner::Deftc ? support::Trust::Private : support::Trust::NotPublic;
}

/// Opens the journal with its lock. Links in the cache are not followed.
Result<Descriptor> openLocked(const std::string &path, Owner owner) {
  const int links = owner == Owner::Deftc ? O_NOFOLLOW : 0;
  int number = 0;
  for (;;) {
    Descriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | links, 0644));
    if (file.get() < 0 && errno == ELOOP && links != 0)
      return notTrusted(path, "it is a link");
    if (file.get() < 0)
      return errno == EISDIR || errno == ENXIO ? noJournal(path) : cannot("open", path, errno);
    struct stat own{};
    if (::fstat(file.get(), &own) != 0)
      return cannot("open", path, errno);
    if (!S_ISREG(own.st_mode))
      return noJournal(path);
    if (const std::string fault = support::faultOfTrust(own, trustInJournal(owner)); !fault.empty())
      return notTrusted(path, fault);
    const bool isLocked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    number = errno;
    if (isLocked && isStillAt(own, path))
      return file;
    if (!isLocked) // otherwise another session has set it aside meanwhile
      break;
  }
  if (number == EWOULDBLOCK)
    return Error{ErrorCode::Environment, "journal `" + path + "` is in use by another session",
                 std::string("wait for it, or ") + kAnother};
  return cannot("lock", path, number);
}

std::string shardText(const json &session) {
  const json shard = session.value("shard", json());
  if (!shard.is_object())
    return "a whole session";
  return "shard " + shard.value("index", json()).dump() + "/" + shard.value("count", json()).dump();
}

/// By its last event, apart from those about sparse layers.
bool isOfCompleteSession(const std::vector<json> &events) {
  const auto last = std::find_if(events.rbegin(), events.rend(),
                                 [](const json &event) { return event["event"] != "sparse"; });
  return last != events.rend() && (*last)["event"] == "end" && last->value("reason", "") == "complete";
}

Result<void> makeJournalFolder(const std::string &path, Owner owner) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code failure;
  if (owner == Owner::Deftc) {
    if (const std::string fault = support::makePrivateFolder(folder); !fault.empty())
      return Error{ErrorCode::Environment, "cannot keep journals in `" + folder + "`: " + fault,
                   std::string("make it writable only by you (`chmod go-w`), or ") + kAnother};
  } else if (!folder.empty() && (std::filesystem::create_directories(folder, failure), failure)) {
    return cannot("make the folder of", path, failure.value());
  }
  return {};
}

} // namespace

std::vector<json> parseJournal(std::string_view text, std::size_t *bytes) {
  std::vector<json> events;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string_view own = text.substr(begin, end - begin);
    const json line = tree::isNestedTooDeep(own) ? json() : json::parse(own, nullptr, false);
    if (!line.is_object() || !line.contains("event") || !line["event"].is_object() || !line.contains("sum") ||
        line["sum"] != sumOf(line["event"].dump()) || !line["event"].contains("event") ||
        !line["event"]["event"].is_string())
      break;
    events.push_back(line["event"]);
  }
  if (bytes)
    *bytes = begin;
  return events;
}

Result<std::vector<json>> readJournal(const std::string &path) try {
  const auto text = support::readFile(path);
  if (!text)
    return text.error();
  std::vector<json> events = parseJournal(*text);
  if (events.empty() || events.front()["event"] != "session")
    return Error{ErrorCode::Diagnostics, "`" + path + "` is no journal of a tuning session", ""};
  if (events.front().value("version", 0) != kJournalVersion)
    return Error{ErrorCode::Diagnostics,
                 "journal `" + path + "` has version " + events.front().value("version", json()).dump() +
                     ", this deftc reads version " + std::to_string(kJournalVersion),
                 ""};
  return events;
} catch (const json::exception &) {
  return strange(path);
}

Result<Journal> Journal::open(const std::string &path, const json &session, bool isFresh, Owner owner) try {
  if (auto made = makeJournalFolder(path, owner); !made)
    return made.error();
  auto file = openLocked(path, owner);
  if (!file)
    return file.error();
  Journal journal;
  journal.path_ = path;
  journal.file_ = std::move(*file);

  const auto text = support::readOpened(journal.file_.get(), path, support::kMostFileBytes);
  if (!text)
    return text.error();
  std::size_t bytes = 0;
  const std::vector<json> events = parseJournal(*text, &bytes);
  // An unfinished first line belongs to no session.
  const std::string_view begin = kJournalBegin.substr(0, text->size());
  const bool isEmpty = text->find('\n') == std::string::npos && text->starts_with(begin);
  if (!isEmpty && (events.empty() || events.front()["event"] != "session"))
    return Error{ErrorCode::Environment, "`" + path + "` is no journal of a tuning session", kAnother};
  const bool isComplete = isOfCompleteSession(events) && !session.contains("shard");
  if (!isEmpty && (isComplete || isFresh)) {
    const std::string aside = nameAside(path);
    if (::rename(path.c_str(), aside.c_str()) != 0)
      return cannot("rename", path, errno);
    auto anew = openLocked(path, owner);
    if (!anew)
      return anew.error();
    journal.file_ = std::move(*anew);
  } else if (!isEmpty) {
    const json &first = events.front();
    if (first.value("version", 0) != kJournalVersion ||
        first.value("identity", json()) != session.value("identity", json()))
      return Error{ErrorCode::Environment, "journal `" + path + "` is that of another session",
                   "give the same spec, trees, device and options, or --fresh to start again"};
    if (first.value("shard", json()) != session.value("shard", json()))
      return Error{ErrorCode::Environment,
                   "journal `" + path + "` is that of " + shardText(first) + ", not of " + shardText(session),
                   kAnother};
    if (auto done = journal.cut(*text, bytes); !done)
      return done.error();
    for (const json &event : events)
      journal.note(event);
    journal.isResumed_ = true;
    return journal;
  } else if (::ftruncate(journal.file_.get(), 0) != 0) {
    return cannot("empty", path, errno);
  }
  journal.write(session);
  if (!journal.warning_.empty())
    return Error{ErrorCode::Environment, journal.warning_, ""};
  return journal;
} catch (const json::exception &) {
  return strange(path);
}

/// Cuts to the usable lines. If more than a torn end is removed, it makes a copy first.
Result<void> Journal::cut(const std::string &text, std::size_t bytes) {
  if (text.find('\n', bytes) != std::string::npos) {
    setAside_ = nameAside(path_);
    if (auto kept = support::writeFileAtomically(setAside_, text); !kept)
      return kept;
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
    return cannot("cut the torn end of", path_, errno);
  return {};
}

void Journal::write(const json &event) {
  note(event);
  if (!warning_.empty())
    return;
  if (!support::writeAll(file_.get(), lineOf(event)))
    warning_ = cannot("write", path_, errno).message;
}

Result<void> appendToJournal(const std::string &path, const json &event) {
  if (auto read = readJournal(path); !read)
    return read.error();
  const auto file = openLocked(path, Owner::User); // the session that just ended has checked the place
  if (!file)
    return file.error();
  if (!support::writeAll(file->get(), lineOf(event)))
    return cannot("write", path, errno);
  (void)::fsync(file->get());
  return {};
}

void Journal::sync() { (void)::fsync(file_.get()); }

void Journal::note(const json &event) {
  const std::string kind = event["event"];
  const std::string treeClass = event.value("class", ""), id = event.value("id", "");
  if (kind == "measured")
    measured_[{treeClass, id, event.value("tree", 0), event.value("round", 0)}] =
        event.at("us").get<std::vector<double>>();
  else if (kind == "batch")
    batches_[{treeClass, event.value("round", 0)}] = event.at("ids").get<std::vector<std::string>>();
  else if (kind == "candidate")
    candidates_.insert_or_assign({treeClass, id}, event);
  else if (kind == "checked")
    checked_.insert({treeClass, id});
  else if (kind == "rejected")
    rejected_[{event.value("stage", "") == "prepare" ? treeClass : "", id}] = event.value("reason", "");
  else if (kind == "done" && (!event.contains("is_cut") || event["is_cut"].is_boolean()))
    done_[treeClass] = event;
}

const std::vector<double> *Journal::measured(const std::string &treeClass, const std::string &id, int tree,
                                             int round) const {
  const auto found = measured_.find({treeClass, id, tree, round});
  return found == measured_.end() ? nullptr : &found->second;
}

const std::string *Journal::rejected(const std::string &treeClass, const std::string &id) const {
  for (const std::string &scope : {std::string(), treeClass})
    if (const auto found = rejected_.find({scope, id}); found != rejected_.end())
      return &found->second;
  return nullptr;
}

const std::vector<std::string> *Journal::batch(const std::string &treeClass, int round) const {
  const auto found = batches_.find({treeClass, round});
  return found == batches_.end() ? nullptr : &found->second;
}

const json *Journal::candidate(const std::string &treeClass, const std::string &id) const {
  const auto found = candidates_.find({treeClass, id});
  return found == candidates_.end() ? nullptr : &found->second;
}

const json *Journal::done(const std::string &treeClass) const {
  const auto found = done_.find(treeClass);
  return found == done_.end() ? nullptr : &found->second;
}

} // namespace deft::session
