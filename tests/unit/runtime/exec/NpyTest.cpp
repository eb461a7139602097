#include "runtime/exec/Npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace deft::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// As numpy.save writes it: the header padded to 64 bytes.
std::string npy(const std::string &descr, const std::string &shape, const std::string &data,
                int version = 1) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  const std::size_t prefix = version == 1 ? 10 : 12;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (version > 1)
    bytes += std::string(2, '\0');
  return bytes + header + data;
}

template <typename T> std::string raw(std::vector<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

TEST(NpyTest, ReadsFloatsAndIntegers) {
  for (int version : {1, 2, 3}) {
    const auto floats = parseNpy(npy("<f4", "(3,)", raw<float>({1.5f, -2, 0}), version));
    ASSERT_TRUE(floats) << floats.error().message;
    EXPECT_THAT(floats->f32, ElementsAre(1.5f, -2, 0));
    EXPECT_EQ(floats->type, NpyArray::Type::F32);
  }
  const auto integers = parseNpy(npy("<i4", "(2,)", raw<std::int32_t>({7, -1})));
  ASSERT_TRUE(integers);
  EXPECT_THAT(integers->i32, ElementsAre(7, -1));
}

TEST(NpyTest, EveryTruncationIsAnError) {
  const std::string bytes = npy("<f4", "(3,)", raw<float>({1, 2, 3}));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parseNpy(bytes.substr(0, length))) << length;
  EXPECT_FALSE(parseNpy(bytes + "1234"));
}

TEST(NpyTest, OtherArraysAreErrorsThatSayWhatIsThere) {
  EXPECT_EQ(parseNpy("PK\x03\x04 and some more").error().message, "not a .npy file");
  const auto doubles = parseNpy(npy("<f8", "(1,)", raw<double>({1})));
  EXPECT_EQ(doubles.error().message, "the .npy array has type '<f8', must be '<f4' or '<i4'");
  EXPECT_THAT(doubles.error().hint, HasSubstr("astype(numpy.float32)"));
  EXPECT_EQ(parseNpy(npy("<f4", "(1, 2)", raw<float>({1, 2}))).error().message,
            "the .npy array has shape (1, 2), must have one dimension");
  EXPECT_EQ(parseNpy(npy("<f4", "()", raw<float>({1}))).error().message,
            "the .npy array has shape (), must have one dimension");
  EXPECT_EQ(parseNpy(npy("\x1b[31m" + std::string(100, 'x'), "()", "")).error().message,
            "the .npy array has type '?[31m" + std::string(34, 'x') + "..., must be '<f4' or '<i4'");
  EXPECT_THAT(parseNpy(npy("<f4", "(3,)", raw<float>({1}))).error().message, HasSubstr("holds 4 bytes"));
  EXPECT_THAT(parseNpy(npy("<f4", "(1,)", raw<float>({1}), 9)).error().message, HasSubstr("version 9"));
}

} // namespace
} // namespace deft::exec
