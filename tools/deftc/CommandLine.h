#pragma once

/// All of the program `deftc`. It lies in the shared library and the program only calls it, so that an
/// installation has the compiler and LLVM once. For this program alone: it is in no public header, and the
/// two belong to one build.
extern "C" int deftc_command_line(int argc, char **argv);
