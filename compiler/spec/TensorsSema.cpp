#include "compiler/spec/AttentionSema.h"
#include "compiler/spec/ForeignWords.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <cmath>

/// Heads, the four tensors and the cache: rules A2 to A5 and A9 to A12.
namespace deft::spec {

const AstCacheValue *AttentionSema::latentCache() const {
  const AstProperty *property = merged_.property("kv_cache").item;
  const auto *cache = property ? std::get_if<AstCacheValue>(&property->value) : nullptr;
  return cache && cache->kind.text == "latent" ? cache : nullptr;
}

std::vector<const char *> AttentionSema::requiredKeys() const {
  if (latentCache())
    return {"query_heads"};
  const bool hasDims = merged_.property("key_dim").item || merged_.property("value_dim").item;
  if (hasDims && !merged_.property("head_dim").item)
    return {"query_heads", "kv_heads", "key_dim", "value_dim"};
  return {"query_heads", "kv_heads", "head_dim"};
}

std::optional<int> AttentionSema::numberOf(const WrittenNumber &written, const Range &legal) {
  Number &number = numbers_[written.name];
  if (number.state == Number::State::Known)
    return number.value;
  const support::SourceRange range = parsed_.arena[written.expr].range;
  if (number.state == Number::State::Active) {
    reporter_.error(range, "`" + written.name + "` is defined by itself");
    return std::nullopt;
  }
  number.state = Number::State::Active;
  ExprSema::Scope scope;
  scope.owner = written.owner;
  std::optional<double> value =
      exprs_.evaluateConstant(written.expr, scope, ScalarType::I32, "`" + written.name + "`");
  const std::string text = written.name + " = " + (value ? std::to_string(static_cast<int>(*value)) : "");
  if (value && *value < 1) {
    reporter_.error(range, text + " is below 1");
    value.reset();
  } else if (value && *value > legal.most) {
    reporter_.error(range, text + " is above the limit of " + std::to_string(legal.most));
    value.reset();
  } else if (value && std::fmod(*value, legal.multiple) != 0) {
    const int below = static_cast<int>(*value) / legal.multiple * legal.multiple;
    reporter_.error(range, text + " is not a multiple of " + std::to_string(legal.multiple))
        .withHint(below > 0 ? "the nearest are " + std::to_string(below) + " and " +
                                  std::to_string(below + legal.multiple)
                            : "the nearest is " + std::to_string(legal.multiple));
    value.reset();
  }
  number.state = Number::State::Known;
  if (value)
    number.value = static_cast<int>(*value);
  return number.value;
}

std::optional<int> AttentionSema::propertyNumber(const std::string &key, const Range &legal) {
  const Inherited<AstProperty> property = merged_.property(key);
  if (!property.item)
    return std::nullopt;
  return numberOf({key, std::get<AstExprValue>(property.item->value).expr, property.owner}, legal);
}

std::optional<int> AttentionSema::headConstant(const std::string &key, support::SourceRange use) {
  constexpr Range kHeads{1, kMaxHeads, 1}, kDims{1, kMaxHeadDim, kHeadDimStep};
  const AstCacheValue *latent = latentCache();
  if (key == "kv_heads" && latent && !merged_.property(key).item)
    return 1;
  if (key == "query_heads" || key == "kv_heads")
    return propertyNumber(key, kHeads);
  if (key == "head_dim") {
    const std::optional<int> keyDim = headConstant("key_dim", use);
    if (!keyDim)
      return std::nullopt;
    const std::optional<int> valueDim = headConstant("value_dim", use);
    if (!valueDim || *keyDim == *valueDim)
      return valueDim;
    reporter_
        .error(use, "`head_dim` has no single value here: K has dim " + std::to_string(*keyDim) + " and V " +
                        std::to_string(*valueDim))
        .withHint("write `key_dim` or `value_dim` (rule A10)");
    return std::nullopt;
  }
  if (!latent)
    return propertyNumber(merged_.property(key).item ? key : "head_dim", kDims);
  // K has all of a token's elements, and V the first of them.
  const AstAttention *owner = merged_.property("kv_cache").owner;
  const auto part = [&](const char *name, const std::optional<AstExprId> &expr, int most) {
    return expr ? numberOf({name, *expr, owner}, {1, most, kLatentStep}) : std::nullopt;
  };
  const std::optional<int> dim = part("dim", latent->dim, kMaxLatentDim);
  if (key == "value_dim")
    return dim;
  const std::optional<int> rope = part("rope", latent->rope, kMaxLatentRope);
  return dim && rope ? std::optional(*dim + *rope) : std::nullopt;
}

/// Of `head_dim`, `key_dim` and `value_dim`, and a latent cache: who may stand beside whom.
void AttentionSema::checkOneSaysDims() {
  const AstCacheValue *latent = latentCache();
  const Inherited<AstProperty> both = merged_.property("head_dim"), cache = merged_.property("kv_cache");
  if (latent) {
    for (const char *key : {"head_dim", "key_dim", "value_dim"}) {
      const AstProperty *property = enter(key);
      if (!property)
        continue;
      support::Diagnostic &report =
          reporter_.error(property->key.range, "`" + std::string(key) + "` does not go with a latent cache");
      report.withHint("its `dim` and `rope` give the dims of K and V (rule A9)");
      noteOrigin(report, cache, latent->kind.range, "the cache is latent");
    }
    return;
  }
  // An heir's replaces what it inherits: only what one attention gives is at odds.
  for (const char *key : {"key_dim", "value_dim"}) {
    const Inherited<AstProperty> one = merged_.property(key);
    if (!one.item || !both.item || one.owner != both.owner)
      continue;
    enter(key);
    reporter_.error(one.item->key.range, "`" + std::string(key) + "` does not go with `head_dim`")
        .withHint("`head_dim` is short for both dims (rule A10)")
        .withNote(both.item->key.range, "`head_dim` is given here");
  }
}

void AttentionSema::checkHeads() {
  checkOneSaysDims();
  for (const char *key : {"query_heads", "kv_heads", "head_dim", "key_dim", "value_dim"})
    if (const AstProperty *property = enter(key))
      if (!latentCache() || std::string_view(key).ends_with("heads"))
        headConstant(key == std::string_view("head_dim") ? "key_dim" : key, property->valueRange);
  enter("kv_cache");
  const auto valueOf = [&](const char *key) { return headConstant(key, variant_.range); };
  const std::optional<int> query = valueOf("query_heads"), kv = valueOf("kv_heads");
  const std::optional<int> keyDim = valueOf("key_dim"), valueDim = valueOf("value_dim");
  variant_.queryHeads = query.value_or(1);
  variant_.kvHeads = kv.value_or(1);
  Tensors &tensors = variant_.tensors;
  tensors.q.dim = tensors.k.dim = keyDim.value_or(kByteHeadDimStep);
  tensors.v.dim = tensors.out.dim = valueDim.value_or(kByteHeadDimStep);
  if (query && kv)
    checkRatio(*query, *kv);
}

void AttentionSema::checkRatio(int queryHeads, int kvHeads) {
  const Inherited<AstProperty> q = merged_.property("query_heads"), k = merged_.property("kv_heads");
  const std::string queryText = std::to_string(queryHeads), kvText = std::to_string(kvHeads);
  const auto valueRange = [&](const Inherited<AstProperty> &p) {
    return parsed_.arena[std::get<AstExprValue>(p.item->value).expr].range;
  };
  if (const AstCacheValue *latent = latentCache(); latent && kvHeads != 1) {
    enter("kv_heads");
    support::Diagnostic &report =
        reporter_.error(valueRange(k), "kv_heads = " + kvText + ", and a latent cache has one KV head");
    report.withHint("leave `kv_heads` out, or write 1 (rule A9)");
    noteOrigin(report, merged_.property("kv_cache"), latent->kind.range, "the cache is latent");
    return;
  }
  std::string problem;
  if (queryHeads % kvHeads != 0)
    problem = "query_heads = " + queryText + " is not a multiple of kv_heads = " + kvText;
  else if (queryHeads / kvHeads > kMaxRatio)
    problem = "query_heads / kv_heads = " + std::to_string(queryHeads / kvHeads) + " is above the limit of " +
              std::to_string(kMaxRatio);
  if (problem.empty())
    return;
  // Pointed at what the reader is writing: an own value rather than an inherited one, the later of two.
  const bool atQuery =
      !k.item || (merged_.isOwn(q.owner) &&
                  (!merged_.isOwn(k.owner) || q.item->valueRange.begin > k.item->valueRange.begin));
  const Inherited<AstProperty> &wrong = atQuery ? q : k, &other = atQuery ? k : q;
  enter(atQuery ? "query_heads" : "kv_heads");
  support::Diagnostic &report = reporter_.error(valueRange(wrong), problem);
  if (other.item)
    noteOrigin(report, other, valueRange(other),
               atQuery ? "kv_heads is " + kvText : "query_heads is " + queryText);
}

std::optional<DType> AttentionSema::dtypeOf(const Ident &word) {
  const std::optional<DType> dtype = parseDType(word.text);
  if (dtype && elementBytes(*dtype) == 2)
    return dtype;
  if (dtype)
    reporter_.error(word.range, "`" + word.text + "` is a dtype of caches only")
        .withHint("write `kv_cache = paged(dtype = " + word.text + ")`");
  else
    reporter_.error(word.range, "unknown dtype `" + word.text + "`, it is f16 or bf16")
        .withHint(isForeignFp8(word.text)
                      ? "8-bit floats are for caches: `kv_cache = paged(dtype = fp8_e4m3)`, or `fp8_e5m2`"
                      : suggest(word.text, {"f16", "bf16"}));
  return std::nullopt;
}

void AttentionSema::checkTypes() {
  Tensors &tensors = variant_.tensors;
  if (const AstProperty *property = enter("dtype"))
    tensors.q.dtype = dtypeOf(std::get<AstWordValue>(property->value).word).value_or(tensors.q.dtype);
  // The cache's own is read with the cache.
  tensors.k.dtype = tensors.v.dtype = tensors.out.dtype = tensors.q.dtype;
  if (const AstProperty *property = enter("output")) {
    const auto &output = std::get<AstOutputValue>(property->value);
    if (output.dtype)
      tensors.out.dtype = dtypeOf(*output.dtype).value_or(tensors.out.dtype);
    variant_.withLse = output.withLse.has_value();
  }
}

void AttentionSema::checkCache() {
  const AstProperty *property = enter("kv_cache");
  if (!property)
    return;
  const auto &cache = std::get<AstCacheValue>(property->value);
  if (cache.kind.text == "contiguous") {
    variant_.cache = {.pageSize = 0};
    return;
  }
  const bool isLatent = cache.kind.text == "latent";
  if (!isLatent && cache.kind.text != "paged") {
    reporter_
        .error(cache.kind.range,
               "unknown cache layout `" + cache.kind.text + "`, it is `paged`, `latent` or `contiguous`")
        .withHint(support::didYouMean(cache.kind.text, {"paged", "latent", "contiguous"}));
    return;
  }
  variant_.tensors.valueInKey = isLatent;
  for (const auto &[key, value] : {std::pair("dim", &cache.dim), std::pair("rope", &cache.rope)})
    if (isLatent && !*value)
      reporter_.error(cache.kind.range, std::string("the latent cache has no `") + key + "`")
          .withHint("for example `latent(dim = 512, rope = 64)` (rule A9)");
  checkPages(cache);
  if (cache.dtype)
    checkCacheDType(*cache.dtype);
  if (cache.scales)
    checkScales(cache);
}

void AttentionSema::checkPages(const AstCacheValue &cache) {
  if (cache.pageSize) {
    ExprSema::Scope scope;
    scope.owner = merged_.property("kv_cache").owner;
    std::optional<double> size =
        exprs_.evaluateConstant(*cache.pageSize, scope, ScalarType::I32, "`page_size`");
    if (size && (*size < 1 || *size > kMaxPageSize))
      reporter_.error(parsed_.arena[*cache.pageSize].range,
                      "page_size = " + std::to_string(static_cast<int>(*size)) + " is not between 1 and " +
                          std::to_string(kMaxPageSize));
    else if (size)
      variant_.cache.pageSize = static_cast<int>(*size);
  }
  if (cache.order) {
    if (std::optional<PageOrder> order = parsePageOrder(cache.order->text))
      variant_.cache.order = *order;
    else
      reporter_.error(cache.order->range, "unknown order `" + cache.order->text + "`, it is `nhd` or `hnd`");
  }
}

void AttentionSema::checkCacheDType(const Ident &word) {
  Tensors &tensors = variant_.tensors;
  const std::optional<DType> dtype = parseDType(word.text);
  if (!dtype) {
    reporter_.error(word.range, "unknown dtype `" + word.text + "` of a cache, it is " + oneOfDTypes(""))
        .withHint(suggest(word.text, dtypeNames()));
    return;
  }
  for (const auto &[key, dim] : {std::pair("key_dim", tensors.k.dim), std::pair("value_dim", tensors.v.dim)})
    if (elementBytes(*dtype) == 1 && dim % kByteHeadDimStep != 0) {
      const bool isOwnKey = merged_.property(key).item != nullptr;
      reporter_.error(word.range, std::string(isOwnKey ? key : "head_dim") + " = " + std::to_string(dim) +
                                      " is not a multiple of " + std::to_string(kByteHeadDimStep) +
                                      ", which a cache of " + word.text + " needs");
    }
  tensors.k.dtype = tensors.v.dtype = *dtype;
}

void AttentionSema::checkScales(const AstCacheValue &cache) {
  Tensors &tensors = variant_.tensors;
  const support::SourceRange range = parsed_.arena[*cache.scales].range;
  if (tensors.k.elementBytes() != 1) {
    reporter_.error(range, std::string("`scales` is given, and the cache is of ") + toString(tensors.k.dtype))
        .withHint("scales are for 8-bit floats: `dtype = fp8_e4m3, scales = 128` (rule A11)");
    return;
  }
  const std::optional<int> columns = numberOf({"scales", *cache.scales, merged_.property("kv_cache").owner},
                                              {1, kMaxLatentDim, kLatentStep});
  if (!columns)
    return;
  if (tensors.v.dim % (kScaleStep * *columns) != 0) {
    reporter_
        .error(range, "scales = " + std::to_string(*columns) + " does not divide dim = " +
                          std::to_string(tensors.v.dim) + " into a multiple of " + std::to_string(kScaleStep))
        .withHint("the scales of a token fill whole pieces of 16 bytes (rule A11)");
    return;
  }
  tensors.scaleColumns = *columns;
}

/// When all that may be at odds with it is known.
void AttentionSema::checkProducts() {
  const AstProperty *property = enter("products");
  if (!property)
    return;
  const Ident &word = std::get<AstWordValue>(property->value).word;
  const std::string known = toString(kByteProducts);
  if (word.text != known) {
    reporter_
        .error(word.range, "unknown products `" + word.text + "`, they are of " + known +
                               ", or of 16 bits if you leave `products` out")
        .withHint(isForeignFp8(word.text) ? "write `products = " + known + "`" : suggest(word.text, {known}));
    return;
  }
  Tensors &tensors = variant_.tensors;
  const std::string given = "`products = " + known + "` is given, and ";
  if (tensors.valueInKey || tensors.k.dtype != kByteProducts) {
    reporter_
        .error(word.range,
               given + "the cache is " +
                   (tensors.valueInKey ? "latent" : std::string("of ") + toString(tensors.k.dtype)))
        .withHint("they multiply what a cache holds: `kv_cache = paged(dtype = " + known + ")` (rule A12)");
    return;
  }
  if (const char *other = variant_.atOddsWithByteProducts()) {
    reporter_.error(word.range, given + "there is " + other)
        .withHint("they multiply K and V as they lie in the cache, and the weights of softmax (rule A12)");
    return;
  }
  tensors.byteProducts = true;
}

/// The default is that of a head as wide as K, which a latent cache's is not.
void AttentionSema::checkNeedsNoScale() {
  const AstCacheValue *latent = latentCache();
  if (!latent)
    return;
  enter("kv_cache");
  reporter_.error(latent->kind.range, "a latent cache needs a `scale`")
      .withHint("use the scale of the heads before absorption, for example `scale = 1 / sqrt(192);` "
                "(rule A9)");
}

void AttentionSema::checkMayChangeKeys() {
  const AstCacheValue *latent = latentCache();
  if (!latent)
    return;
  const AstProperty *hook = enter("key");
  support::Diagnostic &report =
      reporter_.error(hook->key.range, "`key` does not go with a latent cache, since V is a part of K");
  report.withHint("write keys into the cache as q.k takes them (rule A9)");
  noteOrigin(report, merged_.property("kv_cache"), latent->kind.range, "the cache is latent");
}

} // namespace deft::spec
