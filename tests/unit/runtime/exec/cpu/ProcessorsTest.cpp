#include "runtime/exec/cpu/Processors.h"

#include <gtest/gtest.h>

#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace deft::exec {
namespace {

#ifdef __linux__
/// As under taskset: what the machine has is not what this process may use.
TEST(ProcessorsTest, OnlyWhatMayBeUsedIsCounted) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(usableProcessors(), CPU_COUNT(&all));
  int pinned = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all))
        CPU_SET(cpu, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    pinned = usableProcessors();
  }).join();
  EXPECT_EQ(pinned, 1);
  EXPECT_EQ(usableProcessors(), CPU_COUNT(&all)) << "of this thread nothing was taken";
}
#endif

TEST(ProcessorsTest, ThereIsOneAtLeast) { EXPECT_GE(usableProcessors(), 1); }

} // namespace
} // namespace deft::exec
