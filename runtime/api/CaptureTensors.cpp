#include "runtime/api/StepCapture.h"
#include "runtime/exec/Half.h"
#include "runtime/exec/NpyWriter.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

/// q, K and V of a captured step, as `deftc run --inputs` reads them.
namespace deft::api {

namespace {

constexpr int kParamBytes = 4;
/// Tokens of a contiguous cache that are read at once.
constexpr int kMostTokens = 256;

/// Tokens of a node that lie in one page, or side by side.
struct Piece {
  long long page = 0; ///< -1: no page is known, so the tokens are written as zeros
  int first = 0;      ///< slot in the page; of a contiguous cache the place
  int count = 0;
};

/// In the order of the nodes' tokens.
template <typename Visit> Result<void> forEachPiece(const TensorsOfStep &step, Visit &&visit) {
  const int pageSize = step.run.variant().cache.pageSize;
  for (const tree::Node &node : step.tree.nodes())
    for (int at = node.location, end = node.location + node.tokens; at < end;) {
      Piece piece;
      if (pageSize == 0) {
        piece = {0, at, std::min(end - at, kMostTokens)};
      } else {
        const auto entry = std::lower_bound(step.entries.begin(), step.entries.end(), at / pageSize);
        piece = {step.pages[static_cast<std::size_t>(entry - step.entries.begin())], at % pageSize,
                 std::min(end - at, pageSize - at % pageSize)};
      }
      if (auto visited = visit(piece); !visited)
        return visited;
      at += piece.count;
    }
  return {};
}

/// Columns of a tensor of tokens.
struct CacheColumns {
  const void *memory;
  abi::CacheLayout layout;
  int columns;
};

class CacheFile {
public:
  CacheFile(const TensorsOfStep &step, std::vector<CacheColumns> parts, spec::DType dtype)
      : step_(step), parts_(std::move(parts)), dtype_(dtype) {
    for (const CacheColumns &part : parts_)
      columns_ += part.columns;
  }

  Result<void> write(const std::string &path) {
    const int heads = step_.run.variant().kvHeads;
    auto file = exec::NpyWriter::create(path, {step_.tree.tokens(), heads, columns_});
    if (!file)
      return file.error();
    auto written = forEachPiece(step_, [&](const Piece &piece) -> Result<void> {
      values_.assign(static_cast<std::size_t>(piece.count) * heads * columns_, 0);
      int column = 0;
      for (const CacheColumns &part : parts_) {
        if (piece.page >= 0)
          if (auto read = take(part, piece, column); !read)
            return read;
        column += part.columns;
      }
      file->append(values_);
      return {};
    });
    return written ? Result<void>(file->close()) : written;
  }

private:
  Result<void> take(const CacheColumns &part, const Piece &piece, int column) {
    const int heads = step_.run.variant().kvHeads, bytes = spec::elementBytes(dtype_);
    const abi::CacheLayout &layout = part.layout;
    const long long first = piece.page * layout.pageStride + piece.first * layout.tokenStride;
    const long long span =
        (piece.count - 1) * layout.tokenStride + (heads - 1) * layout.headStride + part.columns;
    memory_.resize(static_cast<std::size_t>(span * bytes));
    const auto *const from = static_cast<const std::byte *>(part.memory) + first * bytes;
    if (auto read = step_.reader.read(from, memory_.size(), memory_.data()); !read)
      return read;
    for (int t = 0; t < piece.count; ++t)
      for (int head = 0; head < heads; ++head)
        for (int d = 0; d < part.columns; ++d)
          values_[(static_cast<std::size_t>(t) * heads + head) * columns_ + column + d] = exec::toFloat(
              exec::bitsAt(memory_.data(), t * layout.tokenStride + head * layout.headStride + d, dtype_),
              dtype_);
    return {};
  }

  const TensorsOfStep &step_;
  std::vector<CacheColumns> parts_;
  spec::DType dtype_;
  int columns_ = 0;
  std::vector<std::byte> memory_;
  std::vector<float> values_;
};

Result<void> writeQueries(const TensorsOfStep &step, const std::string &path) {
  const spec::Variant &variant = step.run.variant();
  const spec::TensorType &type = variant.tensors.q;
  const auto queries = static_cast<long long>(step.tree.queries().size());
  auto file = exec::NpyWriter::create(path, {queries, variant.queryHeads, type.dim});
  if (!file)
    return file.error();
  const int columns = variant.queryHeads * type.dim, bytes = spec::elementBytes(type.dtype);
  const long long stride = exec::rowStrideOf(step.run.facts.qStride, variant, type);
  std::vector<std::byte> memory(static_cast<std::size_t>(columns) * bytes);
  std::vector<float> values(static_cast<std::size_t>(columns));
  for (long long query = 0; query < queries; ++query) {
    const auto *const from = static_cast<const std::byte *>(step.run.q) + query * stride * bytes;
    if (auto read = step.reader.read(from, memory.size(), memory.data()); !read)
      return read;
    for (int d = 0; d < columns; ++d)
      values[static_cast<std::size_t>(d)] =
          exec::toFloat(exec::bitsAt(memory.data(), d, type.dtype), type.dtype);
    file->append(values);
  }
  return file->close();
}

} // namespace

std::int64_t TensorsOfStep::bytes() const {
  const spec::Variant &variant = run.variant();
  const spec::Tensors &tensors = variant.tensors;
  const std::int64_t token = std::int64_t{variant.kvHeads} * (tensors.k.dim + tensors.v.dim);
  return 4 * (tree.tokens() * token + std::ssize(tree.queries()) * variant.queryHeads * tensors.q.dim);
}

Result<std::int64_t> TensorsOfStep::writeTo(const std::string &folder) const {
  const spec::Tensors &tensors = run.variant().tensors;
  const exec::CacheLayouts &cache = run.facts.cache;
  std::vector<CacheColumns> keys{{run.k, cache.k, tensors.k.dim}}, values{{run.v, cache.v, tensors.v.dim}};
  if (tensors.valueInKey) {
    values = {{run.k, cache.k, tensors.v.dim}};
    if (run.v) // the columns behind V's lie apart
      keys = {{run.k, cache.k, tensors.v.dim}, {run.v, cache.v, tensors.k.dim - tensors.v.dim}};
  }
  if (auto written = writeQueries(*this, folder + "/q.npy"); !written)
    return written.error();
  if (auto written = CacheFile(*this, keys, tensors.k.dtype).write(folder + "/k.npy"); !written)
    return written.error();
  if (auto written = CacheFile(*this, values, tensors.v.dtype).write(folder + "/v.npy"); !written)
    return written.error();
  std::int64_t bytes = 0;
  for (const auto &file : std::filesystem::directory_iterator(folder))
    bytes += static_cast<std::int64_t>(file.file_size());
  return bytes;
}

Result<void> TensorsOfStep::readTokenParam(const void *array, int each, void *to) const {
  const int pageSize = run.variant().cache.pageSize;
  auto *at = static_cast<std::byte *>(to);
  return forEachPiece(*this, [&](const Piece &piece) -> Result<void> {
    const std::size_t bytes = static_cast<std::size_t>(piece.count) * each * kParamBytes;
    std::byte *const here = at;
    at += bytes;
    if (piece.page < 0)
      return {};
    const long long slot = piece.page * pageSize + piece.first;
    return reader.read(static_cast<const std::byte *>(array) + slot * each * kParamBytes, bytes, here);
  });
}

} // namespace deft::api
