#pragma once

/// The version of these headers, as numbers for #if; deft_version() and deft::version() say the library's.
/// While the first number is 0, programs of one second number go with libraries of the same.
///
/// The one place where it is written: CMake, pip and `deftc --version` read it here.
#define DEFT_VERSION_MAJOR 0
#define DEFT_VERSION_MINOR 3
#define DEFT_VERSION_PATCH 0
#define DEFT_VERSION_STRING "0.3.0"
