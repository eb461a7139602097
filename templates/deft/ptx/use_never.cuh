#pragma once

/// A use of registers that never executes.
namespace deft::ptx {

/// Stores `words` if the shared address has an impossible value. So ptxas must assume that the registers are
/// in use up to here.
__device__ __forceinline__ void useNever(const unsigned (&words)[4][4], unsigned shared) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %16, 0xffffffff;\n@p bra used_%=;\n"
               "st.shared.v4.b32 [%16], {%0, %1, %2, %3};\n"
               "st.shared.v4.b32 [%16], {%4, %5, %6, %7};\n"
               "st.shared.v4.b32 [%16], {%8, %9, %10, %11};\n"
               "st.shared.v4.b32 [%16], {%12, %13, %14, %15};\nused_%=:\n}" ::"r"(words[0][0]),
               "r"(words[0][1]), "r"(words[0][2]), "r"(words[0][3]), "r"(words[1][0]), "r"(words[1][1]),
               "r"(words[1][2]), "r"(words[1][3]), "r"(words[2][0]), "r"(words[2][1]), "r"(words[2][2]),
               "r"(words[2][3]), "r"(words[3][0]), "r"(words[3][1]), "r"(words[3][2]), "r"(words[3][3]),
               "r"(shared));
}

/// The same for fewer registers.
__device__ __forceinline__ void useNever(const unsigned (&words)[4], unsigned shared) {
  asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %4, 0xffffffff;\n"
               "@p st.shared.v4.b32 [%4], {%0, %1, %2, %3};\n}" ::"r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(shared));
}

} // namespace deft::ptx
