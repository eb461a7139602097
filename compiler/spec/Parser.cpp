#include "compiler/spec/Parser.h"

#include "compiler/spec/ForeignWords.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/spec/ParserImpl.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

namespace deft::spec {

using support::SourceRange;

const Token &Parser::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token &Parser::take() {
  const Token &token = peek();
  if (at_ + 1 < tokens_.size())
    ++at_;
  return token;
}

bool Parser::accept(std::string_view text) {
  if (!peek().is(text))
    return false;
  take();
  return true;
}

bool Parser::expect(std::string_view text) {
  if (accept(text))
    return true;
  errorExpected("`" + std::string(text) + "`");
  return false;
}

SourceRange Parser::previousRange() const {
  return at_ > 0 ? tokens_[at_ - 1].range : SourceRange{file_, 0, 0};
}

SourceRange Parser::rangeFrom(SourceRange first) const { return {file_, first.begin, previousRange().end}; }

support::Diagnostic &Parser::errorExpected(const std::string &what) {
  const Token &token = peek();
  if (token.kind == TokenKind::End) {
    support::Diagnostic &report = sink_.error(token.range, "expected " + what + ", got the end of the file");
    for (auto open = openBlocks_.rbegin(); open != openBlocks_.rend(); ++open)
      report.withNote(*open, "this `{` is not closed");
    endReported_ = true; // said once; the blocks around end silently
    return report;
  }
  std::string got = token.kind == TokenKind::String ? "a string" : "`" + std::string(token.text) + "`";
  return sink_.error(token.range, "expected " + what + ", got " + got).withHint(hintOfOtherLanguages());
}

/// What the next token is in the expressions of other languages; "": nothing.
std::string Parser::hintOfOtherLanguages() const {
  const Token &token = peek();
  if (token.followsDivision)
    return "`//` begins a comment; `floor_div(a, b)` divides and rounds down";
  if (token.is("*") && at_ > 0 && tokens_[at_ - 1].is("*"))
    return "there is no `**`; a square is `x * x`, other powers are `exp2(y * log2(x))`";
  return token.kind == TokenKind::Name ? hintForOperator(token.text) : "";
}

/// A missing `;` is reported where it belongs, after the last token, when the next token starts a line.
bool Parser::expectSemicolon() {
  if (accept(";") || (at_ > 0 && tokens_[at_ - 1].isUnclosed))
    return true;
  if (at_ > 0 && (peek().firstOnLine || peek().is("}")) && peek().kind != TokenKind::End) {
    std::uint32_t end = previousRange().end;
    sink_.error({file_, end, end}, "expected `;`").withHint(hintOfOtherLanguages());
    return true;
  }
  errorExpected("`;`");
  return false;
}

std::optional<Ident> Parser::takeName(const std::string &what) {
  if (peek().kind != TokenKind::Name) {
    errorExpected(what);
    return std::nullopt;
  }
  const Token &token = take();
  return Ident{std::string(token.text), token.range};
}

std::optional<Ident> Parser::takeNewName(const std::string &what, bool mayHideBuiltin) {
  std::optional<Ident> name = takeName(what);
  if (name && isReservedWord(name->text) && !(mayHideBuiltin && parseBuiltin(name->text))) {
    sink_.error(name->range, "`" + name->text + "` is a word of the language and cannot be declared");
    return std::nullopt;
  }
  return name;
}

bool Parser::isFunctionKind(const Token &token) {
  return std::any_of(functionKinds().begin(), functionKinds().end(),
                     [&](const std::string &kind) { return token.is(kind); });
}

/// Whether a token that begins a line begins an item there, rather than going on with an expression.
bool Parser::startsItem(const Token &token, const Token &after) const {
  if (!token.firstOnLine || token.kind != TokenKind::Name)
    return false;
  std::string_view text = token.text;
  if (text == "attention" || text == "import" || text == "param" || text == "let" || text == "phase")
    return after.kind == TokenKind::Name || after.kind == TokenKind::String;
  if (text == "schedule" || text == "select")
    return after.is("{");
  return after.is("=") || (isFunctionKind(token) && after.kind == TokenKind::Name);
}

void Parser::recoverInBlock() {
  int depth = 0;
  while (peek().kind != TokenKind::End) {
    if (depth == 0 && (peek().is("}") || startsItem(peek(), peek(1))))
      return;
    const Token &token = take();
    depth += token.is("{");
    if (token.is("}") && --depth == 0)
      return;
    if (depth == 0 && token.is(";"))
      return;
  }
}

void Parser::recoverAtTop() {
  int depth = 0;
  while (peek().kind != TokenKind::End) {
    if (startsItem(peek(), peek(1)) && (depth == 0 || peek().is("attention")))
      return;
    const Token &token = take();
    depth += token.is("{");
    if (token.is("}") && --depth <= 0)
      return;
    if (depth == 0 && token.is(";"))
      return;
  }
}

bool Parser::parseBlock(const std::function<void()> &item) {
  SourceRange open = peek().range;
  if (!expect("{"))
    return false;
  openBlocks_.push_back(open);
  while (!accept("}")) {
    if (peek().kind == TokenKind::End) {
      if (!endReported_)
        errorExpected("`}`");
      break;
    }
    // An item of an outer block closes this one; of several blocks only the innermost is said to be open.
    bool outer = openBlocks_.size() == 1
                     ? peek().is("attention") || peek().is("import")
                     : peek().is("attention") || (openBlocks_.size() == 3 && peek().is("phase"));
    if (outer && startsItem(peek(), peek(1))) {
      if (closedEarlyAt_ != at_)
        errorExpected("`}`").withNote(open, "this `{` is not closed");
      closedEarlyAt_ = at_;
      break;
    }
    std::size_t before = at_;
    item();
    if (at_ == before && !peek().is("}") && peek().kind != TokenKind::End)
      take(); // whatever went wrong, each round moves on
  }
  openBlocks_.pop_back();
  return true;
}

AstFile Parser::parseFile() {
  AstFile file;
  file.file = file_;
  while (peek().kind != TokenKind::End) {
    std::size_t before = at_;
    parseTopItem(file);
    if (at_ == before)
      take();
  }
  file.brokenNames = std::move(brokenNames_);
  return file;
}

template <typename Parse> bool Parser::declare(std::deque<AstDeclaration> &declarations, Parse parse) {
  std::string name(peek(1).text);
  auto parsed = parse();
  if (!parsed) {
    brokenNames_.insert(std::move(name));
    return false;
  }
  declarations.push_back(std::move(*parsed));
  return true;
}

void Parser::parseTopItem(AstFile &file) {
  if (peek().is("import"))
    return parseImport(file);
  if (peek().is("attention"))
    return parseAttention(file);
  bool isLet = peek().is("let");
  if (isLet || isFunctionKind(peek())) {
    bool read = isLet ? declare(file.declarations, [&] { return parseLet(); })
                      : declare(file.declarations, [&] { return parseFunction(); });
    if (!read)
      recoverAtTop();
    return;
  }
  std::string word(peek().text);
  bool isWord = peek().kind == TokenKind::Name;
  support::Diagnostic &report = errorExpected("`attention`, `import`, `let` or a function");
  if (peek().is("param"))
    report.withHint("parameters are declared inside of an attention");
  else if (isWord) {
    std::vector<std::string> words = {"attention", "import"};
    words.insert(words.end(), functionKinds().begin(), functionKinds().end());
    words.push_back("let");
    report.withHint(support::didYouMean(word, words));
  }
  take();
  recoverAtTop();
}

void Parser::parseImport(AstFile &file) {
  take();
  if (peek().kind != TokenKind::String) {
    errorExpected("the path of a file in quotes").withHint("for example `import \"library.deft\";`");
    return recoverAtTop();
  }
  const Token &path = take();
  file.imports.push_back({std::string(path.text), path.range});
  if (!expectSemicolon())
    recoverAtTop();
}

void Parser::parseAttention(AstFile &file) {
  take();
  std::optional<Ident> name = takeName("the name of the attention");
  if (!name)
    return recoverAtTop();
  AstAttention attention;
  attention.name = *name;
  if (accept(":")) {
    attention.base = takeName("the name of the attention to inherit from");
    if (!attention.base)
      return recoverAtTop();
  }
  if (!peek().is("{")) {
    errorExpected(attention.base ? "`{`" : "`{` or `:`");
    return recoverAtTop();
  }
  parseBlock([&] { parseAttentionItem(attention); });
  attention.isBroken |= endReported_ || closedEarlyAt_ == at_;
  file.attentions.push_back(std::move(attention));
}

void Parser::parseAttentionItem(AstAttention &attention) {
  bool isFunction = isFunctionKind(peek()) && !peek(1).is("=");
  bool read = true;
  if (isFunction)
    read = declare(attention.declarations, [&] { return parseFunction(); });
  else if (peek().is("let"))
    read = declare(attention.declarations, [&] { return parseLet(); });
  else if (peek().is("param"))
    read = declare(attention.declarations, [&] { return parseParam(); });
  else
    read = parseProperty(attention);
  if (read)
    return;
  attention.isBroken = true;
  recoverInBlock();
}

bool Parser::parseProperty(AstAttention &attention) {
  std::optional<Ident> key = takeName("a key, `param`, `let`, a function or `}`");
  if (!key)
    return false;
  const auto &keys = attentionKeys();
  if (std::find(keys.begin(), keys.end(), key->text) == keys.end()) {
    std::vector<std::string> words = keys;
    words.insert(words.end(), {"param", "let"});
    sink_.error(key->range, "unknown key `" + key->text + "`").withHint(suggest(key->text, words));
    return false;
  }
  AstProperty property{*key, {}, {}};
  const bool isSchedule = key->text == "schedule";
  if (isSchedule || key->text == "select") {
    if (!peek().is("{")) {
      errorExpected("`{`");
      return false;
    }
    property.value = isSchedule ? AstValue(parseSchedule()) : AstValue(parseSelect());
    property.valueRange = key->range;
    attention.properties.push_back(std::move(property));
    return true;
  }
  if (!expect("="))
    return false;
  SourceRange first = peek().range;
  std::optional<AstValue> value = parseValue(*key);
  if (!value)
    return false;
  property.valueRange = rangeFrom(first);
  property.value = std::move(*value);
  attention.properties.push_back(std::move(property));
  return expectSemicolon();
}

/// ( "mask" | "score" | "query" | "key" | "value" | "output" ) name "(" [ formal { "," formal } ] ")" "="
/// expr ";"
std::optional<AstFunction> Parser::parseFunction() {
  AstFunction function;
  const Token &kind = take();
  function.kind = {std::string(kind.text), kind.range};
  std::optional<Ident> name = takeNewName("the name of the function");
  if (!name || !expect("("))
    return std::nullopt;
  function.name = *name;
  while (!peek().is(")")) {
    if (function.formals.size() == kMaxArguments) {
      sink_.error(peek().range,
                  "a function has more than the limit of " + std::to_string(kMaxArguments) + " arguments");
      return std::nullopt;
    }
    std::optional<Ident> formal = takeNewName("the name of an argument", /*mayHideBuiltin=*/true);
    if (!formal || !expect(":"))
      return std::nullopt;
    std::optional<AstType> type = parseType(/*mayBeBool=*/true);
    if (!type)
      return std::nullopt;
    function.formals.push_back({*formal, *type});
    if (!accept(","))
      break;
  }
  if (!expect(")") || !expect("="))
    return std::nullopt;
  std::optional<AstExprId> body = parseExpr();
  if (!body || !expectSemicolon())
    return std::nullopt;
  function.body = *body;
  return function;
}

std::optional<AstLet> Parser::parseLet() {
  take();
  std::optional<Ident> name = takeNewName("the name of the value");
  if (!name || !expect("="))
    return std::nullopt;
  std::optional<AstExprId> value = parseExpr();
  if (!value || !expectSemicolon())
    return std::nullopt;
  return AstLet{*name, *value};
}

/// "param" name ":" type [ "=" expr ] ";"
std::optional<AstParam> Parser::parseParam() {
  take();
  AstParam param;
  std::optional<Ident> name = takeNewName("the name of the parameter");
  if (!name)
    return std::nullopt;
  if (!accept(":")) {
    const bool hasNumber =
        peek().is("=") && (peek(1).kind == TokenKind::Integer || peek(1).kind == TokenKind::Float);
    errorExpected("`:`").withHint("a parameter has a type, f32 or i32: `param " + name->text + " : f32" +
                                  (hasNumber ? " = " + std::string(peek(1).text) : "") + ";`");
    return std::nullopt;
  }
  param.name = *name;
  std::optional<AstType> type = parseType(/*mayBeBool=*/false);
  if (!type)
    return std::nullopt;
  param.type = *type;
  if (accept("=")) {
    param.defaultValue = parseExpr();
    if (!param.defaultValue)
      return std::nullopt;
  }
  if (!expectSemicolon())
    return std::nullopt;
  return param;
}

std::optional<AstType> Parser::parseType(bool mayBeBool) {
  const char *known = mayBeBool ? "a type (f32, i32 or bool)" : "a type (f32 or i32)";
  SourceRange first = peek().range;
  std::optional<Ident> word = takeName(known);
  if (!word)
    return std::nullopt;
  std::optional<ScalarType> scalar = parseScalarType(word->text);
  if (!scalar || (*scalar == ScalarType::Bool && !mayBeBool)) {
    sink_.error(word->range, "`" + word->text + "` is not " + known)
        .withHint(suggest(word->text, {"f32", "i32"}));
    return std::nullopt;
  }
  AstType type{*scalar, Param::Shape::Scalar, first};
  if (accept("[")) {
    if (peek().kind == TokenKind::Integer) {
      const Token size = take();
      if (size.number < 1 || size.number > kMaxTable) {
        sink_.error(size.range, "a table has 1 to " + std::to_string(kMaxTable) + " elements, not " +
                                    std::string(size.text));
        return std::nullopt;
      }
      type.shape = Param::Shape::Table;
      type.size = static_cast<int>(size.number);
      return closeArray(type, word->range, first);
    }
    std::optional<Ident> count = takeName("`query_heads`, `kv_heads`, `tokens` or `queries`");
    if (!count)
      return std::nullopt;
    std::optional<Param::Shape> shape = parseShape(count->text);
    if (!shape || *shape == Param::Shape::Scalar || *shape == Param::Shape::Table) {
      sink_
          .error(count->range,
                 "an array has one element for each of `query_heads`, `kv_heads`, `tokens`, `queries` "
                 "or `tokens, kv_heads`, not `" +
                     count->text + "`")
          .withHint(suggest(count->text, {"query_heads", "kv_heads", "tokens", "queries"}));
      return std::nullopt;
    }
    type.shape = *shape;
    if (type.shape == Param::Shape::PerToken && accept(",")) {
      if (!expect("kv_heads"))
        return std::nullopt;
      type.shape = Param::Shape::PerTokenAndHead;
    }
    return closeArray(type, word->range, first);
  }
  type.range = rangeFrom(first);
  return type;
}

std::optional<AstType> Parser::closeArray(AstType type, SourceRange word, SourceRange first) {
  if (!expect("]"))
    return std::nullopt;
  if (type.scalar == ScalarType::Bool) {
    sink_.error(word, "an array holds f32 or i32, not bool");
    return std::nullopt;
  }
  type.range = rangeFrom(first);
  return type;
}

AstFile parse(const support::SourceManager &sources, std::uint32_t file, AstArena &arena,
              support::DiagnosticSink &sink) {
  return Parser(file, lex(sources, file, sink), arena, sink).parseFile();
}

} // namespace deft::spec
