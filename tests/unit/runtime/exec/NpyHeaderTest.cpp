#include "runtime/exec/NpyHeader.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

/// A file's beginning, with the length in as many bytes as the version has.
std::string npy(int version, const std::string &header) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> 8 * i & 0xff);
  return bytes + header;
}

std::string messageOf(std::string_view bytes) {
  const auto parsed = parseNpyHeader(bytes);
  return parsed ? "parsed" : parsed.error().message;
}

const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8), }\n";

TEST(NpyHeaderTest, TypeShapeAndOrderAreReadFromAnyVersion) {
  for (const int version : {1, 2, 3}) {
    const std::string bytes = npy(version, kHeader);
    const auto header = parseNpyHeader(bytes + "values");
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->type, "'<f4'");
    EXPECT_EQ(header->shape, "(4, 8)");
    EXPECT_FALSE(header->isFortran);
    EXPECT_EQ(header->dataBegin, bytes.size());
  }
  // A header longer than a byte counts, keys in another order, and none of the spaces.
  const auto other = parseNpyHeader(
      npy(2, "{'shape':(),'fortran_order':True,'descr':'|u1'}" + std::string(70'000, ' ') + "\n"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->type, "'|u1'}" + std::string(70'000, ' ') + "\n") << "the last key has no comma behind it";
  EXPECT_EQ(other->shape, "()");
  EXPECT_TRUE(other->isFortran);
}

TEST(NpyHeaderTest, WhatIsCutOffOrNoneIsSaid) {
  const std::string whole = npy(1, kHeader), wide = npy(3, kHeader);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(messageOf(std::string_view(whole).substr(0, length)),
              length < 10 ? "not a .npy file" : "the .npy file is cut off");
  EXPECT_EQ(messageOf(std::string_view(wide).substr(0, 11)), "the .npy file is cut off");
  EXPECT_EQ(messageOf(npy(4, kHeader)), ".npy version 4, 1 to 3 can be read");
  EXPECT_EQ(messageOf(npy(1, "{'descr': '<f4'}")), "the .npy header lacks `descr` or `shape`");
  EXPECT_EQ(messageOf(npy(1, "{'descr'")), "the .npy header lacks `descr` or `shape`");
}

TEST(NpyHeaderTest, ShapesAreTuplesOfLengths) {
  using Lengths = std::vector<long long>;
  for (const Lengths &lengths : {Lengths{}, Lengths{0}, Lengths{5}, Lengths{4, 8}, Lengths{1, 1LL << 40, 3}})
    EXPECT_EQ(lengthsOf(shapeText(lengths)), lengths);
  EXPECT_EQ(shapeText({5}), "(5,)");
  EXPECT_EQ(shapeText({4, 8}), "(4, 8)");
  EXPECT_EQ(lengthsOf("(4,8)"), (Lengths{4, 8}));
  for (const char *const text : {"", "4", "(4)", "(4, 8", "4, 8)", "(,)", "(-4,)", "(4; 8)", "(4, x)",
                                 "(0x4,)", "(9223372036854775808,)", "( 4,)", "(4 8,)"})
    EXPECT_EQ(lengthsOf(text), std::nullopt) << text;
}

TEST(NpyHeaderTest, StrangersBytesAreFewAndPlain) {
  EXPECT_EQ(quotedNpy("'<f8'"), "'<f8'");
  EXPECT_EQ(quotedNpy("a\x1b[2J\n\xff"), "a?[2J??");
  EXPECT_EQ(quotedNpy(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(quotedNpy(std::string(41, 'x')), std::string(40, 'x') + "...");
}

} // namespace
} // namespace deft::exec
