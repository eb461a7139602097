#pragma once

#include "compiler/kernels/Legality.h"
#include "compiler/spec/Variant.h"

#include <optional>
#include <string>
#include <string_view>

namespace deft::config_cache {

/// The properties of a variant that affect how fast a config is. Names, defaults of parameters, the scale and
/// the output's type do not. A schedule does not either, but a config must fit it (see checkSchedule). The
/// output tensor of the shape is v's.
struct VariantSignature : spec::AttentionShape {
  spec::CacheSpec cache = {.pageSize = 0}; ///< a contiguous one has order nhd
  /// "plain": softmax over the tree's mask; "sigmoid": the same with sigmoid; otherwise a hash of the
  /// parameters and all expressions.
  std::string hooks = "plain";

  bool operator==(const VariantSignature &) const = default;

  static VariantSignature of(const spec::Variant &variant);

  /// "q32-kv8-d128-bf16-p16nhd-plain": the key in files. If k and v have different dims, "d192v128", or
  /// "d576k512" with V in K's memory; if q, k and v have different dtypes, "bf16_f16_f16".
  std::string text() const;
  static std::optional<VariantSignature> parse(std::string_view text);

  kernels::KernelShape shape() const { return {*this}; }
  /// A variant with these properties, for default configs and plans; its hooks are plain.
  spec::Variant variant() const;
};

/// How far a config of one variant is from suiting the other; none if the shapes (heads, dims, bytes of
/// elements) differ, because tiles do not carry over. On the scale of distance(TreeClass).
std::optional<double> distance(const VariantSignature &a, const VariantSignature &b);

} // namespace deft::config_cache
