#pragma once

#include <cmath>

namespace deft::bench {

class GeometricMean {
public:
  void add(double value) {
    logSum_ += std::log(value);
    ++count_;
  }
  int count() const { return count_; }
  double value() const { return count_ > 0 ? std::exp(logSum_ / count_) : 0; } ///< 0: no values

private:
  double logSum_ = 0;
  int count_ = 0;
};

} // namespace deft::bench
