#include "runtime/module_cache/CubinCache.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::module_cache {
namespace {

namespace fs = std::filesystem;

const std::string kKey(64, 'a');
const std::string kSource = "// source\n";

CachedKernel sample(const std::string &cubin = std::string("\x7f"
                                                           "ELF\0cubin",
                                                           10)) {
  return {cubin,
          {.entry = "kernel",
           .registers = 168,
           .stackBytes = 8,
           .spillStoreBytes = 4,
           .spillLoadBytes = 2,
           .staticSharedBytes = 1}};
}

class CubinCacheTest : public testing::Test {
protected:
  std::string entry(const CubinCache &cache) const { return cache.folder() + "/" + kKey; }

  TestFolder folder_;
};

TEST_F(CubinCacheTest, WhatIsStoredIsFoundByAnotherProcess) {
  const auto writer = CubinCache::open(folder_.path("cache"));
  EXPECT_FALSE(writer->find(kKey));
  writer->store(kKey, kSource, sample());
  const auto reader = CubinCache::open(folder_.path("cache"));
  const auto found = reader->find(kKey);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, sample().cubin);
  EXPECT_EQ(found->resources.entry, "kernel");
  EXPECT_EQ(found->resources.registers, 168);
  EXPECT_EQ(found->resources.stackBytes, 8);
  EXPECT_EQ(found->resources.spillStoreBytes, 4);
  EXPECT_EQ(found->resources.spillLoadBytes, 2);
  EXPECT_EQ(found->resources.staticSharedBytes, 1);
  EXPECT_EQ(readText(entry(*writer) + "/kernel.cu"), kSource);
  EXPECT_EQ(writer->takeWarning(), std::nullopt);
}

TEST_F(CubinCacheTest, FoldersAndFilesAreTheUsersAlone) {
  const auto cache = CubinCache::open(folder_.path("new/parents"));
  cache->store(kKey, kSource, sample());
  const auto modeOf = [](const std::string &path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  };
  EXPECT_EQ(modeOf(folder_.path("new")), 0700u);
  EXPECT_EQ(modeOf(cache->folder()), 0700u);
  EXPECT_EQ(modeOf(entry(*cache)), 0700u);
  EXPECT_EQ(modeOf(entry(*cache) + "/kernel.cubin"), 0600u);
}

TEST_F(CubinCacheTest, TheChecksumsAreThoseOfSha256sum) {
  const auto cache = CubinCache::open(folder_.path());
  cache->store(kKey, kSource, sample());
  EXPECT_EQ(std::system(("cd " + entry(*cache) + " && sha256sum --quiet --strict -c sha256sums").c_str()), 0);
}

TEST_F(CubinCacheTest, EveryTruncationOfEveryFileIsAMissAndIsRepaired) {
  const auto cache = CubinCache::open(folder_.path());
  cache->store(kKey, kSource, sample());
  for (const std::string &name : namesIn(entry(*cache))) {
    const std::string whole = readText(entry(*cache) + "/" + name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      writeText(entry(*cache) + "/" + name, whole.substr(0, length));
      ASSERT_FALSE(cache->find(kKey)) << name << " cut to " << length;
    }
    cache->store(kKey, kSource, sample());
    ASSERT_TRUE(cache->find(kKey)) << name;
    fs::remove(entry(*cache) + "/" + name);
    ASSERT_FALSE(cache->find(kKey)) << name << " removed";
    cache->store(kKey, kSource, sample());
    ASSERT_TRUE(cache->find(kKey)) << name;
  }
  EXPECT_EQ(namesIn(cache->folder()), std::vector<std::string>{kKey})
      << "bad entries and temporaries are gone";
  EXPECT_EQ(cache->takeWarning(), std::nullopt);
}

TEST_F(CubinCacheTest, EveryFlippedByteAndAnyAddedOneIsAMiss) {
  const auto cache = CubinCache::open(folder_.path());
  cache->store(kKey, kSource, sample());
  for (const std::string &name : namesIn(entry(*cache))) {
    const std::string path = entry(*cache) + "/" + name, whole = readText(path);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x20);
      writeText(path, flipped);
      ASSERT_FALSE(cache->find(kKey)) << name << " flipped at " << at;
    }
    writeText(path, whole + "x");
    ASSERT_FALSE(cache->find(kKey)) << name << " with a byte more";
    writeText(path, whole);
    ASSERT_TRUE(cache->find(kKey)) << name;
  }
}

TEST_F(CubinCacheTest, AnEntryUnderAnotherKeyIsAMiss) {
  const auto cache = CubinCache::open(folder_.path());
  cache->store(kKey, kSource, sample());
  const std::string other(64, 'b');
  fs::rename(entry(*cache), cache->folder() + "/" + other);
  EXPECT_FALSE(cache->find(other));
}

TEST_F(CubinCacheTest, LinksForeignRightsAndOtherThingsInTheWayAreMissesAndAreReplaced) {
  const auto cache = CubinCache::open(folder_.path());
  const auto repairs = [&](const char *what) {
    EXPECT_FALSE(cache->find(kKey)) << what;
    cache->store(kKey, kSource, sample());
    EXPECT_TRUE(cache->find(kKey)) << what;
  };
  cache->store(kKey, kSource, sample());
  ::chmod(entry(*cache).c_str(), 0777);
  repairs("a folder that others may write");
  ::chmod((entry(*cache) + "/kernel.cubin").c_str(), 0666);
  repairs("a file that others may write");
  fs::rename(entry(*cache), folder_.path("elsewhere"));
  fs::create_directory_symlink(folder_.path("elsewhere"), entry(*cache));
  repairs("a link to a folder");
  fs::rename(entry(*cache) + "/kernel.cubin", folder_.path("cubin"));
  fs::create_symlink(folder_.path("cubin"), entry(*cache) + "/kernel.cubin");
  repairs("a link to a file");
  fs::remove(entry(*cache) + "/report.json");
  ASSERT_EQ(::mkfifo((entry(*cache) + "/report.json").c_str(), 0600), 0);
  repairs("a pipe");
  fs::remove_all(entry(*cache));
  writeText(entry(*cache), "a file");
  repairs("a file in the place of the entry");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((entry(*cache) + "/kernel.cubin").c_str(), 12345, 12345), 0);
    repairs("a file of another user");
    ASSERT_EQ(::chown(entry(*cache).c_str(), 12345, 12345), 0);
    repairs("a folder of another user");
  }
}

TEST_F(CubinCacheTest, AFolderOfAnotherUserOrOpenToOthersIsNotUsed) {
  const auto first = CubinCache::open(folder_.path());
  const std::string place = first->folder();
  ::chmod(place.c_str(), 0777);
  const auto open = CubinCache::open(folder_.path());
  EXPECT_EQ(open->takeWarning(),
            "no kernel cache in `" + place +
                "`: other users may write it; kernels are compiled again by each process");
  EXPECT_EQ(open->takeWarning(), std::nullopt);
  if (::geteuid() != 0)
    GTEST_SKIP() << "the other half needs root";
  ::chmod(place.c_str(), 0700);
  ASSERT_EQ(::chown(place.c_str(), 12345, 12345), 0);
  const auto foreign = CubinCache::open(folder_.path());
  EXPECT_EQ(foreign->takeWarning(),
            "no kernel cache in `" + place +
                "`: it belongs to user 12345, not to 0; kernels are compiled again by each process");
  foreign->store(kKey, kSource, sample());
  EXPECT_FALSE(foreign->find(kKey));
}

TEST_F(CubinCacheTest, AFileInTheWayOfTheFolderMeansNoCacheAndOneWarning) {
  writeText(folder_.path("file"), "");
  const auto cache = CubinCache::open(folder_.path("file/cache"));
  EXPECT_FALSE(cache->isWritable());
  cache->store(kKey, kSource, sample());
  EXPECT_FALSE(cache->find(kKey));
  EXPECT_EQ(cache->takeWarning(), "no kernel cache in `" + folder_.path("file/cache/cubin-v1") +
                                      "`: Not a directory; kernels are compiled again by each process");
  EXPECT_EQ(cache->takeWarning(), std::nullopt);
}

TEST_F(CubinCacheTest, AReadOnlyDiskIsReadAndNotWritten) {
  const std::string place = folder_.path();
  const int status = inChild([&] {
    if (!mountSmallDisk(place, 1024))
      return kNotAllowed;
    CubinCache::open(place)->store(kKey, kSource, sample());
    if (!makeReadOnly(place))
      return kNotAllowed;
    const auto cache = CubinCache::open(place);
    if (cache->isWritable() || !cache->find(kKey))
      return 1;
    cache->store(std::string(64, 'b'), kSource, sample());
    const auto warning = cache->takeWarning();
    if (!warning || warning->find("Read-only file system") == std::string::npos)
      return 2;
    return cache->takeWarning() ? 3 : 0;
  });
  if (status == kNotAllowed)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

TEST_F(CubinCacheTest, AFullDiskMeansNoCacheAndOneWarning) {
  const std::string place = folder_.path();
  const int status = inChild([&] {
    if (!mountSmallDisk(place, 64))
      return kNotAllowed;
    const auto cache = CubinCache::open(place);
    cache->store(kKey, kSource, sample(std::string(1 << 20, 'c')));
    if (cache->find(kKey) || cache->isWritable())
      return 1;
    if (namesIn(cache->folder()).size() != 0)
      return 2; // the half-written entry is gone
    const auto warning = cache->takeWarning();
    if (!warning || warning->find("No space left on device") == std::string::npos)
      return 3;
    cache->store(kKey, kSource, sample());
    return cache->takeWarning() || cache->find(kKey) ? 4 : 0;
  });
  if (status == kNotAllowed)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

// A full disk without mounting, so that it is tested on every machine: a limit on the size of files.
TEST_F(CubinCacheTest, AFailedWriteLeavesNothingBehind) {
  const std::string place = folder_.path();
  EXPECT_EQ(inChild([&] {
              const auto cache = CubinCache::open(place);
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              cache->store(kKey, kSource, sample(std::string(1 << 16, 'c')));
              if (cache->find(kKey) || cache->isWritable() || !namesIn(cache->folder()).empty())
                return 1;
              const auto warning = cache->takeWarning();
              return warning && warning->find("File too large") != std::string::npos ? 0 : 2;
            }),
            0);
}

// Writers of good entries, one that corrupts them, and readers, all at once: a reader sees a whole
// entry or none.
TEST_F(CubinCacheTest, ManyProcessesAtOnceNeverSeeAPart) {
  const std::string place = folder_.path();
  const std::string cubin(1 << 15, 'c');
  CubinCache::open(place);
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto cache = CubinCache::open(place);
      int status = 0;
      for (int round = 0; round < 60 && status == 0; ++round) {
        if (child == 0) {
          writeText(cache->folder() + "/" + kKey + "/kernel.cubin", "bad");
        } else {
          if (const auto found = cache->find(kKey); found && found->cubin != cubin)
            status = 1;
          cache->store(kKey, kSource, sample(cubin));
        }
      }
      if (child != 0 && cache->takeWarning())
        status = 2;
      ::_exit(status);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const auto cache = CubinCache::open(place);
  cache->store(kKey, kSource, sample(cubin));
  ASSERT_TRUE(cache->find(kKey));
  EXPECT_EQ(namesIn(cache->folder()), std::vector<std::string>{kKey});
}

TEST_F(CubinCacheTest, LeftoversOfKilledProcessesAreSweptWhenOld) {
  const auto cache = CubinCache::open(folder_.path());
  const std::string old = cache->folder() + "/.new-old", young = cache->folder() + "/.new-young";
  fs::create_directory(old);
  fs::create_directory(young);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache->store(kKey, kSource, sample());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

} // namespace
} // namespace deft::module_cache
