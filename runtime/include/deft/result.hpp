#pragma once

#include <deft/export.hpp>

#include <exception>
#include <string>
#include <utility>
#include <variant>

/// Errors are values: no function of the library prints, exits or throws for a reason of its own.
namespace deft {

enum class ErrorCode {
  Diagnostics, ///< the input is wrong: a spec, a tree, a package
  Usage,       ///< the call is wrong: a missing buffer, an unknown parameter, a plan of an older tree
  Environment, ///< the machine or the build lacks something: the compiler, memory, a processor feature
  Internal,    ///< a bug of the library
};

struct Error {
  ErrorCode code = ErrorCode::Internal;
  /// Lower case, without a final period. Of a wrong spec: all findings as `deftc check` prints them, each
  /// with its place and the line it is about, in several lines.
  std::string message;
  std::string hint; ///< what to do about it; may be empty

  std::string text() const { return hint.empty() ? message : message + "\n  = hint: " + hint; }
};

/// Thrown only by Result::value() and operator*, and only where there is no value.
class BadResult : public std::exception {
public:
  explicit BadResult(Error error) : error_(std::move(error)), text_(error_.text()) {}
  const char *what() const noexcept override { return text_.c_str(); }
  const Error &error() const { return error_; }

private:
  Error error_;
  std::string text_;
};

/// A value or an Error:
///
///   if (auto plan = deft::Plan::make(attention, tree))
///     use(*plan);
///   else
///     log(plan.error().text());
///
/// A program that has nothing better to do than stop writes `.value()`, which throws BadResult.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T &value() & {
    require();
    return *std::get_if<0>(&state_);
  }
  const T &value() const & {
    require();
    return *std::get_if<0>(&state_);
  }
  /// By value, so that `for (x : call().value())` holds what it walks over.
  T value() && {
    require();
    return std::move(*std::get_if<0>(&state_));
  }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  /// Only where ok() is false.
  const Error &error() const { return std::get<1>(state_); }

private:
  void require() const {
    if (!ok())
      throw BadResult(error());
  }
  std::variant<T, Error> state_;
};

/// Done, or an Error.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (!ok())
      throw BadResult(error());
  }
  const Error &error() const { return std::get<1>(state_); }

private:
  std::variant<std::monostate, Error> state_;
};

} // namespace deft
