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
  std::string_view text; ///< as written; a string without its quotes
  double number = 0;     ///< Integer, Float
  bool firstOnLine = false;
  bool isUnclosed = false; ///< a string that took the rest of its line
  /// Between it and the operand before is a comment that reads like the rest of a division, as in `kv_pos //
  /// 16;`.
  bool followsDivision = false;

  bool is(std::string_view punctuatorOrWord) const {
    return (kind == TokenKind::Punctuator || kind == TokenKind::Name) && text == punctuatorOrWord;
  }
};

/// The tokens of a file, the last of kind End at the file's last byte. Wrong characters are reported and left
/// out, a run of them once.
std::vector<Token> lex(const support::SourceManager &sources, std::uint32_t file,
                       support::DiagnosticSink &sink);

} // namespace deft::spec
