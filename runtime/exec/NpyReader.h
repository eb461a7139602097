#pragma once

#include "compiler/support/Result.h"

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// The expected shape of an array: its lengths, and their meanings.
struct NpyShape {
  std::vector<long long> lengths;
  std::string meaning; ///< "queries, query heads, head dim"
};

/// Reads an array of float32 with a known shape from a file of numpy.save, piece by piece, so the whole array
/// is never in memory. NpyWriter writes such files.
class NpyReader {
public:
  /// The error names the file, its actual shape and the expected one.
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
