#include "compiler/spec/ForeignWords.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/spec/ParserImpl.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

namespace deft::spec {

std::optional<AstValue> Parser::parseValue(const Ident &key) {
  if (key.text == "dtype") {
    std::optional<Ident> word = takeName("`f16` or `bf16`");
    return word ? std::optional<AstValue>(AstWordValue{*word}) : std::nullopt;
  }
  if (key.text == "products") {
    std::optional<Ident> word = takeName("`fp8_e4m3`");
    return word ? std::optional<AstValue>(AstWordValue{*word}) : std::nullopt;
  }
  if (key.text == "kv_cache")
    return parseCache();
  if (key.text == "normalize")
    return parseNormalize();
  if (key.text == "output")
    return parseOutput();
  std::optional<AstExprId> expr = parseExpr();
  return expr ? std::optional<AstValue>(AstExprValue{*expr}) : std::nullopt;
}

/// "contiguous" | "paged" [ "(" argument { "," argument } ")" ] | "latent" "(" argument { "," argument } ")"
std::optional<AstValue> Parser::parseCache() {
  std::optional<Ident> kind = takeName("`paged`, `latent` or `contiguous`");
  if (!kind)
    return std::nullopt;
  AstCacheValue cache{*kind, {}, {}, {}, {}, {}, {}};
  const bool isLatent = kind->text == "latent";
  if (!peek().is("(") && !isLatent)
    return cache;
  if (kind->text == "contiguous") {
    errorExpected("`;`").withHint("`contiguous` has no arguments");
    return std::nullopt;
  }
  // An argument has an expression or a word. `words` lists for messages which words there are.
  struct Argument {
    const char *key;
    std::optional<AstExprId> *number;
    std::optional<Ident> *word = nullptr;
    std::string words = {};
  };
  std::vector<Argument> arguments = {{"page_size", &cache.pageSize}};
  if (isLatent)
    arguments.insert(arguments.begin(),
                     {{"dim", &cache.dim}, {"rope", &cache.rope}, {"scales", &cache.scales}});
  else
    arguments.push_back({"order", nullptr, &cache.order, "`nhd` or `hnd`"});
  arguments.push_back({"dtype", nullptr, &cache.dtype, oneOfDTypes("`")});
  std::vector<std::string> keys;
  std::string all;
  for (const Argument &argument : arguments) {
    keys.push_back(argument.key);
    all += (all.empty() ? "`" : &argument == &arguments.back() ? " or `" : ", `") + keys.back() + "`";
  }
  auto element = [&] {
    std::optional<Ident> key = takeName(all);
    if (!key)
      return false;
    const auto argument = std::find_if(arguments.begin(), arguments.end(),
                                       [&](const Argument &one) { return key->text == one.key; });
    if (argument == arguments.end()) {
      sink_.error(key->range, "unknown argument `" + key->text + "` of `" + kind->text + "`")
          .withHint(isLatent && key->text == "order" ? "one KV head has no order of heads (rule A9)"
                                                     : suggest(key->text, keys));
      return false;
    }
    if (argument->number ? argument->number->has_value() : argument->word->has_value()) {
      sink_.error(key->range, "`" + key->text + "` is given twice");
      return false;
    }
    if (!expect("="))
      return false;
    if (argument->number)
      return (*argument->number = parseExpr()).has_value();
    return (*argument->word = takeName(argument->words)).has_value();
  };
  if (!parseList(element, arguments.size(), "arguments"))
    return std::nullopt;
  return cache;
}

/// "softmax" [ "with" "sink" "(" expr ")" ] | "sigmoid" [ "(" expr ")" ]
std::optional<AstValue> Parser::parseNormalize() {
  std::optional<Ident> kind = takeName("`softmax` or `sigmoid`");
  if (!kind)
    return std::nullopt;
  AstNormalizeValue normalize{*kind, std::nullopt, std::nullopt};
  std::optional<AstExprId> *value = nullptr;
  if (kind->text != "softmax" && accept("(")) {
    value = &normalize.bias;
  } else if (kind->text != "sigmoid" && accept("with")) {
    if (!expect("sink") || !expect("("))
      return std::nullopt;
    value = &normalize.sink;
  }
  if (value) {
    *value = parseExpr();
    if (!*value || !expect(")"))
      return std::nullopt;
  }
  return normalize;
}

/// ( dtype | expr [ "as" dtype ] ) [ "with" "lse" ]
std::optional<AstValue> Parser::parseOutput() {
  AstOutputValue output;
  const bool isDType = peek().kind == TokenKind::Name && parseDType(peek().text);
  if (!isDType) {
    output.value = parseExpr();
    if (!output.value)
      return std::nullopt;
  }
  if (isDType || accept("as")) {
    output.dtype = takeName("`f16` or `bf16`");
    if (!output.dtype)
      return std::nullopt;
  }
  if (accept("with")) {
    if (!expect("lse"))
      return std::nullopt;
    output.withLse = previousRange();
  }
  return output;
}

bool Parser::parseList(const std::function<bool()> &element, std::size_t limit, const char *what) {
  if (!expect("("))
    return false;
  std::size_t count = 0;
  do {
    if (count++ == limit) {
      sink_.error(peek().range, "more than the limit of " + std::to_string(limit) + " " + what);
      return false;
    }
    if (!element())
      return false;
  } while (accept(","));
  if (accept(")"))
    return true;
  errorExpected("`,` or `)`");
  return false;
}

/// expr | "tune" "(" expr { "," expr } ")"
std::optional<AstTune> Parser::parseTune() {
  AstTune tune;
  support::SourceRange first = peek().range;
  auto element = [&] {
    std::optional<AstExprId> value = parseExpr();
    if (value)
      tune.values.push_back(*value);
    return value.has_value();
  };
  tune.tunable = peek().is("tune");
  if (tune.tunable) {
    take();
    if (!parseList(element, kMaxTuneValues, "values to tune"))
      return std::nullopt;
  } else if (!element()) {
    return std::nullopt;
  }
  tune.range = rangeFrom(first);
  return tune;
}

std::optional<AstPartition> Parser::parsePartitionValue() {
  AstPartition partition;
  auto element = [&] {
    std::optional<Ident> name = takeName("a partition");
    if (name)
      partition.names.push_back(*name);
    return name.has_value();
  };
  partition.tunable = accept("tune");
  if (partition.tunable ? !parseList(element, kMaxTuneValues, "partitions") : !element())
    return std::nullopt;
  return partition;
}

AstSchedule Parser::parseSchedule() {
  AstSchedule schedule;
  parseBlock([&] { parseScheduleItem(schedule); });
  return schedule;
}

void Parser::parseScheduleItem(AstSchedule &schedule) {
  if (peek().is("phase"))
    return parsePhase(schedule);
  std::optional<Ident> key = takeName("`partition`, `chunk`, `phase` or `}`");
  if (!key)
    return recoverInBlock();
  bool isPartition = key->text == "partition";
  if (!isPartition && key->text != "chunk") {
    bool ofPhase =
        key->text == "tile_q" || key->text == "tile_kv" || key->text == "stages" || key->text == "warps";
    sink_.error(key->range, "unknown key `" + key->text + "` of a schedule")
        .withHint(ofPhase ? "`" + key->text + "` belongs into a phase"
                          : support::didYouMean(key->text, {"partition", "chunk", "phase"}));
    return recoverInBlock();
  }
  if (isPartition ? schedule.partition.has_value() : schedule.chunk.has_value())
    sink_.error(key->range, "`" + key->text + "` is given twice");
  if (!expect("="))
    return recoverInBlock();
  bool parsed;
  if (isPartition) {
    schedule.partition = parsePartitionValue();
    parsed = schedule.partition.has_value();
  } else {
    schedule.chunk = parseTune();
    parsed = schedule.chunk.has_value();
  }
  if (!parsed || !expectSemicolon())
    recoverInBlock();
}

/// "phase" name ( "when" "rows" ">" expr | "otherwise" ) "{" { phase_item } "}"
void Parser::parsePhase(AstSchedule &schedule) {
  take();
  std::optional<Ident> name = takeName("the name of the phase");
  if (!name)
    return recoverInBlock();
  AstPhase phase;
  phase.name = *name;
  support::SourceRange first = peek().range;
  if (accept("when")) {
    if (!expect("rows") || !expect(">"))
      return recoverInBlock();
    phase.rowsAbove = parseExpr();
    if (!phase.rowsAbove)
      return recoverInBlock();
  } else if (!expect("otherwise")) {
    return recoverInBlock();
  }
  phase.condition = rangeFrom(first);
  if (!parseBlock([&] { parsePhaseItem(phase); }))
    return recoverInBlock();
  if (schedule.phases.size() == kMaxPhases)
    sink_.error(phase.name.range, "more than the limit of " + std::to_string(kMaxPhases) + " phases");
  if (schedule.phases.size() <= kMaxPhases)
    schedule.phases.push_back(std::move(phase));
}

void Parser::parsePhaseItem(AstPhase &phase) {
  static const std::vector<std::string> keys = {"tile_q", "tile_kv", "stages", "warps"};
  std::optional<Ident> key = takeName("`tile_q`, `tile_kv`, `stages`, `warps` or `}`");
  if (!key)
    return recoverInBlock();
  if (std::find(keys.begin(), keys.end(), key->text) == keys.end()) {
    sink_.error(key->range, "unknown key `" + key->text + "` of a phase")
        .withHint(support::didYouMean(key->text, keys));
    return recoverInBlock();
  }
  for (const auto &[before, value] : phase.keys)
    if (before.text == key->text) {
      sink_.error(key->range, "`" + key->text + "` is given twice")
          .withNote(before.range, "it is given here first");
      return recoverInBlock();
    }
  if (!expect("="))
    return recoverInBlock();
  std::optional<AstTune> value = parseTune();
  if (!value)
    return recoverInBlock();
  phase.keys.emplace_back(*key, std::move(*value));
  if (!expectSemicolon())
    recoverInBlock();
}

} // namespace deft::spec
