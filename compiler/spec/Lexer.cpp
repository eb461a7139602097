#include "compiler/spec/Lexer.h"

#include "compiler/spec/Limits.h"
#include "compiler/support/Utf8.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace deft::spec {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }
bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Longest first.
constexpr std::array<std::string_view, 24> kPunctuators = {"&&", "||", "==", "!=", "<=", ">=", "{", "}",
                                                           "(",  ")",  "[",  "]",  ";",  ":",  ",", "=",
                                                           "<",  ">",  "!",  "+",  "-",  "*",  "/", "%"};

class Lexer {
public:
  Lexer(std::string_view text, std::uint32_t file, support::DiagnosticSink &sink)
      : text_(text), file_(file), sink_(sink) {}

  std::vector<Token> run() {
    while (skipBlanks(), at_ < text_.size())
      next();
    push(TokenKind::End, at_, {});
    return std::move(tokens_);
  }

private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  support::SourceRange rangeFrom(std::size_t begin) const {
    return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
  }

  Token &push(TokenKind kind, std::size_t begin, std::string_view text) {
    tokens_.push_back({kind, rangeFrom(begin), text, 0, lineStart_, false, sawDivision_});
    lineStart_ = sawDivision_ = false;
    return tokens_.back();
  }

  void skipBlanks() {
    while (at_ < text_.size()) {
      if (isSpace(peek())) {
        lineStart_ |= peek() == '\n';
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        const std::size_t begin = at_;
        skipLine();
        sawDivision_ |=
            !lineStart_ && isBehindOperand() && isRestOfDivision(text_.substr(begin + 2, at_ - begin - 2));
      } else {
        return;
      }
    }
  }

  void skipLine() {
    while (at_ < text_.size() && peek() != '\n')
      ++at_;
  }

  bool isBehindOperand() const {
    if (tokens_.empty())
      return false;
    const Token &last = tokens_.back();
    return last.kind == TokenKind::Name || last.kind == TokenKind::Integer || last.kind == TokenKind::Float ||
           last.is(")") || last.is("]");
  }

  /// What other languages divide by behind `//`.
  static bool isRestOfDivision(std::string_view comment) {
    const std::size_t first = comment.find_first_not_of(" \t"), last = comment.find_last_not_of(" \t\r");
    return first != std::string_view::npos && (isDigit(comment[first]) || comment[last] == ';');
  }

  void next() {
    std::size_t begin = at_;
    if (isNameStart(peek()))
      return name(begin);
    if (isDigit(peek()) || (peek() == '.' && isDigit(peek(1))))
      return number(begin);
    if (peek() == '"')
      return string(begin);
    if (peek() == '/' && peek(1) == '*')
      return blockComment(begin);
    if (peek() == '#')
      return hashComment(begin);
    if (peek() == '?') {
      ++at_;
      push(TokenKind::Punctuator, begin, text_.substr(begin, 1));
      return;
    }
    for (std::string_view punctuator : kPunctuators)
      if (text_.substr(begin, punctuator.size()) == punctuator) {
        at_ += punctuator.size();
        push(TokenKind::Punctuator, begin, text_.substr(begin, punctuator.size()));
        return;
      }
    unexpected(begin);
  }

  void name(std::size_t begin) {
    while (isNamePart(peek()))
      ++at_;
    std::string_view text = text_.substr(begin, at_ - begin);
    if (text.size() > kMaxNameLength) {
      sink_.error(rangeFrom(begin), "the name has " + std::to_string(text.size()) +
                                        " characters, the limit is " + std::to_string(kMaxNameLength));
      text = text.substr(0, kMaxNameLength);
    }
    push(TokenKind::Name, begin, text);
  }

  void number(std::size_t begin) {
    bool isFloat = false;
    bool wellFormed = peek() != '.';
    while (isDigit(peek()))
      ++at_;
    if (peek() == '.') {
      isFloat = true;
      ++at_;
      wellFormed &= isDigit(peek());
      while (isDigit(peek()))
        ++at_;
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (isDigit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && isDigit(peek(2))))) {
      isFloat = true;
      at_ += 2;
      while (isDigit(peek()))
        ++at_;
    }
    std::string_view digits = text_.substr(begin, at_ - begin);
    std::size_t suffix = at_;
    while (isNamePart(peek()) || peek() == '.')
      ++at_;
    if (at_ != suffix) {
      sink_
          .error(rangeFrom(suffix),
                 "`" + std::string(text_.substr(suffix, std::min<std::size_t>(at_ - suffix, 32))) +
                     "` may not follow a number")
          .withHint("numbers are written like 16, 0.5 and 1e-3, without a suffix");
    } else if (!wellFormed) {
      sink_.error(rangeFrom(begin), "a number needs digits on both sides of its point");
    }
    Token &token = push(isFloat ? TokenKind::Float : TokenKind::Integer, begin, digits);
    // Out of range leaves the value alone; infinity then says so to those who read it.
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.number);
    if (error == std::errc::result_out_of_range)
      token.number = isTiny(digits) ? 0 : HUGE_VAL;
  }

  /// Whether a number out of double's range is too small rather than too large.
  static bool isTiny(std::string_view digits) {
    std::size_t e = digits.find_first_of("eE");
    return e != std::string_view::npos && e + 1 < digits.size() && digits[e + 1] == '-';
  }

  void string(std::size_t begin) {
    ++at_;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n')
      ++at_;
    std::string_view text = text_.substr(begin + 1, at_ - begin - 1);
    bool isClosed = peek() == '"';
    if (isClosed)
      ++at_;
    else
      sink_.error(rangeFrom(begin), "the string has no closing `\"` on its line");
    push(TokenKind::String, begin, text).isUnclosed = !isClosed;
  }

  void blockComment(std::size_t begin) {
    std::size_t end = text_.find("*/", begin + 2);
    at_ = begin + 2;
    noComment(begin, "`/*`");
    if (end != std::string_view::npos)
      at_ = end + 2;
  }

  void hashComment(std::size_t begin) {
    ++at_;
    noComment(begin, "`#`");
    skipLine();
  }

  void noComment(std::size_t begin, const std::string &what) {
    sink_.error(rangeFrom(begin), what + " does not start a comment")
        .withHint("comments start with `//` and end with the line");
  }

  bool startsToken(char c) const {
    if (isSpace(c) || isNamePart(c) || c == '"' || c == '?')
      return true;
    for (std::string_view punctuator : kPunctuators)
      if (punctuator.front() == c)
        return c != '&' && c != '|';
    return false;
  }

  void unexpected(std::size_t begin) {
    unsigned char first = static_cast<unsigned char>(peek());
    do
      ++at_;
    while (at_ < text_.size() && !startsToken(peek()) &&
           !(peek() == peek(1) && (peek() == '&' || peek() == '|')));
    std::size_t count = support::countCodePoints(text_.substr(begin, at_ - begin));
    std::string what;
    if (first < 0x20 || first == 0x7F || (count == 1 && first >= 0x80)) {
      char hex[32];
      std::snprintf(hex, sizeof hex, first < 0x80 ? "control character 0x%02x" : "character outside ASCII",
                    first);
      what = std::string("unexpected ") + hex;
    } else if (count == 1) {
      what = std::string("unexpected character `") + static_cast<char>(first) + "`";
    } else {
      what = "unexpected characters";
    }
    bool halfOperator = count == 1 && (first == '&' || first == '|');
    support::Diagnostic &report = sink_.error(rangeFrom(begin), what);
    if (halfOperator)
      report.withHint(std::string("did you mean `") + static_cast<char>(first) + static_cast<char>(first) +
                      "`?");
    // Read on as if it were doubled: the operator is clear, and a second error about it would be noise.
    if (halfOperator)
      push(TokenKind::Punctuator, begin, first == '&' ? "&&" : "||");
  }

  std::string_view text_;
  std::uint32_t file_;
  support::DiagnosticSink &sink_;
  std::size_t at_ = 0;
  bool lineStart_ = true, sawDivision_ = false;
  std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> lex(const support::SourceManager &sources, std::uint32_t file,
                       support::DiagnosticSink &sink) {
  return Lexer(sources.text(file), file, sink).run();
}

} // namespace deft::spec
