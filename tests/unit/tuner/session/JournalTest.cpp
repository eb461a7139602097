#include "tuner/session/Journal.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/Hash.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>

namespace deft::session {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const json kSession = {{"event", "session"}, {"version", kJournalVersion}, {"identity", "abc"}};

json measured(int round) {
  return {{"event", "measured"}, {"class", "c"},   {"id", "x"},
          {"tree", 1},           {"round", round}, {"us", {1.5, 2.5}}};
}

class JournalTest : public testing::Test {
protected:
  std::string path() const { return folder.path("deep/journal.jsonl"); }
  support::Result<Journal> open(const json &session = kSession, bool isFresh = false) const {
    return Journal::open(path(), session, isFresh);
  }
  std::string text() const { return *support::readFile(path()); }
  void put(const std::string &bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  int countAside() const {
    int count = 0;
    for (const auto &entry : fs::directory_iterator(fs::path(path()).parent_path()))
      count += entry.path().filename().string().starts_with("journal-");
    return count;
  }

  module_cache::TestFolder folder;
};

TEST_F(JournalTest, KnowsWhatItWasTold) {
  {
    auto journal = open();
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    EXPECT_FALSE(journal->isResumed());
    journal->write(measured(3));
    journal->write({{"event", "checked"}, {"class", "c"}, {"id", "x"}});
    journal->write(
        {{"event", "rejected"}, {"class", "c"}, {"id", "y"}, {"stage", "time"}, {"reason", "hangs"}});
    journal->write(
        {{"event", "rejected"}, {"class", "c"}, {"id", "z"}, {"stage", "prepare"}, {"reason", "too large"}});
    journal->write({{"event", "done"}, {"class", "c"}, {"gain", 1.5}});
    EXPECT_NE(journal->measured("c", "x", 1, 3), nullptr);
  }
  const auto again = open();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->isResumed());
  ASSERT_NE(again->measured("c", "x", 1, 3), nullptr);
  EXPECT_EQ(*again->measured("c", "x", 1, 3), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(again->measured("c", "x", 0, 3), nullptr);
  EXPECT_TRUE(again->isChecked("c", "x"));
  EXPECT_FALSE(again->isChecked("d", "x"));
  EXPECT_EQ(*again->rejected("d", "y"), "hangs"); // wherever
  EXPECT_EQ(*again->rejected("c", "z"), "too large");
  EXPECT_EQ(again->rejected("d", "z"), nullptr); // of this class alone
  EXPECT_EQ(again->done("c")->at("gain"), 1.5);
  EXPECT_EQ(again->done("d"), nullptr);
}

TEST_F(JournalTest, EveryTruncationKeepsTheWholeLines) {
  {
    auto journal = open();
    for (int round = 0; round < 4; ++round)
      journal->write(measured(round));
  }
  const std::string whole = text();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    put(whole.substr(0, length));
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length), '\n');
    {
      auto journal = open();
      ASSERT_TRUE(journal.ok()) << length << ": " << journal.error().message;
      EXPECT_EQ(journal->isResumed(), lines > 0) << length;
      for (int round = 0; round < 4; ++round)
        EXPECT_EQ(journal->measured("c", "x", 1, round) != nullptr, round + 1 < lines) << length;
      journal->write(measured(9)); // goes on behind the last whole line
    }
    const auto events = readJournal(path());
    ASSERT_TRUE(events.ok()) << length;
    EXPECT_EQ(events->size(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(lines, 1)) + 1) << length;
    EXPECT_EQ(events->back()["round"], 9);
  }
}

TEST_F(JournalTest, AFlippedByteEndsItThere) {
  {
    auto journal = open();
    for (int round = 0; round < 3; ++round)
      journal->write(measured(round));
  }
  const std::string whole = text();
  const std::size_t third = whole.find('\n', whole.find('\n') + 1) + 1;
  for (std::size_t at = third; at + 1 < whole.find('\n', third); ++at) {
    std::string broken = whole;
    broken[at] ^= 1;
    if (broken[at] == '\n')
      continue;
    put(broken);
    const auto journal = open();
    ASSERT_TRUE(journal.ok());
    EXPECT_NE(journal->measured("c", "x", 1, 0), nullptr) << at;
    EXPECT_EQ(journal->measured("c", "x", 1, 1), nullptr) << at << " " << broken[at];
    EXPECT_EQ(journal->measured("c", "x", 1, 2), nullptr) << at;
  }
}

TEST_F(JournalTest, WhatFollowsABrokenLineIsKeptAsideAndATornEndIsNot) {
  {
    auto journal = open();
    for (int round = 0; round < 3; ++round)
      journal->write(measured(round));
  }
  put(text().substr(0, text().size() - 5));
  {
    const auto torn = open();
    ASSERT_TRUE(torn.ok());
    EXPECT_EQ(torn->setAside(), "");
    EXPECT_EQ(countAside(), 0);
  }
  std::string broken = text();
  broken.insert(broken.find('\n') + 1, "\n"); // an empty line
  put(broken);
  const auto journal = open();
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->measured("c", "x", 1, 0), nullptr);
  EXPECT_EQ(countAside(), 1);
  EXPECT_EQ(*support::readFile(journal->setAside()), broken);
}

TEST_F(JournalTest, WholeEventsThatDeftNeverWroteAreAnError) {
  {
    auto journal = open();
    journal->write({{"event", "resumed"}, {"at", "now"}});
  }
  const std::string before = text();
  for (const json &event :
       {json{{"event", "measured"}, {"class", "c"}, {"id", "x"}},
        json{{"event", "measured"}, {"class", 7}, {"us", {1}}},
        json{{"event", "batch"}, {"class", "c"}, {"ids", 3}}, json{{"event", "end"}, {"reason", 3}}}) {
    const std::string own = event.dump();
    put(before + "{\"sum\":\"" + support::sha256Hex(own).substr(0, 8) + "\",\"event\":" + own + "}\n");
    const auto journal = open();
    ASSERT_FALSE(journal.ok()) << own;
    EXPECT_NE(journal.error().message.find("has events that deftc did not write"), std::string::npos);
  }
}

TEST_F(JournalTest, AVersionThatIsNoNumberIsNoBugOfDeftc) {
  {
    json other = kSession;
    other["version"] = "1";
    ASSERT_TRUE(open(other).ok());
  }
  EXPECT_NE(open().error().message.find("has events that deftc did not write"), std::string::npos);
  EXPECT_NE(readJournal(path()).error().message.find("has events that deftc did not write"),
            std::string::npos);
}

TEST_F(JournalTest, ANameThatIsNoTextIsKept) {
  {
    auto journal = open();
    journal->write({{"event", "class"}, {"class", "c"}, {"trees", {{{"name", "t\xff.json"}}}}});
    journal->write(measured(0));
    EXPECT_EQ(journal->warning(), "");
  }
  EXPECT_NE(open()->measured("c", "x", 1, 0), nullptr);
}

TEST_F(JournalTest, APipeIsNoPlaceForOne) {
  fs::create_directories(fs::path(path()).parent_path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto journal = open();
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().message, "`" + path() + "` is no file for a journal");
}

class CachedJournalTest : public JournalTest {
protected:
  CachedJournalTest() {
    EXPECT_TRUE(openCached().ok());
    fs::rename(path(), theirs);
  }
  support::Result<Journal> openCached() const {
    return Journal::open(path(), kSession, /*isFresh=*/true, config_cache::Owner::Deftc);
  }
  /// Nothing has become of what a link leads to, nor of the link.
  void expectUntouched(const std::string &text) const {
    EXPECT_EQ(*support::readFile(theirs), text);
    EXPECT_EQ(module_cache::namesIn(folder.path()), (std::vector<std::string>{"deep", "theirs.jsonl"}));
  }

  const std::string theirs = folder.path("theirs.jsonl");
};

TEST_F(CachedJournalTest, ALinkInThePlaceOfOneIsNotFollowed) {
  fs::create_symlink(theirs, path());
  const std::string before = *support::readFile(theirs);
  const auto journal = openCached();
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().message, "journal `" + path() + "` is not trusted: it is a link");
  expectUntouched(before);
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_TRUE(open(kSession, /*isFresh=*/true).ok()) << "one that somebody names is";
}

TEST_F(CachedJournalTest, ALinkThatLeadsNowhereMakesNoFileThere) {
  fs::create_symlink(folder.path("new"), path());
  EXPECT_FALSE(openCached().ok());
  EXPECT_FALSE(fs::exists(folder.path("new")));
}

TEST_F(CachedJournalTest, ALinkInThePlaceOfTheFolderIsNotFollowed) {
  fs::rename(theirs, path());
  const std::string whole = fs::path(path()).parent_path().string();
  fs::rename(whole, folder.path("elsewhere"));
  fs::create_symlink(folder.path("elsewhere"), whole);
  const auto journal = openCached();
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().message,
            "cannot keep journals in `" + whole + "`: it is a link, which is not followed here");
  EXPECT_EQ(countAside(), 0);
}

TEST_F(CachedJournalTest, OneThatOthersMayWriteIsNotTrusted) {
  fs::rename(theirs, path());
  fs::permissions(path(), fs::perms(0660));
  EXPECT_EQ(openCached().error().message,
            "journal `" + path() + "` is not trusted: other users may write it");
  EXPECT_TRUE(open().ok()) << "one that somebody names may be a group's";
  fs::permissions(path(), fs::perms(0666));
  EXPECT_FALSE(openCached().ok());
  EXPECT_EQ(open().error().message, "journal `" + path() + "` is not trusted: anyone may write it");
  EXPECT_EQ(countAside(), 0);
}

TEST_F(JournalTest, ACompleteOneIsPutAside) {
  {
    auto journal = open();
    journal->write(measured(0));
    journal->write({{"event", "end"}, {"reason", "complete"}});
  }
  const std::string before = text();
  const auto journal = open();
  ASSERT_TRUE(journal.ok());
  EXPECT_FALSE(journal->isResumed());
  EXPECT_EQ(journal->measured("c", "x", 1, 0), nullptr);
  EXPECT_EQ(countAside(), 1);
  EXPECT_NE(text(), before);
}

TEST_F(JournalTest, AStoppedOneGoesOnUnlessAFreshOneIsAskedFor) {
  for (const char *reason : {"budget", "interrupted", "not saved"}) {
    auto journal = open();
    EXPECT_EQ(journal->isResumed(), std::string(reason) != "budget");
    journal->write({{"event", "end"}, {"reason", reason}});
  }
  const auto fresh = open(kSession, /*isFresh=*/true);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(fresh->isResumed());
  EXPECT_EQ(countAside(), 1);
}

TEST_F(JournalTest, AnotherSessionsAndAnotherVersionsAreLeftAlone) {
  {
    ASSERT_TRUE(open().ok());
  }
  const std::string before = text();
  json other = kSession;
  other["identity"] = "def";
  const auto journal = open(other);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().message, "journal `" + path() + "` is that of another session");
  EXPECT_EQ(text(), before);
}

TEST_F(JournalTest, AFileThatIsNoJournalIsLeftAlone) {
  fs::create_directories(fs::path(path()).parent_path());
  for (const char *content : {"hello\n", "hello", "{\"a\": 1}\n", "{\"a\": 1}", "{\"sum\" : 3}"}) {
    put(content);
    const auto journal = open();
    ASSERT_FALSE(journal.ok()) << content;
    EXPECT_EQ(text(), content);
  }
}

TEST_F(JournalTest, TwoSessionsCannotHaveIt) {
  const auto first = open();
  ASSERT_TRUE(first.ok());
  const auto second = open();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "journal `" + path() + "` is in use by another session");
}

TEST_F(JournalTest, AFullDiskIsAWarningAndWhatWasWrittenStays) {
  const int code = module_cache::inChild([&] {
    auto journal = open();
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{fs::file_size(path()) + 250, RLIM_INFINITY};
    if (!journal || ::setrlimit(RLIMIT_FSIZE, &limit) != 0)
      return 2;
    for (int round = 0; round < 5; ++round)
      journal->write(measured(round));
    // The session goes on: what it was told it knows.
    return journal->warning().empty() || !journal->measured("c", "x", 1, 4) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  const auto again = open(); // behind the last whole line
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_NE(again->measured("c", "x", 1, 0), nullptr);
  EXPECT_EQ(again->measured("c", "x", 1, 4), nullptr);
}

TEST_F(JournalTest, ReadingSaysWhatIsWrong) {
  EXPECT_FALSE(readJournal(path()).ok());
  fs::create_directories(fs::path(path()).parent_path());
  put("no\n");
  EXPECT_EQ(readJournal(path()).error().message, "`" + path() + "` is no journal of a tuning session");
  fs::remove(path());
  json other = kSession;
  other["version"] = 7;
  {
    ASSERT_TRUE(open(other).ok());
  }
  EXPECT_EQ(readJournal(path()).error().message,
            "journal `" + path() + "` has version 7, this deftc reads version 1");
}

TEST_F(JournalTest, WhatIsTunedBehindASessionDoesNotBeginItAgain) {
  const json sparse = {{"event", "sparse"}, {"lists", json::array()}};
  EXPECT_FALSE(appendToJournal(path(), sparse)) << "there is none";
  EXPECT_FALSE(fs::exists(path()));
  for (const char *reason : {"budget", "complete"}) {
    {
      auto journal = open();
      ASSERT_TRUE(journal.ok()) << journal.error().message;
      journal->write({{"event", "end"}, {"reason", reason}});
      EXPECT_FALSE(appendToJournal(path(), sparse)) << "the session has it";
    }
    const auto appended = appendToJournal(path(), sparse);
    ASSERT_TRUE(appended) << appended.error().message;
    EXPECT_EQ(readJournal(path())->back(), sparse);
  }
  EXPECT_EQ(countAside(), 0) << "one that its budget ended goes on";
  EXPECT_FALSE(open()->isResumed());
  EXPECT_EQ(countAside(), 1) << "one that is complete does not";
  const std::string letter = folder.path("letter");
  std::ofstream(letter) << "dear";
  EXPECT_FALSE(appendToJournal(letter, sparse));
}

} // namespace
} // namespace deft::session
