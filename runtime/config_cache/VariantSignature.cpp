#include "runtime/config_cache/VariantSignature.h"

#include "compiler/support/Hash.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

namespace deft::config_cache {
namespace {

constexpr std::size_t kHashDigits = 8;
constexpr const char *kPlain = "plain";

std::string number(auto value) { return std::to_string(static_cast<long long>(value)); }

/// All that the hooks compute, without names and source ranges; two specs that say the same in the same order
/// are one.
std::string hooksText(const spec::Variant &variant) {
  std::string text = "v1";
  const auto add = [&](const std::string &part) { text += " " + part; };
  for (const spec::Param &param : variant.params)
    add("param " + number(param.type) + number(param.shape));
  for (const spec::Expr &expr : variant.exprs) {
    add("expr " + number(expr.op) + " " + number(expr.type) + " " + number(expr.builtin) + " " +
        number(expr.param) + " " + std::to_string(std::bit_cast<std::uint64_t>(expr.value)));
    for (const spec::ExprId operand : expr.operands)
      add(number(operand));
  }
  const auto addRoot = [&](const char *name, const std::optional<spec::ExprId> &root) {
    add(name + (root ? number(*root) : "none"));
  };
  addRoot("mask ", variant.mask);
  addRoot("score ", variant.score);
  addRoot("bias ", variant.sigmoidBias);
  add(number(variant.normalize));
  return text;
}

std::string hooksOf(const spec::Variant &variant) {
  if (!variant.mask && !variant.score && !variant.sigmoidBias)
    return variant.normalize == spec::Normalize::Softmax ? kPlain : "sigmoid";
  return support::sha256Hex(hooksText(variant)).substr(0, kHashDigits);
}

bool isHooks(std::string_view text) {
  if (text == kPlain || text == "sigmoid")
    return true;
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t dash = text.find('-'); dash != std::string_view::npos; dash = text.find('-')) {
    parts.push_back(text.substr(0, dash));
    text.remove_prefix(dash + 1);
  }
  parts.push_back(text);
  return parts;
}

/// The number behind a prefix; 0, which no signature has, where there is none.
int readNumber(std::string_view part, std::string_view prefix) {
  int value = 0;
  if (part.starts_with(prefix))
    std::from_chars(part.data() + prefix.size(), part.data() + part.size(), value);
  return value;
}

} // namespace

VariantSignature VariantSignature::of(const spec::Variant &variant) {
  return {variant.queryHeads,
          variant.kvHeads,
          variant.headDim,
          variant.dtype,
          variant.cache.paged ? variant.cache.pageSize : 0,
          variant.cache.paged ? variant.cache.order : spec::PageOrder::Nhd,
          hooksOf(variant)};
}

std::string VariantSignature::text() const {
  const std::string pages =
      pageSize == 0 ? "contiguous"
                    : "p" + std::to_string(pageSize) + (order == spec::PageOrder::Nhd ? "nhd" : "hnd");
  return "q" + std::to_string(queryHeads) + "-kv" + std::to_string(kvHeads) + "-d" + std::to_string(headDim) +
         "-" + (dtype == spec::DType::BF16 ? "bf16" : "f16") + "-" + pages + "-" + hooks;
}

std::optional<VariantSignature> VariantSignature::parse(std::string_view text) {
  const std::vector<std::string_view> parts = split(text);
  if (parts.size() != 6 || !isHooks(parts[5]))
    return std::nullopt;
  VariantSignature signature;
  signature.queryHeads = readNumber(parts[0], "q");
  signature.kvHeads = readNumber(parts[1], "kv");
  signature.headDim = readNumber(parts[2], "d");
  signature.dtype = parts[3] == "f16" ? spec::DType::F16 : spec::DType::BF16;
  signature.pageSize = readNumber(parts[4], "p");
  signature.order = parts[4].ends_with("hnd") ? spec::PageOrder::Hnd : spec::PageOrder::Nhd;
  signature.hooks = parts[5];
  // What was misread does not come back as it was.
  if (signature.kvHeads < 1 || signature.queryHeads < 1 || signature.headDim < 1 ||
      signature.queryHeads % signature.kvHeads != 0 || signature.pageSize < 0 || signature.text() != text)
    return std::nullopt;
  return signature;
}

spec::Variant VariantSignature::variant() const {
  spec::Variant variant;
  variant.name = "tuned";
  variant.queryHeads = queryHeads;
  variant.kvHeads = kvHeads;
  variant.headDim = headDim;
  variant.dtype = variant.outputDtype = dtype;
  variant.cache = {pageSize > 0, pageSize, order};
  variant.scale = 1 / std::sqrt(static_cast<double>(headDim));
  if (hooks == "sigmoid")
    variant.normalize = spec::Normalize::Sigmoid;
  return variant;
}

std::optional<double> distance(const VariantSignature &a, const VariantSignature &b) {
  if (a.queryHeads != b.queryHeads || a.kvHeads != b.kvHeads || a.headDim != b.headDim)
    return std::nullopt;
  double sum = 0;
  if (a.dtype != b.dtype) // both are 16 bits wide, and run at the same rate
    sum += 0.25;
  if (a.pageSize != b.pageSize)
    sum += 0.5;
  if (a.order != b.order)
    sum += 0.25;
  if (a.hooks != b.hooks) // two kinds may have less in common with each other than each has with neither
    sum += a.hooks == kPlain || b.hooks == kPlain ? 1 : 1.5;
  return sum;
}

} // namespace deft::config_cache
