#include "runtime/exec/Npy.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/exec/NpyHeader.h"

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

template <typename T> std::vector<T> copyValues(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char *>(values.data()), values.size() * sizeof(T));
  return values;
}

} // namespace

Result<NpyArray> parseNpy(std::string_view bytes) {
  const auto header = parseNpyHeader(bytes);
  if (!header)
    return header.error();
  const bool isF32 = header->type == "'<f4'";
  if (!isF32 && header->type != "'<i4'")
    return wrong("the .npy array has type " + quotedNpy(header->type) + ", must be '<f4' or '<i4'",
                 "save it with .astype(numpy.float32) or .astype(numpy.int32)");
  const auto lengths = lengthsOf(header->shape);
  if (!lengths || lengths->size() != 1)
    return wrong("the .npy array has shape " + quotedNpy(header->shape) + ", must have one dimension");
  const std::string_view data = bytes.substr(header->dataBegin);
  const auto length = static_cast<std::size_t>(lengths->front());
  if (data.size() % 4 != 0 || data.size() / 4 != length)
    return wrong("the .npy array holds " + std::to_string(data.size()) + " bytes, its shape says " +
                 std::to_string(length) + " values of 4");
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
