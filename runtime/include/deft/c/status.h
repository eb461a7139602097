#pragma once

#include <stddef.h>
#include <stdint.h>

/// Rules of all calls: how they fail, and who owns their results.

#if defined(__GNUC__)
#define DEFT_C_API __attribute__((visibility("default")))
#else
#define DEFT_C_API
#endif

#ifdef __cplusplus
#define DEFT_C_BEGIN extern "C" {
#define DEFT_C_END }
#else
#define DEFT_C_BEGIN
#define DEFT_C_END
#endif

DEFT_C_BEGIN

/// How a call went; the numbers are the exit codes of `deftc`.
typedef int32_t deft_status;
enum {
  DEFT_OK = 0,
  DEFT_DIAGNOSTICS = 1, ///< the input is wrong: a spec, a tree, a package
  DEFT_USAGE = 2, ///< the call is wrong: a missing buffer, an unknown parameter, a plan of an older tree
  DEFT_ENVIRONMENT = 3, ///< the machine or the build lacks something: the compiler, memory, a GPU
  DEFT_INTERNAL = 70    ///< a bug of the library, or an exception that a callback let through
};

/// What the last call that failed in this thread found: lower case, without a final period, with the observed
/// number and the limit. Of a wrong spec: all findings, each with its place, the line it is about and a caret
/// under it, in several lines. Empty where none has failed. The text stays until the thread's next failure.
DEFT_C_API const char *deft_error_message(void);
/// The wrong argument or field of a struct, with which the message begins: "plan" or
/// "deft_plan_options::workers"; empty if there is no single one. Other languages translate it. Valid as
/// long.
DEFT_C_API const char *deft_error_field(void);
/// The message without it: "is 2000, not between 0 and 1024". Stays as long.
DEFT_C_API const char *deft_error_detail(void);
/// What to do about it; may be empty. Stays as long.
DEFT_C_API const char *deft_error_hint(void);
/// Both, as a program prints them. Stays as long.
DEFT_C_API const char *deft_error_text(void);

/// Frees a call's result: a text, an array, or a struct with its contents. Null is ignored. Handles have
/// their own functions.
DEFT_C_API void deft_free(void *memory);

/// The library's version, "0.3.0"; it is never given back. That of the headers is in <deft/version.h>.
DEFT_C_API const char *deft_version(void);
/// 1 where this build of the library can compile specs; else it runs packages only.
DEFT_C_API int32_t deft_has_compiler(void);

DEFT_C_END
