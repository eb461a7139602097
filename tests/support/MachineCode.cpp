#include "tests/support/MachineCode.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>

namespace deft::test {

namespace {

template <class T> T at(std::string_view bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size())
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Of an instruction of 16 bytes: REDUX, or CREDUX of sm_100, behind a predicate that is not PT.
bool isPredicatedReduction(std::uint64_t word) {
  const unsigned operation = word & 0xfff, predicate = word >> 12 & 7;
  return (operation == 0x3c4 || operation == 0x2cc) && predicate != 7;
}

} // namespace

int predicatedReductions(std::string_view cubin) {
  constexpr std::size_t kInstruction = 16;
  const auto head = at<Elf64_Ehdr>(cubin, 0);
  const auto sectionAt = [&](unsigned i) {
    return at<Elf64_Shdr>(cubin, head.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = sectionAt(head.e_shstrndx);
  int count = 0;
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr section = sectionAt(i);
    if (!cubin.substr(names.sh_offset + section.sh_name).starts_with(".text."))
      continue;
    for (std::size_t byte = 0; byte + kInstruction <= section.sh_size; byte += kInstruction)
      count += isPredicatedReduction(at<std::uint64_t>(cubin, section.sh_offset + byte)) ? 1 : 0;
  }
  return count;
}

} // namespace deft::test
