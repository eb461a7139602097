#include "tuner/session/Journal.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/Hash.h"
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

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::string_view kBegin = "{\"sum\":\"";

std::string sumOf(const std::string &text) { return support::sha256Hex(text).substr(0, 8); }

std::string lineOf(const json &event) {
  // A file's name need not be UTF-8.
  const std::string text = event.dump(-1, ' ', false, json::error_handler_t::replace);
  return std::string(kBegin) + sumOf(text) + "\",\"event\":" + text + "}\n";
}

constexpr char kAnother[] = "name another with --journal";

Error cannot(const std::string &what, const std::string &path, int number) {
  return {ErrorCode::Environment, "cannot " + what + " journal `" + path + "`: " + std::strerror(number),
          kAnother};
}

/// Whole lines of types that no session writes.
Error strange(const std::string &path) {
  return {ErrorCode::Environment, "journal `" + path + "` has events that deftc did not write", kAnother};
}

/// JOURNAL -> JOURNAL-20261121T083000, with a number where that is taken.
std::string nameAside(const std::string &path) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::strftime(date, sizeof date, "%Y%m%dT%H%M%S", &utc);
  const std::filesystem::path whole(path);
  const std::string stem = (whole.parent_path() / whole.stem()).string() + "-" + date;
  std::string name = stem + whole.extension().string();
  for (int i = 2; std::filesystem::exists(name); ++i)
    name = stem + "-" + std::to_string(i) + whole.extension().string();
  return name;
}

bool isStillAt(int descriptor, const std::string &path) {
  struct stat own{}, there{};
  return ::fstat(descriptor, &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

Result<int> openLocked(const std::string &path) {
  int number = 0;
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0)
      return cannot("open", path, errno);
    const bool isLocked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    number = errno;
    if (isLocked && isStillAt(descriptor, path))
      return descriptor;
    ::close(descriptor);
    if (!isLocked) // else another session has put it aside meanwhile
      break;
  }
  if (number == EWOULDBLOCK)
    return Error{ErrorCode::Environment, "journal `" + path + "` is in use by another session",
                 std::string("wait for it, or ") + kAnother};
  return cannot("lock", path, number);
}

/// By its last event, behind which only sparse layers are tuned.
bool isOfCompleteSession(const std::vector<json> &events) {
  const auto last = std::find_if(events.rbegin(), events.rend(),
                                 [](const json &event) { return event["event"] != "sparse"; });
  return last != events.rend() && (*last)["event"] == "end" && last->value("reason", "") == "complete";
}

/// False where not all of it was; errno says why, 0 that there was no room.
bool writeWhole(int descriptor, const std::string &line) {
  ssize_t written;
  do {
    errno = 0;
    written = ::write(descriptor, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(line.size());
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

Result<Journal> Journal::open(const std::string &path, const json &session, bool isFresh) try {
  std::error_code failure;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    if (std::filesystem::create_directories(folder, failure); failure)
      return cannot("make the folder of", path, failure.value());
  if (struct stat info{}; ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error{ErrorCode::Environment, "`" + path + "` is no file for a journal", kAnother};
  Journal journal;
  journal.path_ = path;
  auto descriptor = openLocked(path);
  if (!descriptor)
    return descriptor.error();
  journal.descriptor_ = *descriptor;

  const auto text = support::readFile(path);
  if (!text)
    return text.error();
  std::size_t bytes = 0;
  const std::vector<json> events = parseJournal(*text, &bytes);
  // A first line that was never finished is nobody's session.
  const std::string_view begin = kBegin.substr(0, text->size());
  const bool isEmpty = text->find('\n') == std::string::npos && text->starts_with(begin);
  if (!isEmpty && (events.empty() || events.front()["event"] != "session"))
    return Error{ErrorCode::Environment, "`" + path + "` is no journal of a tuning session", kAnother};
  const bool isComplete = isOfCompleteSession(events);
  if (!isEmpty && (isComplete || isFresh)) {
    const std::string aside = nameAside(path);
    if (::rename(path.c_str(), aside.c_str()) != 0)
      return cannot("rename", path, errno);
    auto anew = openLocked(path);
    if (!anew)
      return anew.error();
    ::close(std::exchange(journal.descriptor_, *anew));
  } else if (!isEmpty) {
    const json &first = events.front();
    if (first.value("version", 0) != kJournalVersion ||
        first.value("identity", json()) != session.value("identity", json()))
      return Error{ErrorCode::Environment, "journal `" + path + "` is that of another session",
                   "give the same spec, trees, device and options, or --fresh to begin anew"};
    if (auto done = journal.cut(*text, bytes); !done)
      return done.error();
    for (const json &event : events)
      journal.note(event);
    journal.isResumed_ = true;
    return journal;
  } else if (::ftruncate(journal.descriptor_, 0) != 0) {
    return cannot("empty", path, errno);
  }
  journal.write(session);
  if (!journal.warning_.empty())
    return Error{ErrorCode::Environment, journal.warning_, ""};
  return journal;
} catch (const json::exception &) {
  return strange(path);
}

/// To the whole lines that can be used. What is more than a torn end is copied before.
Result<void> Journal::cut(const std::string &text, std::size_t bytes) {
  if (text.find('\n', bytes) != std::string::npos) {
    setAside_ = nameAside(path_);
    if (auto kept = support::writeFileAtomically(setAside_, text); !kept)
      return kept;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    return cannot("cut the torn end of", path_, errno);
  return {};
}

Journal::Journal(Journal &&other) noexcept
    : path_(std::move(other.path_)), warning_(std::move(other.warning_)),
      setAside_(std::move(other.setAside_)), descriptor_(std::exchange(other.descriptor_, -1)),
      isResumed_(other.isResumed_), measured_(std::move(other.measured_)),
      checked_(std::move(other.checked_)), rejected_(std::move(other.rejected_)),
      batches_(std::move(other.batches_)), candidates_(std::move(other.candidates_)),
      done_(std::move(other.done_)) {}

Journal::~Journal() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void Journal::write(const json &event) {
  note(event);
  if (!warning_.empty())
    return;
  if (!writeWhole(descriptor_, lineOf(event)))
    warning_ = cannot("write", path_, errno != 0 ? errno : ENOSPC).message;
}

Result<void> appendToJournal(const std::string &path, const json &event) {
  if (auto read = readJournal(path); !read)
    return read.error();
  const auto descriptor = openLocked(path);
  if (!descriptor)
    return descriptor.error();
  const bool isWritten = writeWhole(*descriptor, lineOf(event));
  const int number = errno;
  (void)::fsync(*descriptor);
  ::close(*descriptor);
  return isWritten ? Result<void>() : cannot("write", path, number != 0 ? number : ENOSPC);
}

void Journal::sync() { (void)::fsync(descriptor_); }

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
