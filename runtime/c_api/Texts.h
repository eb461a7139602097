#pragma once

#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Made.h"

#include <string>

/// Functions that give a text.
namespace deft::c {

/// A function that makes a text for its caller out of what `body` gives, a Result. `needed` names `text`,
/// too. After an error it is null.
template <typename Body>
deft_status giveText(const char *function, std::initializer_list<Pointer> needed, char **text,
                     Body &&body) noexcept {
  clearPlace(text);
  return call(function, needed, [&]() -> Result<void> {
    const Result<std::string> made = body();
    if (!made)
      return made.error();
    *text = makeText(*made);
    return {};
  });
}

} // namespace deft::c
