/// Which files are read, in which order, and what names they have together.

#include "compiler/spec/ParsedFiles.h"

#include "compiler/spec/Limits.h"
#include "tests/unit/compiler/spec/SpecTesting.h"

#include <gmock/gmock.h>

namespace deft::spec::testing {
namespace {

using ::testing::ElementsAre;

struct Parsing {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  std::vector<std::string> asked; ///< what was looked for
  ParsedFiles parsed;

  Parsing(const std::string &text, std::map<std::string, std::string> files) {
    const ImportResolver resolver = [this, find = resolverOf(std::move(files))](const std::string &importer,
                                                                                const std::string &path) {
      asked.push_back(path);
      return find(importer, path);
    };
    parsed = parseFiles(sources, sources.add("my.deft", text), resolver, sink);
  }
  std::string findings() const { return support::renderDiagnostics(sources, sink); }
};

/// A file that imports the next one, `count` of them.
std::map<std::string, std::string> chain(int count) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < count; ++i)
    files[std::to_string(i)] = i + 1 < count ? "import \"" + std::to_string(i + 1) + "\";" : "let end = 1;";
  return files;
}

TEST(ParsedFilesTest, NamesOfAllFilesAreInOneTable) {
  const Parsing parsing(
      "import \"a\"; let mine = 1; attention x { }",
      {{"a", "import \"b\"; mask theirs() = true;"}, {"b", "score deep() = s; attention y { }"}});
  EXPECT_EQ(parsing.findings(), "");
  EXPECT_EQ(parsing.parsed.files.size(), 3U);
  EXPECT_EQ(parsing.sources.name(parsing.parsed.files.front().file), "my.deft");
  std::vector<std::string> names, attentions;
  for (const auto &[name, declaration] : parsing.parsed.globals)
    names.push_back(name);
  for (const auto &[name, attention] : parsing.parsed.attentions)
    attentions.push_back(name);
  EXPECT_THAT(names, ElementsAre("deep", "mine", "theirs"));
  EXPECT_THAT(attentions, ElementsAre("x", "y"));
}

TEST(ParsedFilesTest, ImportsGoAsDeepAsTheLimitAndNoDeeper) {
  EXPECT_EQ(Parsing("import \"0\";", chain(kMaxImportDepth)).findings(), "");
  const Parsing deeper("import \"0\";", chain(kMaxImportDepth + 1));
  EXPECT_EQ(deeper.sink.errorCount(), 1U);
  EXPECT_NE(deeper.findings().find("deeper than the limit of " + std::to_string(kMaxImportDepth)),
            std::string::npos)
      << deeper.findings();
  EXPECT_EQ(deeper.parsed.files.size(), 1U + kMaxImportDepth);
}

TEST(ParsedFilesTest, ANameDefinedTwiceIsToldInTheFileThatImports) {
  const Parsing apart("import \"a\"; let width = 3;", {{"a", "let width = 4;"}});
  EXPECT_EQ(apart.sink.errorCount(), 1U);
  EXPECT_EQ(apart.findings().find("my.deft:1:17: error: `width` is also defined by an import"), 0U)
      << apart.findings();
  const Parsing together("let width = 3; mask width() = true;", {});
  EXPECT_EQ(together.findings().find("my.deft:1:21: error: `width` is defined twice"), 0U)
      << together.findings();
}

/// Hints name what the library has; who gives no hint reads no library.
TEST(ParsedFilesTest, TheLibraryIsReadWhenItIsAskedFor) {
  Parsing parsing("let x = 1;", {{"library.deft", "mask window() = true; let width = 3; score cap() = s;"}});
  EXPECT_TRUE(parsing.asked.empty());
  EXPECT_THAT(parsing.parsed.libraryFunctions(), ElementsAre("window", "cap"));
  EXPECT_TRUE(Parsing("let x = 1;", {}).parsed.libraryFunctions().empty());
}

TEST(ParsedFilesTest, AFileThatIsTooLongIsNotRead) {
  const Parsing parsing("import \"long\"; let x = 1;", {{"long", std::string(kMaxFileBytes + 1, ' ')}});
  EXPECT_EQ(parsing.parsed.files.size(), 1U);
  EXPECT_NE(parsing.findings().find("the file has " + std::to_string(kMaxFileBytes + 1) + " bytes"),
            std::string::npos)
      << parsing.findings();
}

} // namespace
} // namespace deft::spec::testing
