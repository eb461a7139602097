#pragma once

#include <deft/c/status.h>

#include <cctype>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Errors are values: no function of the library prints, exits or throws.
namespace deft {

enum class ErrorCode : deft_status {
  Diagnostics = DEFT_DIAGNOSTICS, ///< the input is wrong: a spec, a tree, a package
  Usage = DEFT_USAGE, ///< the call is wrong: a missing buffer, an unknown parameter, a plan of an older tree
  Environment = DEFT_ENVIRONMENT, ///< the machine or the build lacks something: the compiler, memory
  Internal = DEFT_INTERNAL,       ///< a bug of the library
};

struct Error {
  ErrorCode code = ErrorCode::Internal;
  /// Lower case, without a final period. For a wrong spec: all findings in several lines, as `deftc check`
  /// prints them, each with its place and the source line.
  std::string message;
  std::string hint; ///< a remedy; may be empty
  /// The wrong argument or member, with which the message begins: "PlanOptions::workers", "q". Empty if there
  /// is no single one.
  std::string field = {};

  std::string text() const { return hint.empty() ? message : message + "\n  = hint: " + hint; }
};

/// Thrown only by Result::value() and operator*, and only if there is no value.
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
/// A program that can only stop on an error writes `.value()`, which throws BadResult.
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
  /// Returns by value, so that the range of `for (x : call().value())` stays alive.
  T value() && {
    require();
    return std::move(*std::get_if<0>(&state_));
  }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  /// Only if ok() is false.
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

/// Turns calls of <deft/deft.h> into values; for the other headers in this folder.
namespace detail {

/// The C++ form of a C name: "deft_plan_options::chunk_tokens" becomes PlanOptions::chunkTokens. RunSettings
/// is the struct of C.
inline std::string nameOfC(const std::string &name) {
  if (const std::string own = "deft_run_settings::"; name.starts_with(own))
    return "RunSettings::" + name.substr(own.size());
  const std::string prefix = "deft_";
  const bool isStruct = name.starts_with(prefix);
  std::string result;
  bool isUpper = isStruct;
  for (std::size_t i = isStruct ? prefix.size() : 0; i < name.size(); ++i) {
    if (name[i] == '_') {
      isUpper = true;
    } else {
      result += isUpper ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[i]))) : name[i];
      isUpper = false;
    }
  }
  return result;
}

/// The error of the thread's last call, which returned this status.
inline Error errorOf(deft_status status) {
  const std::string field = nameOfC(deft_error_field());
  return {static_cast<ErrorCode>(status), (field.empty() ? "" : field + " ") + deft_error_detail(),
          deft_error_hint(), field};
}

inline Result<void> done(deft_status status) { return status == DEFT_OK ? Result<void>() : errorOf(status); }

/// A value that a call fills through a pointer: `call` gets it and gives the status.
template <typename T, typename Call> Result<T> filled(Call &&call) {
  T value{};
  const deft_status status = call(&value);
  return status == DEFT_OK ? Result<T>(value) : errorOf(status);
}

/// As filled(), for a struct with a size. Fails only for a handle that was moved from: all fields are 0.
template <typename T, typename Call> T factsOf(Call &&call) {
  T value{};
  value.size = sizeof value;
  (void)call(&value);
  return value;
}

template <auto Destroy> struct Destroyer {
  template <typename Handle> void operator()(Handle *handle) const { Destroy(handle); }
};
/// A handle of the library; its function destroys it.
template <typename Handle, auto Destroy> using Owned = std::unique_ptr<Handle, Destroyer<Destroy>>;

/// An object of C++ around the handle that `call` makes.
template <typename Object, typename Handle, typename Call> Result<Object> made(Call &&call) {
  const auto handle = filled<Handle *>(call);
  return handle ? Result<Object>(Object(*handle)) : handle.error();
}

/// A text that a call allocates for the caller.
template <typename Call> Result<std::string> text(Call &&call) {
  const auto made = filled<char *>(call);
  if (!made)
    return made.error();
  const Owned<char, deft_free> owned(*made);
  return std::string(*made);
}

/// An array that a call allocates for the caller: `call` gets pointers for the array and its count.
template <typename T, typename OfC, typename Call, typename Convert>
Result<std::vector<T>> array(Call &&call, Convert &&convert) {
  OfC *values = nullptr;
  std::size_t count = 0;
  if (const deft_status status = call(&values, &count); status != DEFT_OK)
    return errorOf(status);
  const Owned<OfC, deft_free> owned(values);
  std::vector<T> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(convert(values[i]));
  return result;
}

} // namespace detail

} // namespace deft
