#include "compiler/package/Container.h"
#include "compiler/support/Hash.h"

#include <gtest/gtest.h>

namespace deft::package {
namespace {

std::string sample() {
  return writeContainer({{"manifest.json", "{}"}, {"empty", ""}, {"cubin", std::string("\0binary\xff", 8)}});
}

std::string errorOf(std::string_view bytes) {
  const auto sections = readContainer(bytes, "p.deftpkg");
  return sections ? "read" : sections.error().message;
}

TEST(ContainerTest, RoundTripKeepsNamesAndBytes) {
  const auto sections = readContainer(sample(), "p.deftpkg");
  ASSERT_TRUE(sections) << sections.error().message;
  ASSERT_EQ(sections->size(), 3u);
  EXPECT_EQ((*sections)[0].name, "manifest.json");
  EXPECT_EQ((*sections)[1].bytes, "");
  EXPECT_EQ((*sections)[2].bytes, std::string("\0binary\xff", 8));
  EXPECT_EQ(writeContainer(*sections), sample());
  EXPECT_TRUE(looksLikePackage(sample()));
}

TEST(ContainerTest, EveryTruncationIsCalledOne) {
  const std::string whole = sample();
  EXPECT_EQ(errorOf(""), "`p.deftpkg` is not a package");
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const std::string error = errorOf(std::string_view(whole).substr(0, length));
    EXPECT_EQ(error.find("package `p.deftpkg` is truncated: it has " + std::to_string(length) + " bytes"), 0u)
        << length << ": " << error;
  }
  EXPECT_EQ(errorOf(std::string_view(whole).substr(0, whole.size() - 1)),
            "package `p.deftpkg` is truncated: it has " + std::to_string(whole.size() - 1) + " bytes of " +
                std::to_string(whole.size()));
}

/// A file whose header and table are right by their checksums, and nothing behind them.
std::string withTable(const std::string &table) {
  std::string bytes = "DEFTPKG\n";
  for (const std::size_t number : {std::size_t{kContainerVersion}, table.size()})
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(number >> shift & 0xff);
  support::Sha256 hash;
  hash.update(table);
  for (const std::uint8_t byte : hash.finish())
    bytes += static_cast<char>(byte);
  return bytes + table;
}

TEST(ContainerTest, SizesWhoseSumWrapsAreMalformed) {
  const std::string row =
      R"({"name":"x","sha256":"","size":281474976710656})"; // 2^48, as often as makes 2^64
  std::string table = "[" + row;
  for (int i = 1; i < 65536; ++i)
    table += "," + row;
  EXPECT_EQ(errorOf(withTable(table + "]")),
            "package `p.deftpkg` is malformed: section `x` is to have 281474976710656 bytes, above the limit "
            "of 4294967296");
}

TEST(ContainerTest, ATableOfAnotherShapeIsMalformed) {
  for (const char *table :
       {"[", "7", "[7]", "[{}]", R"([{"name":"x","sha256":"","size":-1}])",
        R"([{"name":"x","sha256":"","size":1e300}])", R"([{"name":1,"sha256":"","size":1}])"})
    EXPECT_EQ(errorOf(withTable(table)),
              "package `p.deftpkg` is malformed: its table of sections is not understood")
        << table;
}

TEST(ContainerTest, EveryFlippedBitIsAnError) {
  const std::string whole = sample();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      EXPECT_NE(errorOf(flipped), "read") << "byte " << at << " bit " << bit;
    }
}

TEST(ContainerTest, AnAlteredSectionIsNamed) {
  std::string bytes = sample();
  bytes.back() ^= 1;
  EXPECT_EQ(errorOf(bytes), "package `p.deftpkg` is altered: section `cubin` does not match its checksum");
  EXPECT_EQ(errorOf(sample() + "x"), "package `p.deftpkg` is altered: 1 bytes follow its last section");
  bytes = sample();
  bytes[60] ^= 1;
  EXPECT_EQ(errorOf(bytes),
            "package `p.deftpkg` is altered: its table of sections does not match its checksum");
}

TEST(ContainerTest, NewerAndOlderFormatsAreToldFromAlteredOnes) {
  std::string bytes = sample();
  bytes[8] = 4;
  const auto newer = readContainer(bytes, "p.deftpkg");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().message, "package `p.deftpkg` has format 4; this deftc reads format 3");
  EXPECT_EQ(newer.error().hint, "use a newer deftc, or build the package again with this one");
  bytes[8] = 2;
  const auto older = readContainer(bytes, "p.deftpkg");
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().message, "package `p.deftpkg` has format 2; this deftc reads format 3");
  EXPECT_EQ(older.error().hint, "build the package again with this deftc");
  bytes[8] = 0;
  EXPECT_EQ(errorOf(bytes), "package `p.deftpkg` is altered: format 0 does not exist");
}

TEST(ContainerTest, OtherFilesAreNoPackages) {
  EXPECT_EQ(errorOf("attention a { }"), "`p.deftpkg` is not a package");
  EXPECT_EQ(errorOf(std::string("\x7f"
                                "ELF",
                                4)),
            "`p.deftpkg` is not a package");
  EXPECT_FALSE(looksLikePackage("DEFT"));
}

} // namespace
} // namespace deft::package
