#include "compiler/spec/Parser.h"
#include "compiler/spec/VariantJson.h"
#include "tools/deftc/emit/Emitters.h"

#include <nlohmann/json.hpp>

namespace deft::cli {
namespace {

support::Result<std::string> emitAst(const LoadedSpec &spec, const spec::Variant &) {
  // The spec has passed the check, so parsing it again finds nothing to say.
  spec::AstArena arena;
  support::DiagnosticSink sink;
  spec::AstFile file = spec::parse(spec.sources, spec.file, arena, sink);
  return spec::printAst(file, arena);
}

support::Result<std::string> emitJson(const LoadedSpec &, const spec::Variant &variant) {
  return spec::toJson(variant).dump(2) + "\n";
}

} // namespace

void addFrontEndEmitters(CLI::App &, EmitterTable &table) {
  table.add({"ast", "the syntax tree of the file", emitAst, /*wholeFile=*/true});
  table.add({"json", "the checked variant", emitJson});
}

} // namespace deft::cli
