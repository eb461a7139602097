#include "compiler/package/PackagedSpec.h"

#include <gtest/gtest.h>

namespace deft::package {
namespace {

/// Names and texts, as pairs that can be compared.
std::vector<std::pair<std::string, std::string>> pairsOf(const std::vector<SpecFile> &files) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const SpecFile &file : files)
    pairs.emplace_back(file.name, file.text);
  return pairs;
}
using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(PackagedSpecTest, NamesDoNotTellWhereItWasBuilt) {
  support::SourceManager sources;
  sources.add("/home/me/specs/shared/base.deft", "b");
  const std::uint32_t spec = sources.add("/home/me/specs/my.deft", "m");
  sources.add("/home/me/other.deft", "o");
  sources.add("<deftc>/library.deft", "l");
  EXPECT_EQ(pairsOf(specFilesOf(sources, spec)), (Pairs{{"my.deft", "m"},
                                                        {"shared/base.deft", "b"},
                                                        {"../other.deft", "o"},
                                                        {"<deftc>/library.deft", "l"}}));
}

TEST(PackagedSpecTest, ASpecOfTheCurrentFolderIsTheSame) {
  const auto built = [](const std::string &folder) {
    support::SourceManager sources;
    const std::uint32_t spec = sources.add(folder + "my.deft", "m");
    sources.add(folder + "parts/a.deft", "a");
    return pairsOf(specFilesOf(sources, spec));
  };
  EXPECT_EQ(built(""), (Pairs{{"my.deft", "m"}, {"parts/a.deft", "a"}}));
  EXPECT_EQ(built("deep/er/"), built(""));
  EXPECT_EQ(built("./"), built(""));
}

TEST(PackagedSpecTest, ImportsAreFoundBesideTheirImporterAndThenInTheBinary) {
  const spec::ImportResolver find = packagedResolver({{"my.deft", "m"},
                                                      {"parts/a.deft", "a"},
                                                      {"parts/b.deft", "b"},
                                                      {"b.deft", "another b"},
                                                      {"../up.deft", "u"},
                                                      {"<deftc>/library.deft", "l"},
                                                      {"parts/library.deft", "own"}});
  const auto textOf = [&](const std::string &importer, const std::string &path) {
    const auto found = find(importer, path);
    return found ? found->name + ": " + found->text : found.error().message;
  };
  EXPECT_EQ(textOf("my.deft", "parts/a.deft"), "parts/a.deft: a");
  EXPECT_EQ(textOf("parts/a.deft", "b.deft"), "parts/b.deft: b");
  EXPECT_EQ(textOf("parts/a.deft", "../b.deft"), "b.deft: another b");
  EXPECT_EQ(textOf("my.deft", "./parts/../b.deft"), "b.deft: another b");
  EXPECT_EQ(textOf("my.deft", "../up.deft"), "../up.deft: u");
  EXPECT_EQ(textOf("my.deft", "library.deft"), "<deftc>/library.deft: l");
  EXPECT_EQ(textOf("parts/a.deft", "library.deft"), "parts/library.deft: own");
  EXPECT_EQ(textOf("my.deft", "c.deft"), "the package does not hold `c.deft`");
}

/// What a build finds, a package finds, too: names kept are names that imports lead to.
TEST(PackagedSpecTest, WhatWasKeptIsFoundAgain) {
  support::SourceManager sources;
  const std::uint32_t spec = sources.add("/x/y/my.deft", "m");
  sources.add("/x/common/base.deft", "b");
  sources.add("/x/common/in/deep.deft", "d");
  const auto files = specFilesOf(sources, spec);
  const spec::ImportResolver find = packagedResolver(files);
  const auto base = find(files[0].name, "../common/base.deft");
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->text, "b");
  const auto deep = find(base->name, "in/deep.deft");
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_EQ(deep->text, "d");
}

} // namespace
} // namespace deft::package
