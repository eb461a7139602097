#include "specs/Embedded.h"

#include "compiler/support/AtomicFile.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace deft::specs {
namespace {

namespace fs = std::filesystem;

TEST(EmbeddedTest, EveryShippedFileIsInTheBinaryByteForByte) {
  std::size_t files = 0;
  for (const auto &entry : fs::directory_iterator(fs::path(DEFT_SOURCE_FOLDER) / "specs")) {
    if (entry.path().extension() != ".deft")
      continue;
    ++files;
    const EmbeddedSpec *spec = findEmbeddedSpec(entry.path().stem().string());
    ASSERT_NE(spec, nullptr) << entry.path();
    EXPECT_EQ(spec->text, *support::readFile(entry.path().string()));
  }
  EXPECT_EQ(files, embeddedSpecs().size());
  EXPECT_EQ(findEmbeddedSpec("llama3_8b"), findEmbeddedSpec("llama3_8b.deft"));
  EXPECT_EQ(findEmbeddedSpec("llama"), nullptr);
}

// Rule F2.
TEST(ImportResolverTest, AFileBesideTheImporterWinsOverTheLibrary) {
  std::string pattern = (fs::temp_directory_path() / "deft-import-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  fs::path folder = pattern;
  std::string importer = (folder / "my.deft").string();
  spec::ImportResolver resolve = importResolver();

  auto library = resolve(importer, "library.deft");
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(library->name, "<deftc>/library.deft");
  EXPECT_NE(library->text.find("sliding_window"), std::string::npos);

  fs::create_directory(folder / "sub");
  ASSERT_TRUE(support::writeFileAtomically((folder / "library.deft").string(), "// mine").ok());
  auto own = resolve(importer, "./library.deft");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->text, "// mine");
  EXPECT_EQ(own->name, (folder / "library.deft").string());
  auto above = resolve((folder / "sub" / "x.deft").string(), "../library.deft");
  ASSERT_TRUE(above.ok());
  EXPECT_EQ(above->name, own->name) << "one file has one name";
  EXPECT_EQ(resolve("<deftc>/x.deft", "library.deft")->name, "<deftc>/library.deft");

  EXPECT_FALSE(resolve(importer, "absent.deft").ok());
  EXPECT_FALSE(resolve(importer, (folder / "library.deft").string()).ok()) << "an absolute path";
  EXPECT_FALSE(resolve(importer, "").ok());
  fs::remove_all(folder);
}

} // namespace
} // namespace deft::specs
