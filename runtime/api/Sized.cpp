#include "runtime/api/Sized.h"

namespace deft::api {

namespace {

/// Far more than any struct has: what was not set is mostly beyond.
constexpr std::size_t kMostBytes = 4096;

} // namespace

Result<void> checkSize(const char *type, std::size_t size) {
  if (size >= sizeof(size) && size <= kMostBytes && size % alignof(std::size_t) == 0)
    return {};
  return wrong(std::string(type) + "::size", "is " + std::to_string(size) + ", which no version of it has",
               "set it to sizeof(" + std::string(type) + ")");
}

Result<void> checkUnknown(const char *type, const void *given, std::size_t size, std::size_t known) {
  const auto *bytes = static_cast<const char *>(given);
  for (std::size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      return wrong(type,
                   "has a value at byte " + std::to_string(i) + " of " + std::to_string(size) +
                       ", this library knows its first " + std::to_string(known),
                   "the program was compiled for a newer version than " + std::string(deft_version()));
  return {};
}

} // namespace deft::api
