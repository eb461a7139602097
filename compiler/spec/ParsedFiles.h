#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/spec/CompileSpec.h"

#include <map>
#include <set>

namespace deft::spec {

using DeclarationMap = std::map<std::string, const AstDeclaration *, std::less<>>;

/// A file and all files that it imports, with one table of top-level names.
struct ParsedFiles {
  AstArena arena;
  std::deque<AstFile> files; ///< the first is the file that the caller named
  DeclarationMap globals;
  std::map<std::string, const AstAttention *, std::less<>> attentions;
  std::set<std::string, std::less<>> brokenNames; ///< names whose declarations could not be parsed
  /// The functions of `library.deft` if it is not imported; loaded on demand, because only hints need them.
  std::function<std::vector<std::string>()> libraryFunctions;
};

/// Parses `file` and its imports. Reports faults of imports and names that are defined twice.
ParsedFiles parseFiles(support::SourceManager &sources, std::uint32_t file, const ImportResolver &resolver,
                       support::DiagnosticSink &sink);

} // namespace deft::spec
