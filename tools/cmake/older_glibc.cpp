#include <cstdint>
#include <sys/random.h>

/// What the C++ library and LLVM ask of glibc 2.36 and newer, by what older ones have: a package that is
/// built where it is there runs where it is not, on Ubuntu 22.04 with its 2.35.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value))
    ; // interrupted
  return value;
}
