#include "compiler/codegen/cpu/CpuCodegen.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <fstream>
#include <optional>
#include <tuple>

namespace deft::codegen::cpu {

using support::Error;
using support::ErrorCode;

namespace {

/// A private folder that goes with the value.
class ScratchFolder {
public:
  ScratchFolder() { failed_ = static_cast<bool>(llvm::sys::fs::createUniqueDirectory("deft-link", path_)); }
  ~ScratchFolder() {
    if (!failed_) // what cannot be removed stays in the system's folder for such files
      std::ignore = llvm::sys::fs::remove_directories(path_);
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  bool failed() const { return failed_; }
  std::string file(const std::string &name) const { return (path_ + "/" + name).str(); }

private:
  llvm::SmallString<128> path_;
  bool failed_;
};

struct Linker {
  std::string path;
  bool isCompiler; ///< takes linker options by -Wl
};

std::optional<Linker> findLinker() {
  for (const char *name : {"ld.lld-22", "ld.lld", "ld", "cc", "gcc", "clang"})
    if (auto path = llvm::sys::findProgramByName(name))
      return Linker{*path, llvm::StringRef(name).find("ld") != 0};
  return std::nullopt;
}

std::string readText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().trim().str() : std::string();
}

} // namespace

support::Result<std::string> linkSharedObject(const std::vector<std::string> &objects) {
  const auto linker = findLinker();
  if (!linker)
    return Error{ErrorCode::Environment,
                 "no linker on PATH (looked for ld.lld-22, ld.lld, ld, cc, gcc, clang)",
                 "install binutils or lld, or leave --cpu out"};
  ScratchFolder folder;
  if (folder.failed())
    return Error{ErrorCode::Environment, "cannot make a temporary folder",
                 "is the disk full? is TMPDIR writable?"};

  const std::string output = folder.file("kernel.so"), log = folder.file("log");
  std::vector<std::string> arguments{linker->path, "-shared"};
  // No unresolved symbol may be left: a package runs where no library but the C library is certain.
  if (linker->isCompiler)
    arguments.insert(arguments.end(), {"-nostdlib", "-Wl,-z,defs", "-Wl,--build-id=none", "-Wl,-s"});
  else
    arguments.insert(arguments.end(), {"-z", "defs", "--build-id=none", "-s"});
  arguments.insert(arguments.end(), {"-o", output});
  for (std::size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(folder.file(std::to_string(i) + ".o"));
    std::ofstream file(arguments.back(), std::ios::binary);
    file.write(objects[i].data(), static_cast<std::streamsize>(objects[i].size()));
    if (!file.flush())
      return Error{ErrorCode::Environment, "cannot write " + arguments.back(), "is the disk full?"};
  }

  const std::vector<llvm::StringRef> argv(arguments.begin(), arguments.end());
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(log),
                                                      llvm::StringRef(log)};
  std::string message;
  if (llvm::sys::ExecuteAndWait(linker->path, argv, std::nullopt, redirects, 60, 0, &message) != 0)
    return Error{
        ErrorCode::Environment,
        linker->path + " cannot link the CPU kernels: " + (message.empty() ? readText(log) : message), ""};
  auto result = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!result)
    return Error{ErrorCode::Environment, "cannot read what " + linker->path + " wrote", ""};
  return (*result)->getBuffer().str();
}

} // namespace deft::codegen::cpu
