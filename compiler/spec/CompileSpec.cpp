#include "compiler/spec/CompileSpec.h"

#include "compiler/spec/AttentionSema.h"
#include "compiler/spec/Warnings.h"

namespace deft::spec {
namespace {

/// Top-level functions and `let`s by themselves, used or not. The functions that are wrong.
std::set<const AstFunction *> checkGlobals(const ParsedFiles &parsed, Reporter &reporter) {
  std::set<const AstFunction *> bad;
  for (const AstFile &file : parsed.files)
    for (const AstDeclaration &declaration : file.declarations) {
      std::vector<Param> params;
      ExprSema checker(parsed, nullptr, params, nullptr, reporter);
      checker.addBadFunctions(bad);
      if (const auto *function = std::get_if<AstFunction>(&declaration))
        checker.checkFunction(*function, nullptr);
      else
        checker.checkLet(std::get<AstLet>(declaration), nullptr);
      bad = checker.badFunctions();
    }
  return bad;
}

} // namespace

std::vector<Variant> compileSpec(support::SourceManager &sources, std::uint32_t file,
                                 const ImportResolver &resolver, support::DiagnosticSink &sink) {
  std::vector<Variant> variants;
  ParsedFiles parsed = parseFiles(sources, file, resolver, sink);
  if (!parsed.files.empty()) {
    Reporter reporter(sink);
    std::set<const AstFunction *> bad = checkGlobals(parsed, reporter);
    for (const AstAttention &attention : parsed.files.front().attentions)
      if (auto merged = mergeAttention(parsed, attention, reporter))
        variants.push_back(AttentionSema(parsed, *merged, bad, reporter).run());
  }
  if (!sink.hasErrors())
    warnOf(variants, sources, file, sink);
  sink.sortByPosition();
  if (sink.hasErrors())
    variants.clear();
  return variants;
}

} // namespace deft::spec
