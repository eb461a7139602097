#include "runtime/program/Program.h"

#include "compiler/support/AtomicFile.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace deft::program {
namespace {

using testing::HasSubstr;

/// A package that was whole until `change`, and is right by its checksums again.
class ProgramTest : public testing::Test {
protected:
  /// What is said of it; "runs" when there is a kernel.
  std::string outcome(const std::function<void(package::Package &)> &change) const {
    auto package = package::openPackage(DEFT_TEST_PACKAGE);
    if (!package)
      return package.error().message;
    change(*package);
    const std::string path = folder_.path("p.deftpkg");
    if (auto written = support::writeFileAtomically(path, package::writePackage(*package)); !written)
      return written.error().message;
    auto program = Program::fromPackage(path, "", "");
    const auto kernel = program ? program->cpuKernel() : support::Result<exec::CpuKernel>(program.error());
    if (kernel)
      return "runs";
    EXPECT_EQ(kernel.error().code, support::ErrorCode::Diagnostics);
    return kernel.error().message;
  }
  std::string malformed(const std::string &what) const {
    return "package `" + folder_.path("p.deftpkg") + "` is malformed: " + what;
  }

private:
  module_cache::TestFolder folder_;
};

void replace(std::string &text, const std::string &from, const std::string &to) {
  text.replace(text.find(from), from.size(), to);
}

TEST_F(ProgramTest, AWholePackageRuns) {
  EXPECT_EQ(outcome([](package::Package &) {}), "runs");
}

TEST_F(ProgramTest, CpuCodeThatIsCutIsMalformed) {
  EXPECT_THAT(outcome([](package::Package &package) {
                package.cpu[0].sharedObject.resize(package.cpu[0].sharedObject.size() / 2);
              }),
              HasSubstr(malformed("its CPU code cannot be loaded: it is cut: ")));
}

TEST_F(ProgramTest, CpuCodeOfAnotherSpecIsMalformed) {
  EXPECT_EQ(outcome([](package::Package &package) {
              replace(package.specFiles[0].text, "head_dim    = 64", "head_dim    = 128");
              package.variants[0].source.tensors = spec::Tensors::alike(128);
            }),
            malformed("its CPU code is not of its spec's `host_program`: its dim of q and k is 64, not 128"));
}

TEST_F(ProgramTest, SourceOfAnotherSpecIsMalformed) {
  EXPECT_EQ(outcome([](package::Package &package) { package.variants[0].source.queryHeads = 8; }),
            malformed("its kernels' source and its spec differ in query_heads of `host_program`"));
}

TEST_F(ProgramTest, APackageWithoutASpecIsMalformed) {
  EXPECT_EQ(outcome([](package::Package &package) { package.specFiles.clear(); }),
            malformed("it holds no spec"));
}

} // namespace
} // namespace deft::program
