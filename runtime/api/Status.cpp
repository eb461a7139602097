#include "compiler/support/Unexpected.h"
#include "runtime/api/Call.h"

#include <new>
#include <system_error>

namespace deft::api {

namespace {

/// What a thread's last call that failed has found.
struct LastError {
  Error error;
  std::string message, text;
  bool isOutOfMemory = false; ///< there was no memory for the words either
};

thread_local LastError lastError;

constexpr char kOutOfMemory[] = "out of memory";

static_assert(static_cast<int>(support::ErrorCode::Diagnostics) == DEFT_DIAGNOSTICS);
static_assert(static_cast<int>(support::ErrorCode::Usage) == DEFT_USAGE);
static_assert(static_cast<int>(support::ErrorCode::Environment) == DEFT_ENVIRONMENT);
static_assert(static_cast<int>(support::ErrorCode::Internal) == DEFT_INTERNAL);

deft_status failOutOfMemory() noexcept {
  lastError.isOutOfMemory = true;
  return DEFT_ENVIRONMENT;
}

const char *orOutOfMemory(const std::string &text) {
  return lastError.isOutOfMemory ? kOutOfMemory : text.c_str();
}

} // namespace

deft_status fail(const Error &error, const char *function) noexcept {
  try {
    lastError.message = error.field.empty() ? error.message : error.field + " " + error.message;
    if (error.isNull)
      lastError.message = std::string(function) + ": " + lastError.message;
    lastError.text = lastError.message + (error.hint.empty() ? "" : "\n  = hint: " + error.hint);
    lastError.error = error;
    lastError.isOutOfMemory = false;
    return static_cast<deft_status>(error.code);
  } catch (...) {
    return failOutOfMemory();
  }
}

deft_status failOfException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return failOutOfMemory();
  } catch (const std::system_error &error) { // a thread that cannot be started
    try {
      return fail({support::ErrorCode::Environment, std::string("the system refuses: ") + error.what(), ""});
    } catch (...) {
      return failOutOfMemory();
    }
  } catch (const std::exception &exception) {
    try {
      return fail(support::unexpected(exception));
    } catch (...) {
      return failOutOfMemory();
    }
  } catch (...) {
    return fail({support::ErrorCode::Internal, "an exception of a type that is not known", ""});
  }
}

Result<void> checkPointers(std::initializer_list<Pointer> pointers) {
  for (const Pointer &pointer : pointers)
    if (!pointer.value)
      return missing(pointer.name);
  return {};
}

} // namespace deft::api

using namespace deft::api;

const char *deft_error_message(void) { return orOutOfMemory(lastError.message); }
const char *deft_error_detail(void) { return orOutOfMemory(lastError.error.message); }
const char *deft_error_field(void) { return lastError.isOutOfMemory ? "" : lastError.error.field.c_str(); }
const char *deft_error_hint(void) { return lastError.isOutOfMemory ? "" : lastError.error.hint.c_str(); }
const char *deft_error_text(void) { return orOutOfMemory(lastError.text); }

void deft_free(void *memory) { giveBack(memory); }

const char *deft_version(void) { return DEFT_VERSION; }

int32_t deft_has_compiler(void) {
#ifdef DEFT_HAS_COMPILER
  return 1;
#else
  return 0;
#endif
}
