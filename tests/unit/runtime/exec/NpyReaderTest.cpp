#include "runtime/exec/NpyReader.h"

#include "runtime/exec/NpyWriter.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace deft::exec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NpyReaderTest : public testing::Test {
protected:
  /// A file of six numbers whose header says `text`.
  std::string fileOf(const std::string &text, int values = 6) {
    std::string header("\x93NUMPY\x01\x00", 8);
    header += static_cast<char>(text.size());
    header += '\0';
    std::ofstream file(path(), std::ios::binary);
    file << header << text;
    for (int i = 0; i < values; ++i) {
      const auto value = static_cast<float>(i);
      file.write(reinterpret_cast<const char *>(&value), sizeof value);
    }
    return path();
  }
  std::string path() const { return folder_.path("a.npy"); }

  static support::Error errorOf(const support::Result<NpyReader> &reader) {
    return reader ? support::Error{} : reader.error();
  }

  module_cache::TestFolder folder_;
  const NpyShape shape_{{2, 3}, "queries, heads"};
};

TEST_F(NpyReaderTest, WhatIsWrittenIsReadPieceByPiece) {
  auto writer = NpyWriter::create(path(), {2, 3});
  ASSERT_TRUE(writer);
  const float values[] = {1, -2.5f, 3, 4, 5, 6};
  writer->append(values);
  ASSERT_TRUE(writer->close());
  auto reader = NpyReader::open(path(), shape_);
  ASSERT_TRUE(reader) << reader.error().message;
  std::vector<float> first(2), rest(4), more(1);
  ASSERT_TRUE(reader->read(first));
  ASSERT_TRUE(reader->read(rest));
  EXPECT_THAT(first, ElementsAre(1, -2.5f));
  EXPECT_THAT(rest, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(reader->read(more).error().message, HasSubstr("ends too early"));
}

TEST_F(NpyReaderTest, AnotherShapeIsNamedBesideTheOneThatIsMeant) {
  const auto error = errorOf(
      NpyReader::open(fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n"), shape_));
  EXPECT_EQ(error.code, support::ErrorCode::Diagnostics);
  EXPECT_EQ(error.message, "`" + path() + "` has shape (3, 2), must have (2, 3): queries, heads");
}

TEST_F(NpyReaderTest, BigEndianDoublesAndFortranOrderAreRefusedWithARemedy) {
  for (const char *type : {">f4", "<f8", "<f2", "|u1"}) {
    const auto error = errorOf(NpyReader::open(
        fileOf("{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (2, 3), }\n"),
        shape_));
    EXPECT_THAT(error.message,
                HasSubstr("holds values of type '" + std::string(type) + "', must hold '<f4'"));
    EXPECT_THAT(error.hint, HasSubstr("astype('<f4')"));
  }
  const auto order = errorOf(
      NpyReader::open(fileOf("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n"), shape_));
  EXPECT_THAT(order.message, HasSubstr("is in Fortran order, must be in C order"));
}

TEST_F(NpyReaderTest, ValuesThatLackOrAreTooManyAreCounted) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  EXPECT_THAT(errorOf(NpyReader::open(fileOf(header, 5), shape_)).message,
              HasSubstr("holds 20 bytes of values, its shape (2, 3) says 24"));
  EXPECT_THAT(errorOf(NpyReader::open(fileOf(header, 7), shape_)).message, HasSubstr("holds 28 bytes"));
}

TEST_F(NpyReaderTest, WhatIsNoArrayIsAnErrorAtEveryLength) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  std::ifstream whole(fileOf(header), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<long>(size));
    EXPECT_FALSE(NpyReader::open(path(), shape_)) << size;
  }
  EXPECT_EQ(errorOf(NpyReader::open("/nowhere/q.npy", shape_)).message,
            "cannot read `/nowhere/q.npy`: No such file or directory");
  EXPECT_THAT(errorOf(NpyReader::open(folder_.path(), shape_)).message, HasSubstr("it is a folder"));
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0); // nobody writes into it: nothing is waited for
  EXPECT_EQ(errorOf(NpyReader::open(path(), shape_)).message,
            "cannot read `" + path() + "`: it is a pipe, not a file");
}

} // namespace
} // namespace deft::exec
