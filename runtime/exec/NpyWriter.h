#pragma once

#include "compiler/support/Result.h"

#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// An array of float32 on disk as numpy.load reads it, written piece by piece, so that none is held as a
/// whole.
class NpyWriter {
public:
  static support::Result<NpyWriter> create(const std::string &path, const std::vector<long long> &shape);

  /// In C order. A failure to write is kept for close().
  void append(std::span<const float> values);

  /// An error where the file could not be written, or has not as many values as its shape says.
  support::Result<void> close();

private:
  std::string path_;
  std::ofstream file_;
  long long missing_ = 0;
};

/// The header of version 1.0: `<f4`, C order, padded so that the values begin at a multiple of 64.
std::string npyHeader(const std::vector<long long> &shape);

} // namespace deft::exec
