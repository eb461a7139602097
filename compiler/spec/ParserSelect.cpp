#include "compiler/spec/ParserImpl.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

namespace deft::spec {

AstSelect Parser::parseSelect() {
  AstSelect select;
  parseBlock([&] { parseSelectItem(select); });
  return select;
}

/// ( "budget" "=" tune | "by" "=" name | ( "keep_first" | "keep_last" ) "=" expr ) ";"
void Parser::parseSelectItem(AstSelect &select) {
  static const std::vector<std::string> keys = {"budget", "by", "keep_first", "keep_last"};
  std::optional<Ident> key = takeName("`budget`, `by`, `keep_first`, `keep_last` or `}`");
  if (!key)
    return recoverInBlock();
  if (std::find(keys.begin(), keys.end(), key->text) == keys.end()) {
    sink_.error(key->range, "unknown key `" + key->text + "` of a selection")
        .withHint(support::didYouMean(key->text, keys));
    return recoverInBlock();
  }
  const auto take = [&](auto &value, auto parse) {
    if (value)
      sink_.error(key->range, "`" + key->text + "` is given twice");
    if (!expect("="))
      return false;
    value = parse();
    return value.has_value() && expectSemicolon();
  };
  const auto expr = [&] { return parseExpr(); };
  bool read = false;
  if (key->text == "budget")
    read = take(select.budget, [&] { return parseTune(); });
  else if (key->text == "by")
    read = take(select.by, [&] { return takeName("`kv_head`, `query_head`, `query` or `caller`"); });
  else
    read = take(key->text == "keep_first" ? select.keepFirst : select.keepLast, expr);
  if (!read)
    recoverInBlock();
}

} // namespace deft::spec
