#pragma once

#include <stddef.h>
#include <stdint.h>

/// Rules of all calls: errors, and ownership of results.

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

/// The result of a call; the numbers are the exit codes of `deftc`.
typedef int32_t deft_status;
enum {
  DEFT_OK = 0,
  DEFT_DIAGNOSTICS = 1, ///< the input is wrong: a spec, a tree, a package
  DEFT_USAGE = 2, ///< the call is wrong: a missing buffer, an unknown parameter, a plan of an older tree
  DEFT_ENVIRONMENT = 3, ///< the machine or the build lacks something: the compiler, memory, a GPU
  DEFT_INTERNAL = 70    ///< a bug of the library, or an exception from a callback
};

/// Describes the last failed call of this thread: lower case, without a final period, with the observed
/// number and the limit. For a wrong spec: all findings in several lines, each with its place, the source
/// line and a caret. Empty if no call has failed. Valid until the next failure in this thread.
DEFT_C_API const char *deft_error_message(void);
/// The wrong argument, field of a struct or element, with which the message begins: "plan",
/// "deft_plan_options::workers", "states[1].lse"; empty if there is no single one. Bindings translate it to
/// their language. Valid as long as the message.
DEFT_C_API const char *deft_error_field(void);
/// The message without it: "is 2000, not between 0 and 1024". Valid as long as the message.
DEFT_C_API const char *deft_error_detail(void);
/// A remedy; may be empty. Valid as long as the message.
DEFT_C_API const char *deft_error_hint(void);
/// Message and hint, in the form that programs print. Valid as long as the message.
DEFT_C_API const char *deft_error_text(void);

/// Frees a call's result: a text, an array, or a struct with its contents. Null is ignored. Handles have
/// their own functions.
DEFT_C_API void deft_free(void *memory);

/// The library's version, "0.3.0"; do not free it. <deft/version.h> has the version of the headers.
DEFT_C_API const char *deft_version(void);
/// 1 if this build of the library can compile specs; otherwise it only runs packages.
DEFT_C_API int32_t deft_has_compiler(void);

DEFT_C_END
