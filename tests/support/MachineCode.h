#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>

/// What machine code of sm_90a says, read from a cubin without a disassembler.
namespace deft::test {

/// The registers that products by wgmma read their left operand from.
struct ProductRegisters {
  std::set<int> ofKeys;   ///< q . k: the right operand lies as it is multiplied
  std::set<int> ofValues; ///< p . v: the right operand is read transposed
};

/// An instruction has 16 bytes. Of a product with a left operand in registers (HGMMA, as nvdisasm of
/// CUDA 13.0 reads it) bits 0 to 11 are 0xdf0, bits 24 to 31 the first of four registers, bit 62 says
/// `transposed`.
inline ProductRegisters productRegisters(std::string_view cubin) {
  ProductRegisters found;
  for (std::size_t at = 0; at + 16 <= cubin.size(); at += 16) {
    std::uint64_t low;
    std::memcpy(&low, cubin.data() + at, sizeof low);
    if ((low & 0xfff) != 0xdf0)
      continue;
    std::set<int> &registers = low >> 62 & 1 ? found.ofValues : found.ofKeys;
    for (int i = 0; i < 4; ++i)
      registers.insert(static_cast<int>(low >> 24 & 0xff) + i);
  }
  return found;
}

} // namespace deft::test
