#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/spec/CompileSpec.h"

#include <map>
#include <set>

namespace deft::spec {

using DeclarationMap = std::map<std::string, const AstDeclaration *, std::less<>>;

/// A file and all that it imports, with one table of top-level names.
struct ParsedFiles {
  AstArena arena;
  std::deque<AstFile> files; ///< the first is the one that was asked for
  DeclarationMap globals;
  std::map<std::string, const AstAttention *, std::less<>> attentions;
  std::set<std::string, std::less<>> brokenNames; ///< declared in a way that could not be read
  /// Functions of `library.deft` when it is not imported; read when asked for, because only hints name them.
  std::function<std::vector<std::string>()> libraryFunctions;
};

/// Parses `file` and its imports. Reports what is wrong with imports and names that are defined twice.
ParsedFiles parseFiles(support::SourceManager &sources, std::uint32_t file, const ImportResolver &resolver,
                       support::DiagnosticSink &sink);

} // namespace deft::spec
