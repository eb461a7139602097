#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Dims.h"
#include "runtime/api/Overlap.h"
#include "runtime/api/RunPlace.h"

#include <deft/c/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// One tensor of a caller, and where tensors may lie beside each other.
namespace deft::api {

/// A dimension that a tensor must have; of size -1: any.
struct Dimension {
  const char *name = "";
  std::int64_t size = 0;
};
using Dimensions = Dims<Dimension>;

constexpr std::int64_t kAny = -1;
/// A tensor's own first dimension may be of this size, where nobody says how many entries there are.
constexpr std::int64_t kUnsaid = -1;

/// A tensor that is as it must be.
struct Checked {
  void *data = nullptr;
  std::int64_t elementBytes = 0;
  Sizes shape;
  Sizes strides; ///< of dimensions with one element: as if it were packed

  std::optional<std::int64_t> count() const {
    return shape[0] == kUnsaid ? std::nullopt : std::optional(shape[0]);
  }
};

/// "[2, 32, 128]"
std::string listText(const Sizes &values);

/// Looks at tensors. `taker` names for errors who takes them.
class TensorCheck {
public:
  TensorCheck(const RunPlace &place, std::string taker) : place_(place), taker_(std::move(taker)) {}

  /// `of` follows the name: " of state 1".
  Result<Checked> check(const char *name, const deft_tensor *given, deft_dtype dtype,
                        const Dimensions &dimensions, const std::string &of = "") const;
  /// As check() does, and that the elements lie side by side.
  Result<Checked> checkPacked(const char *name, const deft_tensor *given, deft_dtype dtype,
                              const Dimensions &dimensions, const std::string &of = "") const;
  /// As check() does, and that the elements of each entry of the first dimension lie side by side; such rows
  /// may be any distance apart that keeps them from overlapping.
  Result<Checked> checkRows(const char *name, const deft_tensor *given, deft_dtype dtype,
                            const Dimensions &dimensions) const;

private:
  RunPlace place_;
  std::string taker_;
};

/// What is read and written at once has to lie apart.
class Memory {
public:
  void reads(const char *name, const Checked &tensor) { add(name, tensor, false); }
  void writes(const char *name, const Checked &tensor) { add(name, tensor, true); }

  Result<void> checkApart() const;

private:
  struct Named {
    const char *name = "";
    bool isWritten = false;
    Extent extent;
  };
  class List { // of the seven tensors that a run has at most
  public:
    void push(const Named &named) { values_[count_++] = named; }
    std::size_t size() const { return count_; }
    const Named &operator[](std::size_t index) const { return values_[index]; }

  private:
    std::array<Named, 7> values_;
    std::size_t count_ = 0;
  };

  /// The reach of a tensor with an unknown number of entries is unknown.
  void add(const char *name, const Checked &tensor, bool isWritten);

  List tensors_;
};

} // namespace deft::api
