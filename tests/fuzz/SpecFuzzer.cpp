// Any bytes as a spec: the front end must neither crash, hang nor contradict itself.
#include "compiler/spec/CompileSpec.h"
#include "compiler/spec/Parser.h"
#include "compiler/spec/VariantJson.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"
#include "tests/fuzz/Require.h"

#include <nlohmann/json.hpp>

using namespace deft;

using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  std::uint32_t file = sources.add("fuzz.deft", std::string(reinterpret_cast<const char *>(data), size));
  std::vector<spec::Variant> variants = spec::compileSpec(sources, file, specs::importResolver(), sink);
  support::renderDiagnostics(sources, sink, {true});
  for (const support::Diagnostic &diagnostic : sink.diagnostics()) {
    require(!diagnostic.message.empty(), "a diagnostic without a message");
    require(diagnostic.range.begin <= diagnostic.range.end &&
                diagnostic.range.end <= sources.text(diagnostic.range.file).size(),
            "a range outside of its file");
  }
  require(!sink.hasErrors() || variants.empty(), "variants in spite of errors");

  spec::AstArena arena;
  support::DiagnosticSink ignored;
  spec::printAst(spec::parse(sources, file, arena, ignored), arena);

  for (const spec::Variant &variant : variants) {
    std::string text = spec::toJson(variant).dump();
    auto read = spec::variantFromJson(nlohmann::json::parse(text));
    require(read.ok(), read.ok() ? "" : read.error().message.c_str());
    require(spec::toJson(*read).dump() == text, "a variant that JSON changes");
  }
  return 0;
}
