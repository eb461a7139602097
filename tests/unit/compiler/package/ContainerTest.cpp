#include "compiler/package/Container.h"

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

TEST(ContainerTest, ANewerFormatIsToldFromAnAlteredOne) {
  std::string bytes = sample();
  bytes[8] = 2;
  const auto newer = readContainer(bytes, "p.deftpkg");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().message, "package `p.deftpkg` has format 2; this deftc reads formats up to 1");
  EXPECT_EQ(newer.error().hint, "use a newer deftc, or build the package again with this one");
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
