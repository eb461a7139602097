#include "runtime/exec/cpu/SharedObjectFile.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace deft::exec {
namespace {

/// Whether a file of `size` bytes has `bytes` bytes at `offset`, without overflow.
bool holds(std::size_t size, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= size && bytes <= size - offset;
}

std::string cut(const std::string &what, std::uint64_t offset, std::uint64_t bytes, std::size_t size) {
  return "it is cut: " + what + " of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
         " in a file of " + std::to_string(size);
}

} // namespace

std::string faultOfSharedObject(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header)
    return "it has " + std::to_string(bytes.size()) + " bytes, fewer than a header";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN || header.e_machine != EM_X86_64)
    return "it is no shared object of x86-64";
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return "it has no segments";
  const std::uint64_t segmentsBytes = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (!holds(bytes.size(), header.e_phoff, segmentsBytes))
    return cut("segment headers", header.e_phoff, segmentsBytes, bytes.size());
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + static_cast<std::size_t>(i) * sizeof segment,
                sizeof segment);
    if (segment.p_type != PT_NULL && !holds(bytes.size(), segment.p_offset, segment.p_filesz))
      return cut("a segment", segment.p_offset, segment.p_filesz, bytes.size());
  }
  // Linkers put the section table last, so checking it detects every truncation; running does not need it.
  const std::uint64_t sectionsBytes = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (!holds(bytes.size(), header.e_shoff, sectionsBytes))
    return cut("section headers", header.e_shoff, sectionsBytes, bytes.size());
  return {};
}

} // namespace deft::exec
