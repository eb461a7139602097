#include "tests/support/ShippedVariants.h"

#include "compiler/spec/CompileSpec.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <iterator>
#include <stdexcept>

namespace deft::test {

ShippedVariants shippedVariants() {
  ShippedVariants shipped;
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs()) {
    const std::uint32_t file = shipped.sources.add(specs::embeddedFileName(spec), std::string(spec.text));
    support::DiagnosticSink sink;
    auto variants = spec::compileSpec(shipped.sources, file, specs::importResolver(), sink);
    if (sink.hasErrors())
      throw std::runtime_error(support::renderDiagnostics(shipped.sources, sink));
    std::move(variants.begin(), variants.end(), std::back_inserter(shipped.variants));
  }
  return shipped;
}

} // namespace deft::test
