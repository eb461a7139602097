#include "runtime/exec/cpu/SharedObject.h"

#include <gtest/gtest.h>

namespace deft::exec {

TEST(SharedObjectTest, BytesThatAreNoSharedObjectAreAnError) {
  for (std::string bytes : {std::string(), std::string("not an object"), std::string(4096, '\0')}) {
    auto kernel = loadCpuKernel(bytes, "v");
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, support::ErrorCode::Diagnostics);
    EXPECT_NE(kernel.error().message.find("cannot be loaded"), std::string::npos) << kernel.error().message;
  }
}

TEST(SharedObjectTest, LevelOfThisProcessorIsKnown) {
  const int level = hostIsaLevel();
  EXPECT_TRUE(level == 0 || level == 3 || level == 4) << level;
}

} // namespace deft::exec
