#include <cmath>
#include <cstdint>
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

// What the C++ library, GCC's and LLVM ask of glibc 2.35 and newer, by what 2.34 has: a package that is built
// where these functions are there runs where they are not, on RHEL 9 and what is built of it.

extern "C" std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value))
    ; // interrupted
  return value;
}

#if __GLIBC_PREREQ(2, 35)
/// hypot is of glibc 2.35, hypotl of the oldest.
extern "C" double hypot(double x, double y) { return static_cast<double>(::hypotl(x, y)); }

namespace {

struct Wanted {
  ElfW(Addr) address;
  dl_find_object *result;
};

/// Fills in the result, and ends the search, where a loaded object has the address.
int fillIfInside(dl_phdr_info *object, std::size_t, void *argument) {
  const Wanted &wanted = *static_cast<Wanted *>(argument);
  const ElfW(Phdr) *holder = nullptr;
  const ElfW(Phdr) *frames = nullptr;
  for (const ElfW(Phdr) *part = object->dlpi_phdr; part != object->dlpi_phdr + object->dlpi_phnum; ++part) {
    if (part->p_type == PT_GNU_EH_FRAME)
      frames = part;
    else if (part->p_type == PT_LOAD && wanted.address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
      holder = part;
  }
  if (!holder || !frames)
    return 0;
  *wanted.result = {};
  wanted.result->dlfo_eh_frame = reinterpret_cast<void *>(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

} // namespace

/// GCC's unwinder looks for the table of an address's frames by this, and reads nothing else of the result.
/// It takes the time that GCC 11's took, which matters to nobody: exceptions here are for files that cannot
/// be read.
extern "C" int _dl_find_object(void *address, dl_find_object *result) noexcept {
  Wanted wanted{reinterpret_cast<ElfW(Addr)>(address), result};
  return ::dl_iterate_phdr(fillIfInside, &wanted) == 1 ? 0 : -1;
}
#endif
