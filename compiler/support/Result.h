#pragma once

#include <string>
#include <utility>
#include <variant>

namespace deft::support {

/// The kind of an error. The numbers are the exit codes of `deftc` and the statuses of <deft/c/status.h>.
enum class ErrorCode {
  Diagnostics = 1, ///< the input is wrong: a spec, a tree, a package, a failed check
  Usage = 2,       ///< the call is wrong: an unknown option, a missing argument
  Environment = 3, ///< the machine lacks something: a GPU, NVRTC, a writable folder
  Internal = 70,   ///< our bug
};

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message; ///< lower case, no final period
  std::string hint;    ///< empty: none
  /// The argument of the API that the message begins with, and in it the wrong element: "bits[2][1]". Empty:
  /// there is none.
  std::string field = {};
};

/// A value or an Error. `Result<void>{}` is success.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T &value() & { return std::get<0>(state_); }
  const T &value() const & { return std::get<0>(state_); }
  T &&value() && { return std::get<0>(std::move(state_)); }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  const Error &error() const & { return std::get<1>(state_); }
  Error &&error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<T, Error> state_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error &error() const & { return std::get<1>(state_); }
  Error &&error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<std::monostate, Error> state_;
};

} // namespace deft::support
