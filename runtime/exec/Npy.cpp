#include "runtime/exec/Npy.h"

#include "compiler/support/AtomicFile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

/// A stranger's bytes as a message may hold them: few, and none that a terminal obeys.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMost ? result + "..." : result;
}

/// The text after `'key':` in the header, a Python dict of three known keys.
std::optional<std::string_view> valueOf(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos)
    return std::nullopt;
  std::string_view rest = header.substr(at + key.size());
  const std::size_t begin = rest.find_first_not_of(": ");
  if (begin == std::string_view::npos)
    return std::nullopt;
  return rest.substr(begin);
}

/// The length of a shape of one dimension, "(32,)"; none for others.
std::optional<std::size_t> lengthOf(std::string_view shape) {
  std::size_t length = 0;
  if (shape.empty() || shape[0] != '(')
    return std::nullopt;
  const auto [end, error] = std::from_chars(shape.data() + 1, shape.data() + shape.size(), length);
  if (error != std::errc() || !std::string_view(end, shape.data() + shape.size() - end).starts_with(",)"))
    return std::nullopt;
  return length;
}

template <typename T> std::vector<T> copyValues(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

} // namespace

Result<NpyArray> parseNpy(std::string_view bytes) {
  // Magic, version, then the header's length: 2 bytes in version 1, 4 in versions 2 and 3.
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 10 || !bytes.starts_with(kMagic))
    return wrong("not a .npy file");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    return wrong(".npy version " + std::to_string(version) + ", 1 to 3 can be read");
  const std::size_t headerBegin = version == 1 ? 10 : 12;
  if (bytes.size() < headerBegin)
    return wrong("the .npy file is cut off");
  std::size_t headerBytes = byte(8) | byte(9) << 8;
  if (version > 1)
    headerBytes |= byte(10) << 16 | byte(11) << 24;
  if (bytes.size() - headerBegin < headerBytes)
    return wrong("the .npy file is cut off");
  const std::string_view header = bytes.substr(headerBegin, headerBytes);
  const auto type = valueOf(header, "'descr'");
  const auto shape = valueOf(header, "'shape'");
  if (!type || !shape)
    return wrong("the .npy header lacks `descr` or `shape`");
  const bool isF32 = type->starts_with("'<f4'");
  if (!isF32 && !type->starts_with("'<i4'"))
    return wrong("the .npy array has type " + quoted(type->substr(0, type->find(','))) +
                     ", must be '<f4' or '<i4'",
                 "save it with .astype(numpy.float32) or .astype(numpy.int32)");
  const auto length = lengthOf(*shape);
  if (!length)
    return wrong("the .npy array has shape " + quoted(shape->substr(0, shape->find(')') + 1)) +
                 ", must have one dimension");
  const std::string_view data = bytes.substr(headerBegin + headerBytes);
  if (data.size() % 4 != 0 || data.size() / 4 != *length)
    return wrong("the .npy array holds " + std::to_string(data.size()) + " bytes, its shape says " +
                 std::to_string(*length) + " values of 4");
  NpyArray array;
  array.type = isF32 ? NpyArray::Type::F32 : NpyArray::Type::I32;
  if (isF32)
    array.f32 = copyValues<float>(data);
  else
    array.i32 = copyValues<std::int32_t>(data);
  return array;
}

Result<NpyArray> readNpyFile(const std::string &path) {
  const auto bytes = support::readFile(path, kMaxFileBytes);
  if (!bytes)
    return bytes.error();
  auto array = parseNpy(*bytes);
  if (!array)
    return wrong(path + ": " + array.error().message, array.error().hint);
  return array;
}

} // namespace deft::exec
