#include "runtime/exec/NpyHeader.h"

#include <algorithm>
#include <charconv>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(std::string message) { return Error{ErrorCode::Diagnostics, std::move(message), ""}; }

/// The text after `'key':` in the header.
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

} // namespace

std::string quotedNpy(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMost ? result + "..." : result;
}

Result<NpyHeader> parseNpyHeader(std::string_view bytes) {
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
  const auto type = valueOf(header, "'descr'"), shape = valueOf(header, "'shape'"),
             order = valueOf(header, "'fortran_order'");
  if (!type || !shape)
    return wrong("the .npy header lacks `descr` or `shape`");
  return NpyHeader{std::string(type->substr(0, type->find(','))),
                   std::string(shape->substr(0, shape->find(')') + 1)), order && order->starts_with("True"),
                   headerBegin + headerBytes};
}

std::optional<std::vector<long long>> lengthsOf(std::string_view shape) {
  if (!shape.starts_with('(') || !shape.ends_with(')'))
    return std::nullopt;
  std::vector<long long> lengths;
  const char *at = shape.data() + 1, *const last = shape.data() + shape.size() - 1;
  while (at < last) {
    long long length = 0;
    const auto [end, error] = std::from_chars(at, last, length);
    // A shape with one dimension must end with a comma: otherwise it is not a tuple.
    if (error != std::errc() || length < 0 || (end < last && *end != ',') || (end == last && lengths.empty()))
      return std::nullopt;
    lengths.push_back(length);
    at = end + (end < last);
    while (at < last && *at == ' ')
      ++at;
  }
  return lengths;
}

std::string shapeText(const std::vector<long long> &lengths) {
  std::string text = "(";
  for (std::size_t i = 0; i < lengths.size(); ++i)
    text += std::to_string(lengths[i]) + (i + 1 < lengths.size() ? ", " : lengths.size() == 1 ? "," : "");
  return text + ")";
}

} // namespace deft::exec
