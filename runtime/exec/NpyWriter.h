#pragma once

#include "compiler/support/Result.h"

#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// Writes an array of float32 to a file for numpy.load, piece by piece, so the whole array is never in
/// memory.
class NpyWriter {
public:
  static support::Result<NpyWriter> create(const std::string &path, const std::vector<long long> &shape);

  /// Appends values in C order. close() reports a failure to write.
  void append(std::span<const float> values);

  /// An error if the file could not be written, or has fewer or more values than its shape says.
  support::Result<void> close();

private:
  std::string path_;
  std::ofstream file_;
  long long missing_ = 0;
};

/// The header of version 1.0: `<f4`, C order, padded so that the values begin at a multiple of 64.
std::string npyHeader(const std::vector<long long> &shape);

} // namespace deft::exec
