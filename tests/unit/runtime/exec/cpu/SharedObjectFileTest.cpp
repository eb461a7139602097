/// Headers of shared objects made by hand; that real ones are found whole is SharedObjectTest's.

#include "runtime/exec/cpu/SharedObjectFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <elf.h>
#include <functional>

namespace deft::exec {
namespace {

/// A header, two segments of 64 bytes behind their own headers, and a section header at the end.
struct Object {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[2] = {};
  std::size_t size = 0;

  Object() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    header.e_phentsize = sizeof(Elf64_Phdr);
    std::uint64_t at = sizeof header + sizeof segments;
    for (Elf64_Phdr &segment : segments) {
      segment.p_type = PT_LOAD;
      segment.p_offset = at;
      segment.p_filesz = 64;
      at += 64;
    }
    header.e_shoff = at;
    header.e_shnum = 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    size = at + sizeof(Elf64_Shdr);
  }
  std::string bytes() const {
    std::string bytes(size, '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, segments, sizeof segments);
    return bytes;
  }
};

std::string faultWith(const std::function<void(Object &)> &change) {
  Object object;
  change(object);
  return faultOfSharedObject(object.bytes());
}

TEST(SharedObjectFileTest, EveryByteOfAnObjectIsNeeded) {
  const std::string whole = Object().bytes();
  EXPECT_EQ(faultOfSharedObject(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(faultOfSharedObject(std::string_view(whole).substr(0, size)), "") << size;
}

TEST(SharedObjectFileTest, ObjectsOfOtherMachinesAreNone) {
  const std::string none = "it is no shared object of x86-64";
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_ident[0] = 'M'; }), none);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_ident[EI_CLASS] = ELFCLASS32; }), none);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_ident[EI_DATA] = ELFDATA2MSB; }), none);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_type = ET_REL; }), none);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_machine = EM_AARCH64; }), none);
}

TEST(SharedObjectFileTest, NoSumOfOffsetsWraps) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0} - 7;
  EXPECT_EQ(faultWith([](Object &o) {
              o.segments[1].p_offset = kHuge;
            }).find("it is cut: a segment of 64 bytes at "),
            0U);
  EXPECT_EQ(faultWith([](Object &o) { o.segments[0].p_filesz = kHuge; }).find("it is cut: a segment of "),
            0U);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_phoff = kHuge; }).find("it is cut: segment headers of "),
            0U);
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_shoff = kHuge; }).find("it is cut: section headers of "),
            0U);
}

TEST(SharedObjectFileTest, SegmentsAreThereAndUnusedOnesAreNoMatter) {
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_phnum = 0; }), "it has no segments");
  EXPECT_EQ(faultWith([](Object &o) { o.header.e_phentsize = 1; }), "it has no segments");
  EXPECT_EQ(faultWith([](Object &o) {
              o.segments[1].p_offset = 1 << 20;
              o.segments[1].p_type = PT_NULL;
            }),
            "");
}

} // namespace
} // namespace deft::exec
