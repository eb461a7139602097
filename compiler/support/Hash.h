#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace deft::support {

/// SHA-256 (FIPS 180-4), incremental: for keys of caches and checksums of packages.
class Sha256 {
public:
  Sha256 &update(std::string_view bytes);
  /// Ends the message; the object cannot be used afterwards.
  std::array<std::uint8_t, 32> finish();
  std::string finishHex();

private:
  void block(const std::uint8_t *bytes);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> buffer_{};
  std::size_t buffered_ = 0;
  std::uint64_t totalBytes_ = 0;
};

/// 64 lower-case hexadecimal digits.
std::string sha256Hex(std::string_view bytes);

} // namespace deft::support
