// Hooks of q, of K, of V and of the output, from text to results: each with finished rows and merged ones,
// beside masks, sinks and sigmoids, over caches of 16 and of 8 bits.
#include "compiler/driver/Compilation.h"
#include "compiler/spec/CompileSpec.h"
#include "compiler/support/Render.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "specs/Embedded.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

namespace deft::exec {
namespace {

/// With the library.
std::vector<spec::Variant> compiled(const std::string &text) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  auto variants = spec::compileSpec(sources, sources.add("my.deft", "import \"library.deft\";\n" + text),
                                    specs::importResolver(), sink);
  EXPECT_FALSE(sink.hasErrors()) << support::renderDiagnostics(sources, sink);
  return variants;
}

const std::vector<std::string> &hookTexts() {
  static const std::vector<std::string> texts = {
      "query = rope(x, x_half, 10000.0);",
      "query = rope_pairs(x, x_pair, 500.0); mask = tree && sliding_window(40);",
      "param w : f32[48]; query = rope(rms_norm(w[dim], 0.001), rms_norm_half(w[(dim + 24) % 48], 0.001), "
      "100.0);",
      "param f : f32[24]; query = rotate_pairs(x, x_pair, q_pos * f[floor_div(dim, 2)]) * rsqrt(x_rms * "
      "x_rms + 0.01);",
      "query = x * (1 + 0.1 * log(1 + floor((q_pos + 1) / 16)));",
      "param b : f32[query_heads]; param c : f32[kv_heads]; query = x * b[head] + c[kv_head] - 0.125 * "
      "(query % 3);",
      "query = 0.5; normalize = sigmoid(-2);",
      "param g : f32[192]; output = x * sigmoid(g[head * head_dim + dim] * (dim % 5)) as f16 with lse;",
      "param v : f32[kv_heads]; output = x * v[kv_head] as bf16; query = -x;",
      "param l : f32[query_heads]; normalize = softmax with sink(l[head]); output = x + 0.25 * (dim % 2) + "
      "query;",
      "normalize = sigmoid(-1); output = x * (1 + head % 2) - 0.5 * (q_pos % 3);",
      "kv_cache = paged(page_size = 4, dtype = fp8_e4m3); query = rope(x, x_half, 1000.0); output = 2 * x "
      "with lse;",
      "query = rope(x, x_half, 10000.0); key = rope(x, x_half, 10000.0);",
      "key = rope_pairs(x, x_pair, 500.0); mask = tree && sliding_window(40); output = bf16 with lse;",
      "param w : f32[48]; param c : f32[kv_heads]; key = rope(rms_norm(w[dim], 0.001), rms_norm_half(w[(dim "
      "+ "
      "24) % 48], 0.001), 100.0) + c[kv_head] - 0.125 * (kv_pos % 3); score = alibi(s, slope); param slope : "
      "f32[query_heads];",
      "kv_cache = paged(page_size = 4, dtype = fp8_e5m2); query = rope(x, x_half, 1000.0); key = rope(x, "
      "x_half, "
      "1000.0); normalize = sigmoid(-2);",
      "kv_cache = paged(page_size = 16, order = hnd, dtype = f16); key = x_half * rsqrt(x_rms * x_rms) + "
      "0.5;",
      "mask = tree && kv_pos > q_pos - 8 && q_pos % 2 == 0; output = 3 * x + 1;",
      "param ks : f32[tokens, kv_heads]; param vs : f32[tokens, kv_heads]; score = s * ks[token, kv_head]; "
      "value = x * vs[token, kv_head]; output = bf16 with lse;",
      "kv_cache = paged(page_size = 4, order = hnd, dtype = fp8_e4m3); param ks : f32[tokens, kv_heads]; "
      "param vs : f32[tokens, kv_heads]; score = s * ks[token, kv_head]; value = x * (0.5 + abs(vs[token, "
      "kv_head]));",
      "param gain : f32[tokens]; value = -x * gain[token] * (1 + kv_pos % 3 + depth + kv_head); mask = tree "
      "&& "
      "sliding_window(40);",
      "param vs : f32[tokens, kv_heads]; value = x * vs[token, kv_head]; normalize = sigmoid(-1); output = 2 "
      "* "
      "x;",
  };
  return texts;
}

// Rules H1, H2, H3, H6, H7, H8, P6.
TEST(ElementHooksTest, AreAppliedToEachRowOnceHoweverItsTokensAreCut) {
  std::string text;
  for (std::size_t i = 0; i < hookTexts().size(); ++i)
    text += "attention a" + std::to_string(i) +
            " { query_heads = 4; kv_heads = 2; head_dim = 48; dtype = " + (i % 3 == 2 ? "f16" : "bf16") +
            "; " + hookTexts()[i] + " }\n";
  const std::vector<spec::Variant> variants = compiled(text);
  ASSERT_EQ(variants.size(), hookTexts().size());
  const support::SourceManager sources;
  for (const spec::Variant &variant : variants) {
    SCOPED_TRACE(variant.name);
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok()) << compilation.error().message;
    auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (std::uint64_t seed = 1; seed <= 6; ++seed)
      for (const int chunk : {0, 16}) {
        SCOPED_TRACE(seed);
        expectRight(*kernel, variant, makeProblem(variant, test::randomForest(seed), chunk, seed));
      }
  }
}

/// A wrong angle, a partner too few, a factor of another head would show: the bound of what is right follows
/// from f32.
TEST(ElementHooksTest, AreCheckedSharply) {
  const std::vector<spec::Variant> variants =
      compiled("attention right { query_heads = 4; kv_heads = 2; head_dim = 48; query = rope(x, x_half, "
               "10000.0); key = rope(x, x_half, 10000.0); output = 1.5 * x; }\n"
               "attention turned : right { query = rotate_halves(x, x_half, q_pos * 1.02); }\n"
               "attention plain : right { query = x; }\n"
               "attention key_turned : right { key = rotate_halves(x, x_half, pos * 1.02); }\n"
               "attention key_by_query : right { key = rope(x_half, x, 10000.0); }\n"
               "attention key_later : right { key = rope(x, x_half, 10200.0); }\n"
               "attention key_plain : right { key = x; }\n"
               "attention less : right { output = 1.47 * x; }\n");
  ASSERT_EQ(variants.size(), 8u);
  const support::SourceManager sources;
  const Problem problem = makeProblem(variants[0], test::randomForest(3), 16, 3);
  for (const spec::Variant &variant : variants) {
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok());
    auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok());
    Outputs outputs;
    ASSERT_TRUE(runCpu(*kernel, variant, problem.plan, problem.inputs, outputs, 2).ok());
    const auto report = reference::check(variants[0], problem.tree, problem.inputs, outputs, {});
    EXPECT_EQ(report.passed(), variant.name == "right") << variant.name << ": " << report.share();
  }
}

} // namespace
} // namespace deft::exec
