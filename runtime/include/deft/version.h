#pragma once

/// The version of these headers, as numbers for #if; deft_version() and deft::version() return the library's.
/// While the first number is 0, a program needs a library with the same second number.
///
/// The version is written only here: CMake, pip and `deftc --version` read this file.
#define DEFT_VERSION_MAJOR 0
#define DEFT_VERSION_MINOR 3
#define DEFT_VERSION_PATCH 0
#define DEFT_VERSION_STRING "0.3.0"
