// What a user sees of wrong specs: diagnostics/NAME.deft and, in NAME.txt, all that `deftc check NAME.deft`
// prints (which is how a new text is made, before it is read and found right).
#include "compiler/support/AtomicFile.h"
#include "specs/Embedded.h"
#include "tests/unit/compiler/spec/SpecTesting.h"

#include <filesystem>

namespace deft::spec {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(DEFT_DIAGNOSTICS_FOLDER))
    if (entry.path().extension() == ".deft")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class DiagnosticsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DiagnosticsTest, AreTheExpectedText) {
  fs::path folder = DEFT_DIAGNOSTICS_FOLDER;
  auto text = support::readFile((folder / (GetParam() + ".deft")).string());
  auto expected = support::readFile((folder / (GetParam() + ".txt")).string());
  ASSERT_TRUE(text.ok() && expected.ok());
  support::SourceManager sources;
  support::DiagnosticSink sink;
  std::uint32_t file = sources.add(GetParam() + ".deft", *text);
  // The imports find the library and the file itself.
  ImportResolver library = specs::importResolver();
  ImportResolver resolver = [&](const std::string &importer,
                                const std::string &path) -> support::Result<ImportedFile> {
    if (path == GetParam() + ".deft")
      return ImportedFile{path, *text};
    return library(importer, path);
  };
  EXPECT_TRUE(compileSpec(sources, file, resolver, sink).empty());
  EXPECT_TRUE(sink.hasErrors());
  EXPECT_EQ(support::renderDiagnostics(sources, sink), *expected);
}

INSTANTIATE_TEST_SUITE_P(Files, DiagnosticsTest, ::testing::ValuesIn(caseNames()),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace deft::spec
