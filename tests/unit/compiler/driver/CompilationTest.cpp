#include "compiler/driver/Compilation.h"

#include "compiler/spec/CompileSpec.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::driver {
namespace {

using testing::HasSubstr;

/// Every variant of every shipped spec, with the sources that its ranges point into.
struct Shipped {
  support::SourceManager sources;
  std::vector<spec::Variant> variants;
};

Shipped shippedVariants() {
  Shipped result;
  for (const specs::EmbeddedSpec &shipped : specs::embeddedSpecs()) {
    std::uint32_t file = result.sources.add(specs::embeddedFileName(shipped), std::string(shipped.text));
    support::DiagnosticSink sink;
    auto variants = spec::compileSpec(result.sources, file, specs::importResolver(), sink);
    EXPECT_FALSE(sink.hasErrors()) << support::renderDiagnostics(result.sources, sink);
    std::move(variants.begin(), variants.end(), std::back_inserter(result.variants));
  }
  return result;
}

spec::Variant compileOne(support::SourceManager &sources, const std::string &text) {
  support::DiagnosticSink sink;
  auto variants =
      spec::compileSpec(sources, sources.add("dir/one.deft", text), specs::importResolver(), sink);
  EXPECT_EQ(variants.size(), 1u) << support::renderDiagnostics(sources, sink);
  return variants.at(0);
}

TEST(CompilationTest, EveryShippedSpecBecomesVerifiedIrAndHooks) {
  Shipped shipped = shippedVariants();
  ASSERT_GE(shipped.variants.size(), 12u);
  for (const spec::Variant &variant : shipped.variants) {
    SCOPED_TRACE(variant.name);
    auto compilation = Compilation::create(variant, shipped.sources);
    ASSERT_TRUE(compilation.ok()) << compilation.error().message;
    auto source = compilation->cudaVariantSource();
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source->name, variant.name);
    EXPECT_EQ(source->params.size(), variant.params.size());
    EXPECT_EQ(source->hooks.back(), '\n');
    EXPECT_THAT(source->hooks, HasSubstr(variant.mask ? "kHasMask = true" : "kHasMask = false"));
  }
}

TEST(CompilationTest, TextIsTheSameEachTime) {
  Shipped shipped = shippedVariants();
  for (const spec::Variant &variant : shipped.variants) {
    auto first = Compilation::create(variant, shipped.sources),
         second = Compilation::create(variant, shipped.sources);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->cudaVariantSource()->hooks, second->cudaVariantSource()->hooks);
    EXPECT_EQ(first->irText(Compilation::Stage::Optimized), second->irText(Compilation::Stage::Optimized));
  }
}

TEST(CompilationTest, HooksNameTheSpecByItsBaseName) {
  support::SourceManager sources;
  spec::Variant variant =
      compileOne(sources, "attention w {\n  query_heads = 8;\n  kv_heads = 2;\n  head_dim = 64;\n"
                          "  mask = kv_pos > q_pos - 100;\n}\n");
  auto compilation = Compilation::create(variant, sources);
  ASSERT_TRUE(compilation.ok());
  std::string hooks = compilation->cudaVariantSource()->hooks;
  EXPECT_THAT(hooks, HasSubstr("#line 5 \"one.deft\"\n"));
  EXPECT_THAT(hooks, testing::Not(HasSubstr("dir")));
}

/// Who makes room for q and loads the kernel that makes it goes by the variant.
TEST(CompilationTest, AHookOfElementsStaysWhereItComesToNothing) {
  support::SourceManager sources;
  spec::Variant variant =
      compileOne(sources, "attention w {\n  query_heads = 8;\n  kv_heads = 2;\n  head_dim = 64;\n"
                          "  let factor = 1.0;\n  query = x * factor;\n  key = min(x, x);\n"
                          "  output = x / factor;\n}\n");
  ASSERT_TRUE(variant.query && variant.key && variant.output);
  auto compilation = Compilation::create(variant, sources);
  ASSERT_TRUE(compilation.ok());
  const std::string hooks = compilation->cudaVariantSource()->hooks;
  for (const char *hook : {" query(", " key(", " output("})
    EXPECT_THAT(hooks, HasSubstr(hook));
}

TEST(CompilationTest, ImportedIrIsNotSimplified) {
  support::SourceManager sources;
  spec::Variant variant = compileOne(sources, "attention w { query_heads = 8; kv_heads = 2; head_dim = 64;\n"
                                              "  mask = kv_pos % 4 == 0; }\n");
  auto compilation = Compilation::create(variant, sources);
  ASSERT_TRUE(compilation.ok());
  EXPECT_THAT(compilation->irText(Compilation::Stage::Imported), HasSubstr("arith.ori"));
  EXPECT_THAT(compilation->irText(Compilation::Stage::Optimized), testing::Not(HasSubstr("arith.ori")));
  EXPECT_THAT(compilation->irText(Compilation::Stage::Optimized), HasSubstr("tile("));
}

TEST(CompilationTest, WrongVariantIsAnInternalError) {
  spec::Variant variant;
  variant.name = "broken";
  variant.queryHeads = 7;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(64);
  auto compilation = Compilation::create(variant, support::SourceManager());
  ASSERT_FALSE(compilation.ok());
  EXPECT_EQ(compilation.error().code, support::ErrorCode::Internal);
  EXPECT_THAT(compilation.error().message, HasSubstr("query_heads is 7 and kv_heads is 2"));
}

} // namespace
} // namespace deft::driver
