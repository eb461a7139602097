// One document under several parents: nodes of other positions over the same places of a cache without
// rotation.
#include "compiler/driver/Compilation.h"
#include "compiler/spec/CompileSpec.h"
#include "compiler/support/Render.h"
#include "runtime/exec/Half.h"
#include "runtime/tree/Places.h"
#include "specs/Embedded.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

#include <cmath>
#include <numeric>

namespace deft::exec {
namespace {

constexpr int kDim = 64, kPageSize = 16, kPages = 44;
constexpr double kBase = 10000;

/// Of two prompts that differ in length, each with the document behind it, the document with questions of its
/// own, and a question to the document alone.
struct Documents {
  static constexpr int kPrompts[] = {37, 90};
  static constexpr int kTokens = 150, kQuestion = 9, kFirstPlace = 200;

  tree::KvTree tree;
  std::vector<int> nodes; ///< of the document

  /// `placeOf` says where the document lies below the prompt of that number, of which the third is none.
  template <class PlaceOf> explicit Documents(const PlaceOf &placeOf) {
    int begin = 0;
    const auto add = [&](int parent, int tokens, int location) {
      auto node = tree.addNode(parent, tokens, location);
      EXPECT_TRUE(node.ok());
      return *node;
    };
    const auto addOwn = [&](int parent, int tokens) {
      const int node = add(parent, tokens, begin);
      begin += tokens;
      return node;
    };
    for (int prompt = 0; prompt < 3; ++prompt) {
      const int parent = prompt < 2 ? addOwn(-1, kPrompts[prompt]) : -1;
      nodes.push_back(add(parent, kTokens, placeOf(prompt)));
      for (int question = 0; question <= prompt; ++question)
        EXPECT_TRUE(tree.addQuery(addOwn(nodes.back(), kQuestion)).ok());
      EXPECT_TRUE(tree.addQuery(nodes.back(), kTokens - 20).ok());
    }
    tree.countDepths();
    EXPECT_LE(begin, kFirstPlace);
  }
};

std::vector<spec::Variant> variantsOf(const std::string &own) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  const std::string text = "import \"library.deft\";\nattention raw { query_heads = 6; kv_heads = 2; "
                           "head_dim = 64; query = rope(x, x_half, "
                           "10000.0); key = rope(x, x_half, 10000.0); output = bf16 with lse; " +
                           own + " }\nattention turned : raw { key = x; }\n";
  auto variants = spec::compileSpec(sources, sources.add("my.deft", text), specs::importResolver(), sink);
  EXPECT_FALSE(sink.hasErrors()) << support::renderDiagnostics(sources, sink);
  return variants;
}

/// K of a token, turned by the host.
void turn(const spec::Variant &variant, const Inputs &from, int fromPlace, Inputs &to, int toPlace,
          int position) {
  for (int head = 0; head < variant.kvHeads; ++head) {
    const std::uint16_t *x = from.k.data() + from.keyAt(fromPlace, kPageSize, head);
    std::uint16_t *made = to.k.data() + to.keyAt(toPlace, kPageSize, head);
    for (int i = 0; i < kDim / 2; ++i) {
      const double angle = position * std::pow(kBase, -2.0 * i / kDim), a = floatFromBf16(x[i]),
                   b = floatFromBf16(x[i + kDim / 2]);
      made[i] = bf16FromFloat(static_cast<float>(a * std::cos(angle) - b * std::sin(angle)));
      made[i + kDim / 2] = bf16FromFloat(static_cast<float>(b * std::cos(angle) + a * std::sin(angle)));
    }
    std::copy_n(from.v.data() + from.valueAt(fromPlace, kPageSize, head), kDim,
                to.v.data() + to.valueAt(toPlace, kPageSize, head));
  }
}

Problem problemOf(const spec::Variant &variant, const Documents &documents, const Inputs &inputs, int chunk,
                  spec::Partition partition) {
  auto config = kernels::defaultConfig(variant, nullptr);
  EXPECT_TRUE(config.ok());
  config->chunkTokens = chunk;
  config->partition = partition;
  auto plan = plan::makePlan(documents.tree, plan::VariantFacts::of(variant), *config, 4);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return {documents.tree, inputs, std::move(*plan)};
}

void expectSameAsCopies(const std::string &own) {
  SCOPED_TRACE(own);
  const std::vector<spec::Variant> variants = variantsOf(own);
  ASSERT_EQ(variants.size(), 2u);
  const Documents shared([](int) { return Documents::kFirstPlace; });
  const Documents copied([](int prompt) { return Documents::kFirstPlace + prompt * Documents::kTokens; });
  ASSERT_FALSE(tree::checkPlaces(shared.tree).ok())
      << "which a host asks for where it does not mean to share";

  tree::CachePlacement placement{kPageSize, kPages, std::vector<int>(kPages)};
  std::iota(placement.pageTable.rbegin(), placement.pageTable.rend(), 0);
  const Inputs raw = makeRandomInputs(variants[0], shared.tree, placement,
                                      *bindParams(variants[0], std::vector<std::string>{}), 7);
  Inputs turned = raw;
  const auto &from = shared.tree.nodes(), &to = copied.tree.nodes();
  for (std::size_t node = 0; node < to.size(); ++node)
    for (int t = 0; t < to[node].tokens; ++t)
      turn(variants[1], raw, from[node].location + t, turned, to[node].location + t, to[node].position + t);

  const support::SourceManager sources;
  std::vector<Outputs> outputs;
  for (const spec::Partition partition :
       {spec::Partition::Query, spec::Partition::Node, spec::Partition::Union})
    for (std::size_t i = 0; i < 2; ++i) {
      SCOPED_TRACE(variants[i].name);
      auto compilation = driver::Compilation::create(variants[i], sources);
      ASSERT_TRUE(compilation.ok()) << compilation.error().message;
      auto kernel = compilation->jitCpuKernel();
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      const Problem problem =
          problemOf(variants[i], i == 0 ? shared : copied, i == 0 ? raw : turned, 32, partition);
      outputs.push_back(run(*kernel, variants[i], problem, 2));
      const auto report = reference::check(variants[i], problem.tree, problem.inputs, outputs.back(), {});
      EXPECT_TRUE(report.passed()) << reference::explainFailure(report);
    }
  for (std::size_t i = 0; i < outputs.size(); i += 2) {
    for (std::size_t at = 0; at < outputs[i].out.size(); ++at)
      ASSERT_NEAR(floatFromBf16(outputs[i].out[at]), floatFromBf16(outputs[i + 1].out[at]), 0.01) << at;
    for (std::size_t at = 0; at < outputs[i].lse.size(); ++at)
      ASSERT_NEAR(outputs[i].lse[at], outputs[i + 1].lse[at], 2e-3) << at;
  }
}

// Rules H6 and V2.
TEST(SharedDocumentTest, ADocumentUnderSeveralParentsIsItsCopiesTurnedByTheHost) {
  expectSameAsCopies("");
  expectSameAsCopies("mask = tree && sliding_window(100);");
}

} // namespace
} // namespace deft::exec
