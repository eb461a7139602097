#include "runtime/exec/cuda/DevicePageTable.h"

#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

namespace deft::exec {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

bool isCopyOf(const tree::PagedPool &pool, const DevicePageTable &table) {
  for (std::size_t place = 0; place < pool.pageTable().size(); ++place)
    if (pool.pageTable()[place] >= 0 && table.data()[place] != pool.pageTable()[place])
      return false;
  return true;
}

TEST(DevicePageTableTest, FollowsAPoolByItsChanges) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  auto pool = *tree::PagedPool::make({.pageSize = 4, .pages = 3000});
  const auto table = *DevicePageTable::create(gpu.device, 6000);
  std::mt19937 random(1);
  std::vector<int> ranges;
  for (int step = 0; step < 60; ++step) {
    for (int edit = 0; edit < (step == 30 ? 3000 : 4); ++edit) {
      ranges.push_back(*pool.allocate(static_cast<int>(random() % 30)));
      if (ranges.size() > 60) {
        ASSERT_TRUE(pool.release(ranges.front()).ok());
        ranges.erase(ranges.begin());
      }
    }
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(table->upload(pool, stream).ok());
    EXPECT_THAT(countCalls(), UnorderedElementsAre(Pair("cuLaunchKernel", 1), Pair("cuEventRecord", 1)));
    ASSERT_TRUE(isCopyOf(pool, *table)) << "step " << step;
    ASSERT_TRUE(table->upload(pool, stream).ok());
    EXPECT_TRUE(fake_cuda::takeCalls().empty()); // nothing changed
  }
}

TEST(DevicePageTableTest, ALaterReaderGetsAllOfIt) {
  const FakeGpu gpu;
  auto pool = *tree::PagedPool::make({.pageSize = 1, .pages = 20000});
  (void)*pool.allocate(9000); // more than are remembered as changes
  const auto table = *DevicePageTable::create(gpu.device, 20000);
  ASSERT_TRUE(table->upload(pool, makeStream(gpu)).ok());
  EXPECT_TRUE(isCopyOf(pool, *table));
}

TEST(DevicePageTableTest, AnotherPoolsTableTravelsAsAWhole) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  auto few = *tree::PagedPool::make({.pageSize = 1, .pages = 100}),
       many = *tree::PagedPool::make({.pageSize = 1, .pages = 100});
  (void)*few.allocate(10);
  ASSERT_TRUE(many.release(*many.allocate(4)).ok());
  (void)*many.allocate(6); // after as many changes in all, by other pages
  (void)*many.allocate(20);
  const auto table = *DevicePageTable::create(gpu.device, 100);
  for (const tree::PagedPool *pool : {&few, &many, &few, &many}) {
    ASSERT_TRUE(table->upload(*pool, stream).ok());
    EXPECT_TRUE(isCopyOf(*pool, *table));
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(table->upload(*pool, stream).ok());
    EXPECT_TRUE(fake_cuda::takeCalls().empty());
  }
}

TEST(DevicePageTableTest, AHostsOwnEntriesTravelWhereTheyChanged) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  const auto table = *DevicePageTable::create(gpu.device, 500);
  std::mt19937 random(2);
  std::vector<int> own(500);
  for (int &page : own)
    page = static_cast<int>(random() % 1000);
  ASSERT_TRUE(table->upload(own, 0, stream).ok());
  for (int step = 0; step < 40; ++step) {
    const auto first = random() % 400, count = random() % 100;
    std::size_t changed = 0;
    for (std::size_t i = first; i < first + count; ++i)
      if (random() % 3 == 0) {
        ++changed;
        own[i] += 1000;
      }
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(table->upload(std::span(own).subspan(first, count), static_cast<int>(first), stream).ok());
    const auto calls = fake_cuda::takeCalls();
    EXPECT_EQ(calls.empty(), changed == 0);
    if (changed > 0) {
      EXPECT_EQ(calls.front().blocks, 1u); // of 256 changes
    }
    ASSERT_TRUE(std::equal(own.begin(), own.end(), table->data())) << "step " << step;
  }
}

TEST(DevicePageTableTest, ATableIsAPoolsOrAHostsOwn) {
  const FakeGpu gpu;
  const cu::Stream stream = makeStream(gpu);
  auto pool = *tree::PagedPool::make({.pageSize = 1, .pages = 20});
  (void)*pool.allocate(5);
  const std::vector<int> own = {3, 4};
  const auto ofPool = *DevicePageTable::create(gpu.device, 10),
             ofHost = *DevicePageTable::create(gpu.device, 10);
  ASSERT_TRUE(ofPool->upload(pool, stream).ok());
  EXPECT_EQ(ofPool->upload(own, 0, stream).error().message,
            "the page table is that of a pool, not of entries of the host's own");
  ASSERT_TRUE(ofHost->upload(own, 8, stream).ok());
  EXPECT_EQ(ofHost->upload(pool, stream).error().message,
            "the page table has the host's own entries, not those of a pool");
  EXPECT_EQ(ofHost->upload(own, 9, stream).error().message,
            "the entries from 9 to 11 are not within the 10 that there is room for on the device");
  EXPECT_FALSE(ofHost->upload(own, -1, stream).ok());
}

TEST(DevicePageTableTest, ATableThatOutgrowsItsRoomIsAnError) {
  const FakeGpu gpu;
  auto pool = *tree::PagedPool::make({.pageSize = 1, .pages = 100});
  (void)*pool.allocate(11);
  const auto table = *DevicePageTable::create(gpu.device, 10);
  const auto uploaded = table->upload(pool, makeStream(gpu));
  ASSERT_FALSE(uploaded.ok());
  EXPECT_EQ(uploaded.error().message, "the page table has 11 pages, there is room for 10 on the device");
}

} // namespace
} // namespace deft::exec
