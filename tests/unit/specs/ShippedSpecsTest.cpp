// Every shipped spec is a test by being there.
#include "compiler/spec/Names.h"
#include "compiler/spec/VariantJson.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <ostream>
#include <set>

namespace deft::specs {

/// What stands beside a test's name in lists of them: its bytes would be addresses, others in each run.
void PrintTo(const EmbeddedSpec &spec, std::ostream *out) { *out << spec.name; }

namespace {

std::vector<spec::Variant> compileShipped(const EmbeddedSpec &spec) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  auto variants = spec::compileSpec(sources, sources.add(embeddedFileName(spec), std::string(spec.text)),
                                    importResolver(), sink);
  EXPECT_EQ(support::renderDiagnostics(sources, sink), "") << spec.name;
  return variants;
}

class ShippedSpecsTest : public ::testing::TestWithParam<EmbeddedSpec> {};

TEST_P(ShippedSpecsTest, IsRightAndSaysWhatItIs) {
  const EmbeddedSpec &spec = GetParam();
  std::vector<spec::Variant> variants = compileShipped(spec);
  EXPECT_EQ(variants.empty(), spec.name == "library");
  EXPECT_EQ(spec.text.substr(0, 3), "// ");
  EXPECT_EQ(spec.text.back(), '\n');
  for (const spec::Variant &variant : variants) {
    auto read = spec::variantFromJson(nlohmann::json::parse(spec::toJson(variant).dump()));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(spec::toJson(*read), spec::toJson(variant));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedSpecsTest, ::testing::ValuesIn(embeddedSpecs()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(ShippedSpecsSetTest, TogetherUseTheWholeLanguage) {
  std::set<int> dims, pages, ratios;
  std::set<std::string> words;
  for (const EmbeddedSpec &spec : embeddedSpecs())
    for (const spec::Variant &v : compileShipped(spec)) {
      dims.insert(v.tensors.k.dim);
      ratios.insert(v.ratio());
      pages.insert(v.cache.pageSize);
      words.insert(spec::toString(v.tensors.k.dtype));
      words.insert(std::string("output ") + spec::toString(v.tensors.out.dtype) + (v.withLse ? " lse" : ""));
      words.insert(v.cache.isPaged() ? spec::toString(v.cache.order) : "contiguous");
      words.insert(spec::toString(v.normalize));
      for (const spec::Param &param : v.params)
        words.insert(std::string("param ") + spec::toString(param.type) + " " + spec::toString(param.shape));
      if (v.sigmoidBias)
        words.insert("bias");
      if (v.sink)
        words.insert("sink");
      if (v.schedule)
        words.insert("schedule");
    }
  for (int dim : {64, 80, 96, 112, 128, 192, 256})
    EXPECT_TRUE(dims.count(dim)) << dim;
  for (int ratio : {1, 2, 3, 4, 5, 6, 7, 48})
    EXPECT_TRUE(ratios.count(ratio)) << ratio;
  for (int page : {0, 1, 16, 32, 64})
    EXPECT_TRUE(pages.count(page)) << page;
  for (const char *word : {"f16", "bf16", "output f16 lse", "output bf16 lse", "nhd", "hnd", "contiguous",
                           "softmax", "sigmoid", "bias", "sink", "schedule", "param f32 scalar",
                           "param i32 scalar", "param f32 query_heads", "param f32 kv_heads"})
    EXPECT_TRUE(words.count(word)) << word;
}

} // namespace
} // namespace deft::specs
