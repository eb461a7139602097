#pragma once

#include "compiler/support/Result.h"

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// What an array must be like: its lengths, and what each of them counts.
struct NpyShape {
  std::vector<long long> lengths;
  std::string meaning; ///< "queries, query heads, head dim"
};

/// An array of float32 on disk as numpy.save writes it, of a shape that is known, read piece by piece, so
/// that none is held as a whole. NpyWriter is the way there.
class NpyReader {
public:
  /// An error that names the file, what it holds and what it should.
  static support::Result<NpyReader> open(const std::string &path, const NpyShape &shape);

  /// The next values, in C order.
  support::Result<void> read(std::span<float> values);

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

} // namespace deft::exec
