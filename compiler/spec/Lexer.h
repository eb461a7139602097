#pragma once

#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <string_view>
#include <vector>

namespace deft::spec {

enum class TokenKind { Name, Integer, Float, String, Punctuator, End };

struct Token {
  TokenKind kind = TokenKind::End;
  support::SourceRange range;
  std::string_view text; ///< as written; a string does not include its quotes
  double number = 0;     ///< Integer, Float
  bool firstOnLine = false;
  bool isUnclosed = false; ///< a string without a closing quote: it extends to the end of the line
  /// Between this token and the operand before it, a comment looks like the rest of a division, as in `kv_pos
  /// // 16;`.
  bool followsDivision = false;

  bool is(std::string_view punctuatorOrWord) const {
    return (kind == TokenKind::Punctuator || kind == TokenKind::Name) && text == punctuatorOrWord;
  }
};

/// The tokens of a file; the last one has the kind End and lies at the file's last byte. Invalid characters
/// are reported, once for each run of them, and skipped.
std::vector<Token> lex(const support::SourceManager &sources, std::uint32_t file,
                       support::DiagnosticSink &sink);

} // namespace deft::spec
