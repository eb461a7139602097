#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <set>
#include <string_view>

/// Reads facts from the machine code of a cubin, without a disassembler.
namespace deft::test {

/// The registers from which wgmma products of sm_90a read their left operand.
struct ProductRegisters {
  std::set<int> ofKeys;   ///< q . k: the right operand is not transposed
  std::set<int> ofValues; ///< p . v: the right operand is transposed
};

/// An instruction has 16 bytes. A product with its left operand in registers (HGMMA, as nvdisasm of CUDA 13.0
/// shows) has 0xdf0 in bits 0 to 11, the first of four registers in bits 24 to 31, and the flag `transposed`
/// in bit 62.
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

/// Counts reductions over a warp that have a predicate other than PT (REDUX, or CREDUX of sm_100). ptxas 13.0
/// makes these from reductions under a condition that is equal in all lanes, but confuses the predicate with
/// a uniform one of the same number: kernels then skip visible tokens. So device code must not reduce under a
/// condition.
inline int predicatedReductions(std::string_view cubin) {
  const auto read = [&](auto &value, std::size_t offset) {
    if (offset + sizeof value <= cubin.size())
      std::memcpy(&value, cubin.data() + offset, sizeof value);
  };
  Elf64_Ehdr head{};
  read(head, 0);
  const auto sectionAt = [&](unsigned i) {
    Elf64_Shdr section{};
    read(section, head.e_shoff + i * sizeof section);
    return section;
  };
  const Elf64_Shdr names = sectionAt(head.e_shstrndx);
  int count = 0;
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr section = sectionAt(i);
    if (!cubin.substr(names.sh_offset + section.sh_name).starts_with(".text."))
      continue;
    for (std::size_t byte = 0; byte + 16 <= section.sh_size; byte += 16) {
      std::uint64_t low = 0;
      read(low, section.sh_offset + byte);
      const unsigned operation = low & 0xfff, predicate = low >> 12 & 7;
      count += (operation == 0x3c4 || operation == 0x2cc) && predicate != 7 ? 1 : 0;
    }
  }
  return count;
}

} // namespace deft::test
