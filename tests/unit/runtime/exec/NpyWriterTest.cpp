#include "runtime/exec/NpyWriter.h"

#include "runtime/exec/Npy.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::exec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NpyWriterTest, WhatIsWrittenCanBeRead) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("written.npy");
  auto writer = NpyWriter::create(path, {3});
  ASSERT_TRUE(writer);
  const float first[] = {1, -2.5f}, second[] = {3};
  writer->append(first);
  writer->append(second);
  ASSERT_TRUE(writer->close());
  const auto read = readNpyFile(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->f32, ElementsAre(1, -2.5f, 3));
}

TEST(NpyWriterTest, HeaderIsWhatNumpyWrites) {
  for (const std::vector<long long> &shape : {std::vector<long long>{},
                                              {7},
                                              {2, 3, 4},
                                              {1'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000}}) {
    const std::string header = npyHeader(shape);
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.back(), '\n');
    EXPECT_EQ(static_cast<std::size_t>(static_cast<unsigned char>(header[8])) + 10, header.size() % 256);
  }
  EXPECT_THAT(npyHeader({7}), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_THAT(npyHeader({2, 3, 4}), HasSubstr("'shape': (2, 3, 4), }"));
}

TEST(NpyWriterTest, MissingValuesAndMissingFoldersAreErrors) {
  const module_cache::TestFolder folder;
  auto writer = NpyWriter::create(folder.path("short.npy"), {2, 2});
  ASSERT_TRUE(writer);
  const float three[] = {1, 2, 3};
  writer->append(three);
  EXPECT_THAT(writer->close().error().message, HasSubstr("lacks 1 values"));
  EXPECT_THAT(NpyWriter::create("/nowhere/at/all.npy", {1}).error().message,
              HasSubstr("/nowhere/at/all.npy"));
}

} // namespace
} // namespace deft::exec
