#include "runtime/module_cache/CubinCache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>

namespace deft::module_cache {
namespace {

const std::string kSource = "#include \"deft/merge.cuh\"\n// kernel\n";

TEST(CacheKeyTest, EveryPartChangesTheKey) {
  const std::vector<std::string> options{"--a", "--b"};
  const std::set<std::string> keys{
      cacheKey(kSource, "sm_80", options, {13, 0}),
      cacheKey(kSource + " ", "sm_80", options, {13, 0}),
      cacheKey(kSource, "sm_86", options, {13, 0}),
      cacheKey(kSource, "sm_80", {"--a"}, {13, 0}),
      cacheKey(kSource, "sm_80", {"--a--b"}, {13, 0}), // parts do not run into each other
      cacheKey(kSource, "sm_80", {"--b", "--a"}, {13, 0}),
      cacheKey(kSource, "sm_80", options, {13, 1}),
      cacheKey(kSource, "sm_80", options, {12, 0}),
      // The same bytes but for the headers that they reach.
      cacheKey("#include \"deft/types.cuh\"\n// kernel\n", "sm_80", options, {13, 0}),
  };
  EXPECT_EQ(keys.size(), 9u);
}

TEST(CacheKeyTest, TheSamePartsGiveTheSameKey) {
  const std::string key = cacheKey(kSource, "sm_80", {"--a"}, {13, 0});
  EXPECT_EQ(key, cacheKey(kSource, "sm_80", {"--a"}, {13, 0}));
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
}

/// Sets variables for one test.
class Environment {
public:
  Environment(std::initializer_list<std::pair<const char *, const char *>> values) {
    for (const char *name : {"DEFT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
      const char *old = std::getenv(name);
      saved_.emplace_back(name, old ? std::optional<std::string>(old) : std::nullopt);
      ::unsetenv(name);
    }
    for (const auto &[name, value] : values)
      ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto &[name, value] : saved_)
      value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

private:
  std::vector<std::pair<const char *, std::optional<std::string>>> saved_;
};

TEST(CacheFolderTest, TheMostSpecificVariableWins) {
  const auto place = [] { return *defaultCacheFolder(); };
  {
    Environment environment{{"DEFT_CACHE_DIR", "/d"}, {"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}};
    EXPECT_EQ(place(), "/d");
  }
  {
    Environment environment{{"DEFT_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}};
    EXPECT_EQ(place(), "/x/deftc");
  }
  {
    Environment environment{{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}};
    EXPECT_EQ(place(), "/h/.cache/deftc");
  }
  {
    Environment environment{};
    const auto none = defaultCacheFolder();
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "no place for the kernel cache: HOME is not set");
    EXPECT_EQ(CubinCache::openDefault()->takeWarning(),
              "no place for the kernel cache: HOME is not set; kernels are compiled again by each process");
  }
}

} // namespace
} // namespace deft::module_cache
