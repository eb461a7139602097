#include "runtime/config_cache/VariantSignature.h"

#include "compiler/spec/Names.h"
#include "compiler/support/Hash.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
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
    add("param " + number(param.type) + number(param.shape) +
        (param.shape == spec::Param::Shape::Table ? " of " + number(param.size) : ""));
  for (const spec::Expr &expr : variant.exprs) {
    add("expr " + number(expr.op) + " " + number(expr.type) + " " + number(expr.builtin) + " " +
        number(expr.param) + " " + std::to_string(std::bit_cast<std::uint64_t>(expr.value)));
    for (const spec::ExprId operand : expr.operands)
      add(number(operand));
  }
  // By their places. The first came together; of those that came later, only what a variant has is said.
  constexpr int kFirst = 3, kPlaceOfBound = 6;
  std::map<int, std::string> hooks;
#define DEFT_HOOK_TEXT(ID, REGION, KEY, TYPE, READS, PLACE, HASHED)                                          \
  if (PLACE < kFirst || variant.ID)                                                                          \
    hooks[PLACE] = (HASHED) + (variant.ID ? number(*variant.ID) : "none");
  DEFT_HOOKS(DEFT_HOOK_TEXT, DEFT_HOOK_TEXT)
#undef DEFT_HOOK_TEXT
  if (variant.bound != spec::MaskBound::Tree)
    hooks[kPlaceOfBound] = "bound " + number(variant.bound);
  for (const auto &[place, hook] : hooks)
    add(hook);
  add(number(variant.normalize));
  return text;
}

std::string hooksOf(const spec::Variant &variant) {
#define DEFT_IS_THERE(ID, ...) || variant.ID
  const bool hasHooks = variant.bound != spec::MaskBound::Tree DEFT_HOOKS(DEFT_IS_THERE, DEFT_IS_THERE);
#undef DEFT_IS_THERE
  if (!hasHooks)
    return variant.normalize == spec::Normalize::Softmax ? kPlain : "sigmoid";
  return support::sha256Hex(hooksText(variant)).substr(0, kHashDigits);
}

bool isHooks(std::string_view text) {
  if (text == kPlain || text == "sigmoid")
    return true;
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
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

spec::Tensors withoutOutput(spec::Tensors tensors) {
  tensors.out = tensors.v;
  if (tensors.out.elementBytes() == 1) // which no output has
    tensors.out.dtype = tensors.q.dtype;
  return tensors;
}

std::string dimsText(const spec::Tensors &tensors) {
  const std::string text = "d" + std::to_string(tensors.k.dim);
  if (tensors.valueInKey)
    return text + "k" + std::to_string(tensors.v.dim) +
           (tensors.hasScales() ? "s" + std::to_string(tensors.scaleColumns) : "");
  return tensors.k.dim == tensors.v.dim ? text : text + "v" + std::to_string(tensors.v.dim);
}

std::string dtypesText(const spec::Tensors &tensors) {
  const std::string q = toString(tensors.q.dtype), k = toString(tensors.k.dtype),
                    v = toString(tensors.v.dtype);
  if (tensors.byteProducts)
    return q + "_" + k + "_" + v + "_" + toString(spec::kByteProducts);
  return q == k && k == v ? q : q + "_" + k + "_" + v;
}

/// What was misread comes out as another text.
spec::Tensors readTensors(std::string_view dims, std::string_view dtypes) {
  spec::Tensors tensors;
  tensors.q.dim = tensors.k.dim = tensors.v.dim = readNumber(dims, "d");
  if (const std::size_t second = dims.find_first_of("kv"); second != std::string_view::npos) {
    tensors.valueInKey = dims[second] == 'k';
    tensors.v.dim = readNumber(dims.substr(second + 1), "");
  }
  if (const std::size_t scales = dims.find('s'); scales != std::string_view::npos)
    tensors.scaleColumns = readNumber(dims.substr(scales + 1), "");
  std::vector<std::string_view> words;
  for (const std::string_view word : split(dtypes, '_'))
    if (!words.empty() && words.back() == "fp8") // the name of such a dtype has the separator in it
      words.back() = {words.back().data(), words.back().size() + 1 + word.size()};
    else
      words.push_back(word);
  spec::TensorType *const three[] = {&tensors.q, &tensors.k, &tensors.v};
  for (std::size_t i = 0; i < std::size(three); ++i)
    three[i]->dtype = spec::parseDType(words[std::min(i, words.size() - 1)]).value_or(three[i]->dtype);
  tensors.byteProducts = words.size() > std::size(three); // whose dtype comes after these
  return withoutOutput(tensors);
}

bool areOfOneShape(const spec::Tensors &a, const spec::Tensors &b) {
  const auto isOfOne = [](const spec::TensorType &one, const spec::TensorType &other) {
    return one.dim == other.dim && one.elementBytes() == other.elementBytes();
  };
  return isOfOne(a.q, b.q) && isOfOne(a.k, b.k) && isOfOne(a.v, b.v) && a.valueInKey == b.valueInKey &&
         a.scaleColumns == b.scaleColumns && a.byteProducts == b.byteProducts;
}

} // namespace

VariantSignature VariantSignature::of(const spec::Variant &variant) {
  return {{variant.queryHeads, variant.kvHeads, withoutOutput(variant.tensors)},
          variant.cache.isPaged() ? variant.cache : spec::CacheSpec{.pageSize = 0},
          hooksOf(variant)};
}

std::string VariantSignature::text() const {
  const std::string pages =
      cache.isPaged() ? "p" + std::to_string(cache.pageSize) + toString(cache.order) : "contiguous";
  return "q" + std::to_string(queryHeads) + "-kv" + std::to_string(kvHeads) + "-" + dimsText(tensors) + "-" +
         dtypesText(tensors) + "-" + pages + "-" + hooks;
}

std::optional<VariantSignature> VariantSignature::parse(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '-');
  if (parts.size() != 6 || !isHooks(parts[5]))
    return std::nullopt;
  VariantSignature signature;
  signature.queryHeads = readNumber(parts[0], "q");
  signature.kvHeads = readNumber(parts[1], "kv");
  signature.tensors = readTensors(parts[2], parts[3]);
  signature.cache.pageSize = readNumber(parts[4], "p");
  signature.cache.order = parts[4].ends_with("hnd") ? spec::PageOrder::Hnd : spec::PageOrder::Nhd;
  signature.hooks = parts[5];
  // What was misread does not come back as it was.
  if (signature.kvHeads < 1 || signature.queryHeads < 1 || spec::faultOf(signature.tensors) ||
      signature.queryHeads % signature.kvHeads != 0 || signature.cache.pageSize < 0 ||
      signature.text() != text)
    return std::nullopt;
  return signature;
}

spec::Variant VariantSignature::variant() const {
  spec::Variant variant;
  static_cast<spec::AttentionShape &>(variant) = *this;
  variant.name = "tuned";
  variant.cache = cache;
  variant.scale = 1 / std::sqrt(static_cast<double>(tensors.k.dim));
  if (hooks == "sigmoid")
    variant.normalize = spec::Normalize::Sigmoid;
  return variant;
}

std::optional<double> distance(const VariantSignature &a, const VariantSignature &b) {
  if (a.queryHeads != b.queryHeads || a.kvHeads != b.kvHeads || !areOfOneShape(a.tensors, b.tensors))
    return std::nullopt;
  double sum = 0;
  if (a.tensors != b.tensors) // of the same width, they run at the same rate
    sum += 0.25;
  if (a.cache.pageSize != b.cache.pageSize)
    sum += 0.5;
  if (a.cache.order != b.cache.order)
    sum += 0.25;
  if (a.hooks != b.hooks) // two kinds may have less in common with each other than each has with neither
    sum += a.hooks == kPlain || b.hooks == kPlain ? 1 : 1.5;
  return sum;
}

} // namespace deft::config_cache
