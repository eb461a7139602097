#pragma once

#include "compiler/package/Package.h"
#include "compiler/support/AtomicFile.h"
#include "tests/support/PlainHooks.h"

#include <gtest/gtest.h>

#include <string>

namespace deft::test {

/// Writes the package of host_selecting.deft with lists of 80 tokens. Its own budgets need caches that are
/// too large for kernels that compute on the host.
inline void writeWithSmallBudget(const std::string &selecting, const std::string &path) {
  auto package = package::openPackage(selecting);
  ASSERT_TRUE(package) << package.error().message;
  std::string &text = package->specFiles[0].text;
  const std::string budgets = "tune(24, 4096)";
  ASSERT_NE(text.find(budgets), std::string::npos);
  text.replace(text.find(budgets), budgets.size(), "80");
  package->variants[0].source.hooks = plainHooks(0.25);
  ASSERT_TRUE(support::writeFileAtomically(path, package::writePackage(*package)).ok());
}

} // namespace deft::test
