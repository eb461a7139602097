#include "runtime/exec/NpyWriter.h"

#include "runtime/exec/NpyHeader.h"

#include <bit>
#include <cerrno>
#include <cstring>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

std::string npyHeader(const std::vector<long long> &shape) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shapeText(shape) + ", }";
  const std::size_t before = 6 + 2 + 2; // magic, version, length of the text
  const std::size_t whole = (before + text.size() + 1 + 63) / 64 * 64;
  text.append(whole - before - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Result<NpyWriter> NpyWriter::create(const std::string &path, const std::vector<long long> &shape) {
  NpyWriter writer;
  writer.path_ = path;
  writer.missing_ = 1;
  for (const long long length : shape)
    writer.missing_ *= length;
  writer.file_.open(path, std::ios::binary | std::ios::trunc);
  if (!writer.file_)
    return Error{ErrorCode::Environment, "cannot write `" + path + "`: " + std::strerror(errno), ""};
  const std::string header = npyHeader(shape);
  writer.file_.write(header.data(), static_cast<std::streamsize>(header.size()));
  return writer;
}

void NpyWriter::append(std::span<const float> values) {
  missing_ -= static_cast<long long>(values.size());
  file_.write(reinterpret_cast<const char *>(values.data()),
              static_cast<std::streamsize>(values.size_bytes()));
}

Result<void> NpyWriter::close() {
  file_.close();
  if (!file_)
    return Error{ErrorCode::Environment, "cannot write `" + path_ + "`", "is the disk full?"};
  if (missing_ != 0)
    return Error{ErrorCode::Internal, "`" + path_ + "` lacks " + std::to_string(missing_) + " values", ""};
  return {};
}

} // namespace deft::exec
