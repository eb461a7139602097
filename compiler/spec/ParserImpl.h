#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/spec/Lexer.h"

#include <functional>

namespace deft::spec {

/// Recursive descent over the tokens of one file. If a function that returns an optional returns none, it has
/// reported an error. The caller that knows where the next item starts recovers.
class Parser {
public:
  Parser(std::uint32_t file, std::vector<Token> tokens, AstArena &arena, support::DiagnosticSink &sink)
      : file_(file), tokens_(std::move(tokens)), arena_(arena), sink_(sink) {}

  AstFile parseFile();

private:
  // Parser.cpp: tokens and recovery
  const Token &peek(std::size_t ahead = 0) const;
  const Token &take();
  bool accept(std::string_view text);
  bool expect(std::string_view text);
  bool expectSemicolon();
  support::SourceRange previousRange() const;
  support::SourceRange rangeFrom(support::SourceRange first) const;
  support::Diagnostic &errorExpected(const std::string &what);
  std::string hintOfOtherLanguages() const;
  std::optional<Ident> takeName(const std::string &what);
  std::optional<Ident> takeNewName(const std::string &what, bool mayHideBuiltin = false);
  void recoverInBlock();
  void recoverAtTop();
  /// Parses a declaration into `declarations`. If it fails, its name is added to the broken ones.
  template <typename Parse> bool declare(std::deque<AstDeclaration> &declarations, Parse parse);
  static bool isFunctionKind(const Token &token); ///< the word that declares a function
  bool startsItem(const Token &token, const Token &after) const;
  /// `{ item* }`: calls `item` until the block ends. An end of the file or an item of an outer block also
  /// ends it, and is reported. False if there is no `{`.
  bool parseBlock(const std::function<void()> &item);

  // Parser.cpp: declarations
  void parseTopItem(AstFile &file);
  void parseImport(AstFile &file);
  void parseAttention(AstFile &file);
  void parseAttentionItem(AstAttention &attention);
  bool parseProperty(AstAttention &attention);
  std::optional<AstFunction> parseFunction();
  std::optional<AstLet> parseLet();
  std::optional<AstParam> parseParam();
  std::optional<AstType> parseType(bool mayBeBool);
  /// Parses `]`; `word` names the elements.
  std::optional<AstType> closeArray(AstType type, support::SourceRange word, support::SourceRange first);

  // ParserValues.cpp
  std::optional<AstValue> parseValue(const Ident &key);
  std::optional<AstValue> parseCache();
  std::optional<AstValue> parseNormalize();
  std::optional<AstValue> parseOutput();
  AstSchedule parseSchedule();
  void parseScheduleItem(AstSchedule &schedule);
  void parsePhase(AstSchedule &schedule);
  void parsePhaseItem(AstPhase &phase);
  AstSelect parseSelect(); // ParserSelect.cpp
  void parseSelectItem(AstSelect &select);
  std::optional<AstTune> parseTune();
  std::optional<AstPartition> parsePartitionValue();
  /// `( element, element )` after a word; requires at least one element.
  bool parseList(const std::function<bool()> &element, std::size_t limit, const char *what);

  // ParserExpr.cpp
  std::optional<AstExprId> parseExpr();
  std::optional<AstExprId> parseBinary(int minPrecedence);
  std::optional<AstExprId> parseUnary();
  std::optional<AstExprId> parsePrimary();
  std::optional<AstExprId> parseCallOrName();
  std::optional<AstExprId> addExpr(AstExpr expr);
  bool tooDeep(support::SourceRange range);

  std::uint32_t file_;
  std::vector<Token> tokens_;
  AstArena &arena_;
  support::DiagnosticSink &sink_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::vector<support::SourceRange> openBlocks_; ///< the `{` of each block that is still open
  bool endReported_ = false;                     ///< the file ended too early, and this was reported
  std::set<std::string> brokenNames_;
  std::size_t closedEarlyAt_ = 0; ///< the token that closed a block without `}`
};

} // namespace deft::spec
