#pragma once

#include "compiler/support/Result.h"
#include "runtime/api/Made.h"

#include <deft/c/status.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Every function of <deft/deft.h> uses these: no exception escapes, no null handle is dereferenced, and the
/// calling thread stores the error.
namespace deft::api {

/// An error of a call: one from the library's inside, and the argument that it concerns.
struct Error {
  support::ErrorCode code = support::ErrorCode::Internal;
  std::string message;    ///< follows the name of the field, if there is one
  std::string hint;       ///< how to fix it; may be empty
  std::string field = {}; ///< of the call or of a struct: "q", "deft_plan_options::workers"; may be empty
  bool isNull = false;    ///< an argument is missing: in C, the message names the call

  Error() = default;
  Error(support::Error error)
      : code(error.code), message(std::move(error.message)), hint(std::move(error.hint)),
        field(std::move(error.field)) {
    if (!field.empty())
      message.erase(0, field.size() + 1);
  }
  Error(support::ErrorCode of, std::string text, std::string toDo = "", std::string about = "")
      : code(of), message(std::move(text)), hint(std::move(toDo)), field(std::move(about)) {}
};

/// A value or an Error, made from the results of internal functions.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(support::Error error) : Result(Error(std::move(error))) {}
  Result(support::Result<T> result)
      : Result(result ? Result(std::move(*result)) : Result(Error(result.error()))) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &operator*() & { return std::get<0>(state_); }
  const T &operator*() const & { return std::get<0>(state_); }
  T &&operator*() && { return std::get<0>(std::move(state_)); }
  T *operator->() { return &std::get<0>(state_); }
  const T *operator->() const { return &std::get<0>(state_); }
  const Error &error() const { return std::get<1>(state_); }

private:
  std::variant<T, Error> state_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}
  Result(support::Error error) : state_(Error(std::move(error))) {}
  Result(const support::Result<void> &result) {
    if (!result)
      state_ = Error(result.error());
  }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error &error() const { return std::get<1>(state_); }

private:
  std::variant<std::monostate, Error> state_;
};

/// An error of a call that concerns no single argument.
inline Error usage(std::string message, std::string hint = "") {
  return {support::ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// A wrong argument, or a wrong field of a struct. `detail` follows its name: "is 2000, not between 0 and
/// 1024". Each language writes the name in its own way, so `detail` and `hint` must not contain names of an
/// API.
inline Error wrong(std::string field, std::string detail, std::string hint = "") {
  return {support::ErrorCode::Usage, std::move(detail), std::move(hint), std::move(field)};
}

/// A missing argument.
inline Error missing(const char *name) {
  Error error = wrong(name, "is null");
  error.isNull = true;
  return error;
}

/// Stores the error of a call of this name for the calling thread and returns its code.
deft_status fail(const Error &error, const char *function = "") noexcept;
/// Turns the current exception into an error, stores it for the calling thread and returns its code.
deft_status failOfException() noexcept;

/// An argument that must not be null.
struct Pointer {
  const char *name;
  const void *value;
};
Result<void> checkPointers(std::initializer_list<Pointer> pointers);

/// Checks an array of `count` values.
inline Result<void> checkArray(const char *name, const void *values, std::size_t count) {
  return values || count == 0 ? Result<void>() : missing(name);
}

/// The name of the function that calls the function with this default.
#define DEFT_CALLER const char *function = __builtin_FUNCTION()

/// A function that returns a status. `body` returns a Result<void>.
template <typename Body>
deft_status call(std::initializer_list<Pointer> needed, Body &&body, DEFT_CALLER) noexcept {
  try {
    Result<void> done = checkPointers(needed);
    if (done)
      done = body();
    return done ? DEFT_OK : fail(done.error(), function);
  } catch (...) {
    return failOfException();
  }
}

/// Output pointers of a call are null until it succeeds.
template <typename T> void clear(T **to) noexcept {
  if (to)
    *to = nullptr;
}

/// A function that makes a handle; `body` returns a Result of a unique_ptr. The handle is null after errors.
template <typename Handle, typename Body>
deft_status make(std::initializer_list<Pointer> needed, Handle **made, Body &&body, DEFT_CALLER) noexcept {
  clear(made);
  const auto makes = [&]() -> Result<void> {
    if (!made)
      return missing("the place for what is made");
    Result<std::unique_ptr<Handle>> value = body();
    if (!value)
      return value.error();
    *made = value->release();
    return {};
  };
  return call(needed, makes, function);
}

/// A function that makes a text; `body` returns a Result of a string. After an error the text is null.
template <typename Body>
deft_status giveText(std::initializer_list<Pointer> needed, char **text, Body &&body, DEFT_CALLER) noexcept {
  clear(text);
  const auto makes = [&]() -> Result<void> {
    const Result<std::string> made = body();
    if (!made)
      return made.error();
    *text = makeText(*made);
    return {};
  };
  return call(needed, makes, function);
}

/// A function that returns a value of its handle, or `otherwise` if the handle is null.
template <typename Value, typename Body>
Value ask(Pointer handle, Value otherwise, Body &&body, DEFT_CALLER) noexcept {
  Value value = otherwise;
  const auto asks = [&]() -> Result<void> {
    value = static_cast<Value>(body());
    return {};
  };
  (void)call({handle}, asks, function);
  return value;
}

/// Passes on a result, internal or of the API. `to` may be null if the caller does not need it.
template <typename Given, typename To> Result<void> give(const Given &result, To *to) {
  if (!result)
    return result.error();
  if (to)
    *to = *result;
  return {};
}

/// Makes an array for the caller, with a C struct for each value from `convert`. The memory is not null, even
/// without values.
template <typename From, typename To, typename Convert>
void giveArray(const std::vector<From> &values, To **to, std::size_t *count, Convert &&convert) {
  Made<To> array(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    array[i] = convert(values[i]);
  *count = values.size();
  *to = array.release();
}
template <typename From, typename To, typename Convert>
Result<void> giveArray(const support::Result<std::vector<From>> &values, To **to, std::size_t *count,
                       Convert &&convert) {
  if (!values)
    return values.error();
  giveArray(*values, to, count, std::forward<Convert>(convert));
  return {};
}

/// A text that a caller may omit.
inline std::string textOr(const char *text, const char *otherwise) { return text ? text : otherwise; }

} // namespace deft::api
