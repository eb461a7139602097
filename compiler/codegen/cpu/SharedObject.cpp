#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/LinkerAlone.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <lld/Common/Driver.h>

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

LLD_HAS_DRIVER(elf)

/// LLD's optimiser asks for Polly, too.
__attribute__((visibility("hidden"))) llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "", [](llvm::PassBuilder &) {}};
}

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

/// What is written to a named pipe. For a file, which might have to be removed when the process is stopped,
/// LLVM would take the signals, which are the host's.
class Catcher {
public:
  explicit Catcher(const std::string &path) {
    if (::mkfifo(path.c_str(), S_IRUSR | S_IWUSR) != 0)
      return;
    read_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); // nobody writes yet
    write_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC); // so that there is somebody until taken()
    if (read_ >= 0 && write_ >= 0 && ::fcntl(read_, F_SETFL, 0) == 0)
      thread_ = std::thread([this] { catchAll(); });
  }
  ~Catcher() {
    (void)taken();
    if (read_ >= 0)
      ::close(read_);
  }
  Catcher(const Catcher &) = delete;
  Catcher &operator=(const Catcher &) = delete;

  bool isReady() const { return thread_.joinable(); }
  /// All of it: nobody may write any more.
  std::string taken() {
    if (write_ >= 0)
      ::close(std::exchange(write_, -1));
    if (thread_.joinable())
      thread_.join();
    return std::move(caught_);
  }

private:
  void catchAll() {
    char some[1 << 16];
    for (;;) {
      const ssize_t bytes = ::read(read_, some, sizeof some);
      if (bytes < 0 && errno == EINTR) // a signal of the host's
        continue;
      if (bytes <= 0)
        return;
      caught_.append(some, static_cast<std::size_t>(bytes));
    }
  }

  int read_ = -1, write_ = -1;
  std::thread thread_;
  std::string caught_;
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
  Catcher catcher(output);
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
