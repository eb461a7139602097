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

class ImportResolverTest : public ::testing::Test {
protected:
  ImportResolverTest() {
    std::string pattern = (fs::temp_directory_path() / "deft-import-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directory(folder_ / "spec");
    fs::create_directory(folder_ / "spec" / "sub");
  }
  ~ImportResolverTest() override { fs::remove_all(folder_); }

  /// `name` counts from the spec's folder.
  std::string write(const std::string &name, const std::string &text) {
    const std::string path = (folder_ / "spec" / name).lexically_normal().string();
    EXPECT_TRUE(support::writeFileAtomically(path, text).ok());
    return path;
  }
  void link(const std::string &name, const std::string &target) {
    fs::create_symlink(target, folder_ / "spec" / name);
  }
  support::Result<spec::ImportedFile> resolve(const std::string &path,
                                              const std::string &importer = "my.deft") {
    return importResolverOf(main_())((folder_ / "spec" / importer).string(), path);
  }
  std::string errorOf(const std::string &path, const std::string &importer = "my.deft") {
    const auto found = resolve(path, importer);
    return found ? "found " + found->name : found.error().message;
  }
  std::string main_() const { return (folder_ / "spec" / "my.deft").string(); }

  fs::path folder_;
};

// Rule F2.
TEST_F(ImportResolverTest, AFileBesideTheImporterWinsOverTheLibrary) {
  const auto library = resolve("library.deft");
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(library->name, "<deftc>/library.deft");
  EXPECT_NE(library->text.find("sliding_window"), std::string::npos);

  const std::string mine = write("library.deft", "// mine");
  const auto own = resolve("./library.deft");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->text, "// mine");
  EXPECT_EQ(own->name, mine);
  const auto above = resolve("../library.deft", "sub/x.deft");
  ASSERT_TRUE(above.ok());
  EXPECT_EQ(above->name, own->name) << "one file has one name";
  EXPECT_EQ(importResolverOf(main_())("<deftc>/x.deft", "library.deft")->name, "<deftc>/library.deft");
  EXPECT_EQ(importResolver()(main_(), "library.deft")->name, "<deftc>/library.deft") << "no folder";
  EXPECT_EQ(importResolver("/no/such/folder")("/no/such/folder/x.deft", "library.deft")->name,
            "<deftc>/library.deft");

  EXPECT_FALSE(resolve("absent.deft").ok());
  EXPECT_FALSE(resolve(mine).ok()) << "an absolute path";
  EXPECT_FALSE(resolve("").ok());
}

// Rule F2.
TEST_F(ImportResolverTest, NothingOutsideOfTheSpecsFolderIsRead) {
  write("../secret.deft", "// secret");
  write("../secret.txt", "// secret");
  fs::create_directory(folder_ / "elsewhere");
  write("../elsewhere/x.deft", "// secret");
  link("away.deft", "../secret.txt");
  link("far.deft", (folder_ / "secret.deft").string());
  link("twice.deft", "away.deft");
  link("lib", "../elsewhere");
  link("sub/up.deft", "../../secret.deft");
  for (const std::string path : {"away.deft", "far.deft", "twice.deft", "lib/x.deft", "sub/up.deft",
                                 "../secret.deft", "sub/../../secret.deft", "../absent.deft"})
    EXPECT_EQ(errorOf(path), "`" + path + "` lies outside of the folder of the spec");
  EXPECT_EQ(errorOf("up.deft", "sub/x.deft"), "`up.deft` lies outside of the folder of the spec");
  link("round.deft", "round.deft");
  EXPECT_FALSE(resolve("round.deft").ok());
}

// Rule F2.
TEST_F(ImportResolverTest, LinksInsideOfTheFolderAreFollowed) {
  write("sub/real.deft", "// real");
  link("near.deft", "sub/real.deft");
  link("up", "sub/..");
  EXPECT_EQ(resolve("near.deft")->text, "// real");
  EXPECT_EQ(resolve("up/near.deft")->text, "// real");
  // The spec's own folder may be named by a link.
  fs::create_directory_symlink(folder_ / "spec", folder_ / "named");
  const std::string spec = (folder_ / "named" / "my.deft").string();
  EXPECT_EQ(importResolverOf(spec)(spec, "near.deft")->text, "// real");
}

} // namespace
} // namespace deft::specs
