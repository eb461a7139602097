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

/// What every function of <deft/deft.h> goes through: no exception passes, no null handle is followed, and
/// the calling thread keeps what went wrong.
namespace deft::api {

/// What a call finds wrong: an error of the inside, and the argument that it is about.
struct Error {
  support::ErrorCode code = support::ErrorCode::Internal;
  std::string message;    ///< follows the name of the field where there is one
  std::string hint;       ///< what to do about it; may be empty
  std::string field = {}; ///< of the call or of a struct: "q", "deft_plan_options::workers"; may be empty
  bool isNull = false;    ///< an argument is missing: in C the message names the call

  Error() = default;
  Error(support::Error error)
      : code(error.code), message(std::move(error.message)), hint(std::move(error.hint)) {}
  Error(support::ErrorCode of, std::string text, std::string toDo = "", std::string about = "")
      : code(of), message(std::move(text)), hint(std::move(toDo)), field(std::move(about)) {}
};

/// A value or an Error, made of what the inside gives.
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

/// A call that is wrong, in no single argument.
inline Error usage(std::string message, std::string hint = "") {
  return {support::ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// A wrong argument, or a wrong field of a struct. `detail` follows its name: "is 2000, not between 0 and
/// 1024". Each language writes the name as it has it, so neither `detail` nor `hint` names anything of an
/// API.
inline Error wrong(std::string field, std::string detail, std::string hint = "") {
  return {support::ErrorCode::Usage, std::move(detail), std::move(hint), std::move(field)};
}

/// An argument that is missing.
inline Error missing(const char *name) {
  Error error = wrong(name, "is null");
  error.isNull = true;
  return error;
}

/// Keeps the error, of a call of this name, for the calling thread and gives its code.
deft_status fail(const Error &error, const char *function = "") noexcept;
/// Makes an error of the exception that is being handled, keeps it for the calling thread and gives its code.
deft_status failOfException() noexcept;

/// An argument that may not be null.
struct Pointer {
  const char *name;
  const void *value;
};
Result<void> checkPointers(std::initializer_list<Pointer> pointers);

/// An array of so many values.
inline Result<void> checkArray(const char *name, const void *values, std::size_t count) {
  return values || count == 0 ? Result<void>() : missing(name);
}

/// The name of the function that calls the one with this default.
#define DEFT_CALLER const char *function = __builtin_FUNCTION()

/// A function that gives a status. `body` gives a Result<void>.
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

/// What a call hands over through a pointer of its caller is null until it is made.
template <typename T> void clear(T **to) noexcept {
  if (to)
    *to = nullptr;
}

/// A function that makes a handle; `body` gives a Result of a unique_ptr. After an error the handle is null.
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

/// A function that makes a text; `body` gives a Result of a string. After an error the text is null.
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

/// A function that gives a value of its handle, and `otherwise` where the handle is null.
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

/// Hands a result on, of the inside or of the API. A caller who does not want it passes null.
template <typename Given, typename To> Result<void> give(const Given &result, To *to) {
  if (!result)
    return result.error();
  if (to)
    *to = *result;
  return {};
}

/// An array of a C struct for each value, made by `convert`, for the caller. Memory that is not null, also
/// for no values.
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

/// A text that a caller may leave out.
inline std::string textOr(const char *text, const char *otherwise) { return text ? text : otherwise; }

} // namespace deft::api
