#include "runtime/exec/cpu/SharedObject.h"

#include "compiler/support/WriteAll.h"
#include "runtime/exec/cpu/SharedObjectFile.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace deft::exec {

using support::Error;
using support::ErrorCode;

int hostIsaLevel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return 4;
  if (__builtin_cpu_supports("x86-64-v3"))
    return 3;
#endif
  return 0;
}

namespace {

class MemoryFile {
public:
  MemoryFile() : descriptor_(memfd_create("deft-cpu-kernel", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0)
      close(descriptor_);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  bool write(std::string_view bytes) const { return support::writeAll(descriptor_, bytes); }
  /// A unique name. dlopen returns a library that it has already loaded under the same name without opening
  /// the file, and numbers of closed descriptors are reused. So the name also contains the bits of the file's
  /// own number, as parts of a path that have no effect.
  std::optional<std::string> path() const {
    struct stat facts = {};
    if (fstat(descriptor_, &facts) != 0)
      return std::nullopt;
    std::string name = "/proc/self/fd";
    for (ino_t bits = facts.st_ino; bits != 0; bits >>= 1)
      name += bits % 2 == 0 ? "/." : "//";
    return name + "/" + std::to_string(descriptor_);
  }

private:
  int descriptor_;
};

} // namespace

support::Result<CpuKernel> loadCpuKernel(std::string_view sharedObject, const spec::Variant &variant,
                                         const std::string &package) {
  const std::string rebuild = "build it again with `deftc build`";
  const auto malformed = [&](const std::string &what) {
    return Error{ErrorCode::Diagnostics, "package `" + package + "` is malformed: its CPU code " + what,
                 rebuild};
  };
  if (const std::string fault = faultOfSharedObject(sharedObject); !fault.empty())
    return malformed("cannot be loaded: " + fault);
  const MemoryFile file;
  const std::optional<std::string> path = file.write(sharedObject) ? file.path() : std::nullopt;
  if (!path)
    return Error{ErrorCode::Environment,
                 std::string("cannot hold native code in an anonymous file: ") + std::strerror(errno), ""};
  void *handle = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return malformed(std::string("cannot be loaded: ") + (reason ? reason : "unknown reason"));
  }
  const std::shared_ptr<void> owner(handle, [](void *library) { dlclose(library); });
  const std::string symbol = abi::kCpuKernelPrefix + variant.name;
  const auto *kernel = static_cast<const abi::CpuKernel *>(dlsym(handle, symbol.c_str()));
  if (!kernel)
    return malformed("holds no " + variant.called());
  // The version comes first in every layout; the other fields have a meaning only for our version.
  if (kernel->version != abi::kCpuKernelVersion ||
      kernel->tableBytes != static_cast<int>(sizeof(abi::CpuKernel)))
    return Error{ErrorCode::Diagnostics,
                 "package `" + package + "` has CPU code of version " + std::to_string(kernel->version) +
                     ", and this program runs " + std::to_string(abi::kCpuKernelVersion),
                 rebuild};
  if (kernel->isaLevel > hostIsaLevel())
    return Error{ErrorCode::Environment,
                 "the CPU code of package `" + package + "` needs x86-64-v" +
                     std::to_string(kernel->isaLevel) + ", which this processor does not have",
                 ""};
  if (const std::string difference = differenceOf(*kernel, variant); !difference.empty())
    return malformed("is not of its spec's " + variant.called() + ": " + difference);
  return CpuKernel(owner, kernel);
}

} // namespace deft::exec
