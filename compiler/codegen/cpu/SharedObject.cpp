#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/LinkerAlone.h"
#include "compiler/codegen/cpu/PipeCatcher.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <lld/Common/Driver.h>

#include <filesystem>
#include <fstream>
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

namespace {

/// A private folder that goes with the value.
class ScratchFolder {
public:
  ScratchFolder() { failed_ = static_cast<bool>(llvm::sys::fs::createUniqueDirectory("deft-link", path_)); }
  ~ScratchFolder() {
    std::error_code ignored; // what cannot be removed stays in the system's folder for such files
    if (!failed_)            // LLVM's own function leaves what is no file, a pipe for one
      std::filesystem::remove_all(path_.str().str(), ignored);
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  bool failed() const { return failed_; }
  std::string file(const std::string &name) const { return (path_ + "/" + name).str(); }

private:
  llvm::SmallString<128> path_;
  bool failed_;
};

/// LLD, which is linked in: a machine that has no compiler has no linker either. Gives what it complains of.
std::string link(const std::vector<std::string> &arguments) {
  static std::mutex one; // it keeps much in variables of its own
  const std::lock_guard lock(one);
  const std::vector<const char *> argv = [&] {
    std::vector<const char *> texts;
    for (const std::string &argument : arguments)
      texts.push_back(argument.c_str());
    return texts;
  }();
  std::string said;
  llvm::raw_string_ostream stream(said);
  const lld::Result result = lld::lldMain(argv, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0)
    return "";
  return said.empty() ? "it gave code " + std::to_string(result.retCode) : llvm::StringRef(said).trim().str();
}

} // namespace

support::Result<std::string> linkSharedObject(const std::vector<std::string> &objects) {
  ScratchFolder folder;
  if (folder.failed())
    return Error{ErrorCode::Environment, "cannot make a temporary folder",
                 "is the disk full? is TMPDIR writable?"};

  const std::string output = folder.file("kernel.so");
  PipeCatcher catcher(output);
  if (!catcher.isReady())
    return Error{ErrorCode::Environment, "cannot make a named pipe in " + folder.file("."),
                 "set TMPDIR to a folder that can have one"};
  // No unresolved symbol may be left: a package runs where no library but the C library is certain. A host's
  // program gets no threads of the linker's.
  std::vector<std::string> arguments{"ld.lld", "-shared",     "-z", "defs", "--build-id=none",
                                     "-s",     "--threads=1", "-o", output};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(folder.file(std::to_string(i) + ".o"));
    std::ofstream file(arguments.back(), std::ios::binary);
    file.write(objects[i].data(), static_cast<std::streamsize>(objects[i].size()));
    if (!file.flush())
      return Error{ErrorCode::Environment, "cannot write " + arguments.back(), "is the disk full?"};
  }

  if (const std::string complaint = link(arguments); !complaint.empty())
    return Error{ErrorCode::Environment, "the CPU kernels cannot be linked: " + complaint,
                 "is the disk full?"};
  return catcher.taken();
}

} // namespace deft::codegen::cpu
