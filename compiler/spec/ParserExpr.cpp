#include "compiler/spec/Limits.h"
#include "compiler/spec/ParserImpl.h"

#include <algorithm>

namespace deft::spec {
namespace {

const Operation *binaryOperator(const Token &token) {
  if (token.kind == TokenKind::Punctuator)
    for (const Operation &candidate : operations())
      if (candidate.precedence > 0 && token.text == candidate.symbol)
        return &candidate;
  return nullptr;
}

support::SourceRange join(support::SourceRange first, support::SourceRange last) {
  return {first.file, first.begin, last.end};
}

Ident identOf(const Token &token) { return {std::string(token.text), token.range}; }

class Counted {
public:
  explicit Counted(int &count) : count_(count) { ++count_; }
  ~Counted() { --count_; }

private:
  int &count_;
};

} // namespace

bool Parser::tooDeep(support::SourceRange range) {
  sink_.error(range, "the expression is nested deeper than the limit of " + std::to_string(kMaxNesting))
      .withHint("name a part of it with `let`");
  return true;
}

std::optional<AstExprId> Parser::addExpr(AstExpr expr) {
  for (AstExprId operand : expr.operands)
    expr.depth = std::max(expr.depth, arena_[operand].depth + 1);
  if (expr.depth > kMaxNesting) {
    tooDeep(expr.name.text.empty() ? expr.range : expr.name.range);
    return std::nullopt;
  }
  arena_.push_back(std::move(expr));
  return static_cast<AstExprId>(arena_.size() - 1);
}

/// expr = or [ "?" expr ":" expr ]
std::optional<AstExprId> Parser::parseExpr() {
  Counted nesting(nesting_);
  if (nesting_ > kMaxNesting) {
    tooDeep(peek().range);
    return std::nullopt;
  }
  std::optional<AstExprId> condition = parseBinary(1);
  if (!condition || !accept("?"))
    return condition;
  std::optional<AstExprId> yes = parseExpr();
  if (!yes || !expect(":"))
    return std::nullopt;
  std::optional<AstExprId> no = parseExpr();
  if (!no)
    return std::nullopt;
  AstExpr expr;
  expr.kind = AstExprKind::Conditional;
  expr.range = join(arena_[*condition].range, arena_[*no].range);
  expr.op = ExprOp::Select;
  expr.operands = {*condition, *yes, *no};
  return addExpr(std::move(expr));
}

std::optional<AstExprId> Parser::parseBinary(int minPrecedence) {
  std::optional<AstExprId> left = parseUnary();
  while (left) {
    const Operation *op = binaryOperator(peek());
    if (!op || op->precedence < minPrecedence)
      break;
    AstExpr expr;
    expr.kind = AstExprKind::Binary;
    expr.op = op->op;
    expr.name = identOf(take());
    std::optional<AstExprId> right = parseBinary(op->precedence + 1);
    if (!right)
      return std::nullopt;
    expr.range = join(arena_[*left].range, arena_[*right].range);
    expr.operands = {*left, *right};
    left = addExpr(std::move(expr));
  }
  return left;
}

std::optional<AstExprId> Parser::parseUnary() {
  if (!peek().is("-") && !peek().is("!"))
    return parsePrimary();
  Counted nesting(nesting_);
  if (nesting_ > kMaxNesting) {
    tooDeep(peek().range);
    return std::nullopt;
  }
  AstExpr expr;
  expr.kind = AstExprKind::Unary;
  expr.op = peek().is("-") ? ExprOp::Neg : ExprOp::Not;
  expr.name = identOf(take());
  std::optional<AstExprId> operand = parseUnary();
  if (!operand)
    return std::nullopt;
  expr.range = join(expr.name.range, arena_[*operand].range);
  expr.operands = {*operand};
  return addExpr(std::move(expr));
}

std::optional<AstExprId> Parser::parsePrimary() {
  const Token &token = peek();
  if (accept("(")) {
    std::optional<AstExprId> inner = parseExpr();
    if (!inner || !expect(")"))
      return std::nullopt;
    return inner;
  }
  if (token.kind == TokenKind::Integer || token.kind == TokenKind::Float) {
    AstExpr expr;
    expr.kind = token.kind == TokenKind::Integer ? AstExprKind::Integer : AstExprKind::Float;
    expr.range = token.range;
    expr.number = token.number;
    take();
    return addExpr(std::move(expr));
  }
  const bool isOtherNot =
      token.is("not") && (peek(1).kind == TokenKind::Name || peek(1).kind == TokenKind::Integer ||
                          peek(1).kind == TokenKind::Float);
  if (token.kind == TokenKind::Name && !startsItem(token, peek(1)) && !isOtherNot)
    return parseCallOrName();
  errorExpected("an expression");
  return std::nullopt;
}

std::optional<AstExprId> Parser::parseCallOrName() {
  AstExpr expr;
  expr.kind = AstExprKind::Name;
  expr.name = identOf(take());
  expr.range = expr.name.range;
  if (accept("(")) {
    expr.kind = AstExprKind::Call;
    while (!peek().is(")")) {
      if (expr.operands.size() == kMaxArguments) {
        sink_.error(peek().range,
                    "a call has more than the limit of " + std::to_string(kMaxArguments) + " arguments");
        return std::nullopt;
      }
      std::optional<AstExprId> argument = parseExpr();
      if (!argument)
        return std::nullopt;
      expr.operands.push_back(*argument);
      if (!accept(","))
        break;
    }
    if (!peek().is(")")) {
      errorExpected("`,` or `)`");
      return std::nullopt;
    }
    take();
  } else if (accept("[")) {
    expr.kind = AstExprKind::Index;
    constexpr std::size_t kMostIndices = 2; // of what has elements for tokens and KV heads
    do {
      std::optional<AstExprId> index = parseExpr();
      if (!index)
        return std::nullopt;
      expr.operands.push_back(*index);
    } while (expr.operands.size() < kMostIndices && accept(","));
    if (!expect("]"))
      return std::nullopt;
  }
  expr.range = join(expr.range, previousRange());
  return addExpr(std::move(expr));
}

} // namespace deft::spec
