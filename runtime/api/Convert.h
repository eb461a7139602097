#pragma once

#include "compiler/support/Result.h"
#include "compiler/support/Unexpected.h"

#include <deft/result.hpp>

#include <exception>
#include <new>
#include <system_error>
#include <type_traits>

/// Between the library's own values and those of the public headers.
namespace deft::api {

inline Error toPublic(const support::Error &error) {
  ErrorCode code = ErrorCode::Internal;
  switch (error.code) {
  case support::ErrorCode::Diagnostics:
    code = ErrorCode::Diagnostics;
    break;
  case support::ErrorCode::Usage:
    code = ErrorCode::Usage;
    break;
  case support::ErrorCode::Environment:
    code = ErrorCode::Environment;
    break;
  case support::ErrorCode::Internal:
    break;
  }
  return {code, error.message, error.hint};
}

template <typename T> Result<T> toPublic(support::Result<T> &&result) {
  if constexpr (std::is_void_v<T>)
    return result ? Result<void>() : Result<void>(toPublic(result.error()));
  else
    return result ? Result<T>(std::move(*result)) : Result<T>(toPublic(result.error()));
}

inline Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// Runs `body`; memory that is not there, and what only a bug would throw, become errors: nothing leaves the
/// library as an exception.
template <typename Body> auto guarded(Body &&body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return Error{ErrorCode::Environment, "out of memory", ""};
  } catch (const std::system_error &error) { // a thread that cannot be started
    return Error{ErrorCode::Environment, std::string("the system refuses: ") + error.what(), ""};
  } catch (const std::exception &exception) {
    return toPublic(support::unexpected(exception));
  }
}

} // namespace deft::api
