#include "runtime/exec/NpyReader.h"

#include "compiler/support/OpenedFile.h"
#include "runtime/exec/NpyHeader.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

static_assert(std::endian::native == std::endian::little, "values are read as they lie in memory");

namespace {

Error cannotRead(const std::string &path, const std::string &why) {
  return {ErrorCode::Environment, "cannot read `" + path + "`: " + why, ""};
}

/// For the expected shape, which is trusted, not for the shape in the file.
long long valuesOf(const std::vector<long long> &lengths) {
  long long values = 1;
  for (const long long length : lengths)
    values *= length;
  return values;
}

Result<void> checkLike(const std::string &path, const NpyHeader &header, const NpyShape &wanted) {
  const auto wrong = [&](const std::string &is, const std::string &must, const std::string &hint) {
    return Error{ErrorCode::Diagnostics, "`" + path + "` " + is + ", must " + must, hint};
  };
  constexpr const char *kHowToSave = "save it with numpy.ascontiguousarray(a).astype('<f4')";
  if (header.type != "'<f4'")
    return wrong("holds values of type " + quotedNpy(header.type), "hold '<f4'", kHowToSave);
  if (header.isFortran)
    return wrong("is in Fortran order", "be in C order", kHowToSave);
  const auto lengths = lengthsOf(header.shape);
  if (!lengths || *lengths != wanted.lengths)
    return wrong("has shape " + quotedNpy(header.shape),
                 "have " + shapeText(wanted.lengths) + ": " + wanted.meaning, "");
  return {};
}

} // namespace

Result<NpyReader> NpyReader::open(const std::string &path, const NpyShape &shape) {
  constexpr std::size_t kMostHeader = std::size_t{1} << 16;
  NpyReader reader;
  reader.path_ = path;
  support::OpenedFile opened = support::openRegular(AT_FDCWD, path.c_str(), support::Links::Followed);
  if (!opened.fault.empty())
    return cannotRead(path, opened.fault);
  reader.file_.reset(::fdopen(opened.file.get(), "rb"));
  if (!reader.file_)
    return cannotRead(path, std::strerror(errno));
  opened.file.release();
  std::string head(kMostHeader, '\0');
  head.resize(std::fread(head.data(), 1, head.size(), reader.file_.get()));
  const auto header = parseNpyHeader(head);
  if (!header)
    return Error{ErrorCode::Diagnostics, "`" + path + "`: " + header.error().message, ""};
  if (auto like = checkLike(path, *header, shape); !like)
    return like.error();
  const auto bytes = static_cast<long long>(opened.info.st_size) - static_cast<long long>(header->dataBegin);
  const long long wanted = valuesOf(shape.lengths) * static_cast<long long>(sizeof(float));
  if (bytes != wanted)
    return Error{ErrorCode::Diagnostics,
                 "`" + path + "` holds " + std::to_string(bytes) + " bytes of values, its shape " +
                     shapeText(shape.lengths) + " says " + std::to_string(wanted),
                 ""};
  if (::fseeko(reader.file_.get(), static_cast<off_t>(header->dataBegin), SEEK_SET) != 0)
    return cannotRead(path, std::strerror(errno));
  return reader;
}

Result<void> NpyReader::read(std::span<float> values) {
  const std::size_t got = std::fread(values.data(), sizeof(float), values.size(), file_.get());
  return got == values.size() ? Result<void>() : cannotRead(path_, "it ends too early");
}

} // namespace deft::exec
