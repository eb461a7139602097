#include "runtime/api/TensorCheck.h"

#include "runtime/api/Dtypes.h"
#include "runtime/api/Sized.h"

#include <algorithm>
#include <cstddef>

namespace deft::api {

namespace {

/// "[queries, query_heads, head_dim] = [2, 32, 128]"
std::string dimensionsText(const Dimensions &dimensions) {
  std::string names, sizes;
  for (const Dimension &dimension : dimensions) {
    const char *const comma = names.empty() ? "" : ", ";
    names += std::string(comma) + dimension.name;
    sizes += comma + (dimension.size == kAny ? "any" : std::to_string(dimension.size));
  }
  return "[" + names + "] = [" + sizes + "]";
}

std::string placeName(int type, int index) {
  switch (type) {
  case DEFT_DEVICE_CPU:
    return "memory of the CPU";
  case DEFT_DEVICE_CUDA:
    return "memory of CUDA device " + std::to_string(index);
  case DEFT_DEVICE_CUDA_HOST:
    return "page-locked memory of the CPU";
  case DEFT_DEVICE_CUDA_MANAGED:
    return "managed memory of CUDA";
  default:
    return "memory of device type " + std::to_string(type);
  }
}

bool hasNoElements(const Sizes &shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

/// The shape has a dimension at least. The first one's size is any number, and no stride has it as a factor.
Sizes packedStrides(const Sizes &shape) {
  Sizes strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// All dimensions but the first `free` are packed, and these at least as far apart.
Result<Checked> checkStrides(const char *name, Result<Checked> checked, std::size_t free) {
  if (!checked)
    return checked;
  const Sizes packed = packedStrides(checked->shape);
  const Sizes &strides = checked->strides;
  for (std::size_t i = 0; i < packed.size(); ++i)
    if (i < free ? strides[i] < packed[i] : strides[i] != packed[i])
      return wrong(name,
                   "of shape " + listText(checked->shape) + " has strides " + listText(strides) +
                       (free == 0 ? ", it must be packed: "
                                  : ", except for the first, which may be larger, they must be ") +
                       listText(packed),
                   "pass a contiguous copy");
  return checked;
}

} // namespace

std::string listText(const Sizes &values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

Result<Checked> TensorCheck::check(const char *name, const deft_tensor *given, deft_dtype dtype,
                                   const Dimensions &dimensions) const {
  const auto tensor = readSized("deft_tensor", given);
  if (!tensor)
    return usage(std::string(name) + ": " + tensor.error().field + " " + tensor.error().message,
                 tensor.error().hint);
  const auto fault = [&](const std::string &detail, const std::string &hint = "") {
    return wrong(name, detail, hint);
  };
  const int type = tensor->device_type;
  const bool liesHere = device_.isGpu ? type == DEFT_DEVICE_CUDA && tensor->device_id == device_.gpu
                                      : type == DEFT_DEVICE_CPU || type == DEFT_DEVICE_CUDA_HOST;
  if (!liesHere && type != DEFT_DEVICE_UNSAID && type != DEFT_DEVICE_CUDA_MANAGED)
    return fault("is in " + placeName(type, tensor->device_id) + ", the run takes " +
                 placeName(device_.isGpu ? DEFT_DEVICE_CUDA : DEFT_DEVICE_CPU, device_.gpu));
  if (tensor->dtype != dtype)
    return fault("is " + dtypeName(tensor->dtype) + ", " + taker_ + " takes " + dtypeName(dtype));
  const auto mustBe = [&] { return ", it must be " + dimensionsText(dimensions); };
  if (tensor->ndim < 0 || static_cast<std::size_t>(tensor->ndim) != dimensions.size())
    return fault("has " + std::to_string(tensor->ndim) + " dimensions" + mustBe());
  if (!tensor->shape)
    return fault("has no shape" + mustBe());
  Checked checked{.data = tensor->data, .elementBytes = (dtype & 0xff) / 8, .shape = {}, .strides = {}};
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    checked.shape.push(tensor->shape[i]);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::int64_t size = checked.shape[i], must = dimensions[i].size;
    if (must == kAny ? size < 0 && !(i == 0 && size == kUnsaid) : size != must)
      return fault("is " + listText(checked.shape) + mustBe());
  }
  checked.strides = packedStrides(checked.shape);
  if (tensor->strides && !hasNoElements(checked.shape)) // of no elements no stride is ever taken
    for (std::size_t i = 0; i < dimensions.size(); ++i)
      if (checked.shape[i] != 1)
        checked.strides[i] = tensor->strides[i];
  if (reinterpret_cast<std::uintptr_t>(tensor->data) % static_cast<std::uintptr_t>(checked.elementBytes) != 0)
    return fault("does not begin at a multiple of " + std::to_string(checked.elementBytes) + " bytes");
  if (!tensor->data && !hasNoElements(checked.shape))
    return fault("of shape " + listText(checked.shape) + " is at no address", "its data is null");
  return checked;
}

Result<Checked> TensorCheck::checkPacked(const char *name, const deft_tensor *given, deft_dtype dtype,
                                         const Dimensions &dimensions) const {
  return checkStrides(name, check(name, given, dtype, dimensions), 0);
}

Result<Checked> TensorCheck::checkRows(const char *name, const deft_tensor *given, deft_dtype dtype,
                                       const Dimensions &dimensions) const {
  return checkStrides(name, check(name, given, dtype, dimensions), 1);
}

Result<void> Memory::checkApart() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      const Named &written = tensors_[i], &other = tensors_[k];
      if (!written.isWritten || i == k || (other.isWritten && k > i) ||
          !overlap(written.extent, other.extent))
        continue;
      return wrong(written.name, std::string("overlaps with ") + other.name,
                   other.isWritten ? "both are written: give each its own memory"
                                   : "it is written while that is read: give it its own memory");
    }
  return {};
}

void Memory::add(const char *name, const Checked &tensor, bool isWritten) {
  if (tensor.count())
    tensors_.push(
        {name,
         isWritten,
         {reinterpret_cast<std::uintptr_t>(tensor.data), tensor.elementBytes, tensor.shape, tensor.strides}});
}

} // namespace deft::api
