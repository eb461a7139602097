#pragma once

#include <deft/c/status.h>
#include <deft/result.hpp>

#include <initializer_list>
#include <utility>

/// What every function of <deft/deft.h> goes through: no exception passes, no null handle is followed, and
/// what went wrong is kept for the calling thread.
namespace deft::c {

inline Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// Keeps the error for the calling thread and gives its code.
deft_status fail(const Error &error) noexcept;
/// Makes an error of the exception that is being handled, keeps it for the calling thread and gives its code.
deft_status failOfException() noexcept;

/// An argument that may not be null.
struct Pointer {
  const char *name;
  const void *value;
};
Result<void> checkPointers(const char *function, std::initializer_list<Pointer> pointers);

/// A function that gives a status. `body` gives a Result<void>.
template <typename Body>
deft_status call(const char *function, std::initializer_list<Pointer> needed, Body &&body) noexcept {
  try {
    Result<void> done = checkPointers(function, needed);
    if (done)
      done = body();
    return done ? DEFT_OK : fail(done.error());
  } catch (...) {
    return failOfException();
  }
}

/// What a call hands over in a place of its caller's is null until it is made. A place that is missing is
/// what checkPointers() speaks of.
template <typename T> void clearPlace(T **place) noexcept {
  if (place)
    *place = nullptr;
}

/// A function that makes a handle out of what `body` gives, a Result. After an error the handle is null.
template <typename Handle, typename Body>
deft_status make(const char *function, std::initializer_list<Pointer> needed, Handle **made,
                 Body &&body) noexcept {
  clearPlace(made);
  return call(function, needed, [&]() -> Result<void> {
    if (auto checked = checkPointers(function, {{"the place for what is made", made}}); !checked)
      return checked;
    auto value = body();
    if (!value)
      return value.error();
    *made = new Handle{std::move(*value)}; // NOLINT(bugprone-unhandled-exception-at-new): call() catches it
    return {};
  });
}

/// A function that gives a value of its handle, and `otherwise` where the handle is null.
template <typename Value, typename Body>
Value ask(const char *function, Pointer handle, Value otherwise, Body &&body) noexcept {
  Value value = otherwise;
  call(function, {handle}, [&]() -> Result<void> {
    value = body();
    return {};
  });
  return value;
}

/// Hands a result on. A caller who does not want it gives no place.
template <typename From, typename To> Result<void> give(const Result<From> &result, To *to) {
  if (!result)
    return result.error();
  if (to)
    *to = *result;
  return {};
}

} // namespace deft::c
