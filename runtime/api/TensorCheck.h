#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Dims.h"
#include "runtime/api/Overlap.h"
#include "runtime/api/RunDevice.h"

#include <deft/c/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// Checks a caller's tensors, and that they do not overlap.
namespace deft::api {

/// A required dimension of a tensor; size -1: any.
struct Dimension {
  const char *name = "";
  std::int64_t size = 0;
};
using Dimensions = Dims<Dimension>;

constexpr std::int64_t kAny = -1;
/// A tensor's first dimension may have this size if the number of entries is unknown.
constexpr std::int64_t kUnsaid = -1;

/// A tensor that passed the checks.
struct Checked {
  void *data = nullptr;
  std::int64_t elementBytes = 0;
  Sizes shape;
  Sizes strides; ///< of dimensions with one element: as in a packed tensor

  std::optional<std::int64_t> count() const {
    return shape[0] == kUnsaid ? std::nullopt : std::optional(shape[0]);
  }
};

/// "[2, 32, 128]"
std::string listText(const Sizes &values);

/// Checks tensors. In errors, `taker` names their user.
class TensorCheck {
public:
  TensorCheck(const RunDevice &device, std::string taker) : device_(device), taker_(std::move(taker)) {}

  Result<Checked> check(const char *name, const deft_tensor *given, deft_dtype dtype,
                        const Dimensions &dimensions) const;
  /// Like check(); the elements must also be contiguous.
  Result<Checked> checkPacked(const char *name, const deft_tensor *given, deft_dtype dtype,
                              const Dimensions &dimensions) const;
  /// Like check(); the elements of each entry of the first dimension must also be contiguous. Such rows may
  /// have any distance that avoids overlaps.
  Result<Checked> checkRows(const char *name, const deft_tensor *given, deft_dtype dtype,
                            const Dimensions &dimensions) const;

private:
  RunDevice device_;
  std::string taker_;
};

/// Memory that is read and written at the same time must not overlap.
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
  class List { // of at most seven tensors of a run
  public:
    void push(const Named &named) { values_[count_++] = named; }
    std::size_t size() const { return count_; }
    const Named &operator[](std::size_t index) const { return values_[index]; }

  private:
    std::array<Named, 7> values_;
    std::size_t count_ = 0;
  };

  /// If the number of entries is unknown, the end of the tensor is unknown as well.
  void add(const char *name, const Checked &tensor, bool isWritten);

  List tensors_;
};

} // namespace deft::api
