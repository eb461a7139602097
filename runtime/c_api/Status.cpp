#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Made.h"

#include <deft/attention.hpp>

#include <new>

namespace deft::c {

namespace {

/// What a thread is told of its last call that failed.
struct LastError {
  Error error = {ErrorCode::Internal, {}, {}};
  std::string text;
  bool isOutOfMemory = false; ///< there was no memory for the words either
};

thread_local LastError lastError;

constexpr char kOutOfMemory[] = "out of memory";

deft_status statusOf(ErrorCode code) {
  switch (code) {
  case ErrorCode::Diagnostics:
    return DEFT_DIAGNOSTICS;
  case ErrorCode::Usage:
    return DEFT_USAGE;
  case ErrorCode::Environment:
    return DEFT_ENVIRONMENT;
  case ErrorCode::Internal:
    break;
  }
  return DEFT_INTERNAL;
}

} // namespace

deft_status fail(const Error &error) noexcept {
  try {
    lastError.error = error;
    lastError.text = error.text();
    lastError.isOutOfMemory = false;
    return statusOf(error.code);
  } catch (...) {
    lastError.isOutOfMemory = true;
    return DEFT_ENVIRONMENT;
  }
}

deft_status failOfException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    lastError.isOutOfMemory = true;
    return DEFT_ENVIRONMENT;
  } catch (const std::exception &exception) {
    try {
      return fail({ErrorCode::Internal, std::string("an exception: ") + exception.what(), ""});
    } catch (...) { // no memory for the words
      lastError.isOutOfMemory = true;
      return DEFT_ENVIRONMENT;
    }
  } catch (...) {
    return fail({ErrorCode::Internal, "an exception of a type that is not known", ""});
  }
}

Result<void> checkPointers(const char *function, std::initializer_list<Pointer> pointers) {
  for (const Pointer &pointer : pointers)
    if (!pointer.value)
      return usage(std::string(function) + ": " + pointer.name + " is null");
  return {};
}

} // namespace deft::c

using namespace deft::c;

const char *deft_error_message(void) {
  return lastError.isOutOfMemory ? kOutOfMemory : lastError.error.message.c_str();
}

const char *deft_error_hint(void) { return lastError.isOutOfMemory ? "" : lastError.error.hint.c_str(); }

const char *deft_error_text(void) { return lastError.isOutOfMemory ? kOutOfMemory : lastError.text.c_str(); }

void deft_free(void *memory) { giveBack(memory); }

const char *deft_version(void) { return deft::version(); }

int32_t deft_has_compiler(void) { return deft::hasCompiler(); }
