#include "tests/unit/compiler/codegen/cuda/hooks/HookRunner.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace deft::test {

namespace {

constexpr const char *kPrelude = R"(#define __device__
#define __forceinline__ inline
#include "templates/deft/types.cuh"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
using std::max;
using std::min;
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return std::sqrt(a); }
static float rsqrtf(float a) { return 1 / std::sqrt(a); }
namespace deft {
static float tanhFast(float a) { return std::tanh(a); }
static int floorDiv(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
}
static float __int_as_float(int a) { return std::bit_cast<float>(a); }
struct Call { unsigned s; int qPos, kvPos, head, kvHead, depth, query; deft::TileBounds tile; };
template <class Variant, class P> void run(const P &params, const Call *calls, int count) {
  for (int i = 0; i < count; ++i) {
    const Call &c = calls[i];
    float score = 0;
    bool mask = true;
    deft::TileVisibility tile{true, true};
    auto row = Variant::row(params, c.qPos, c.head, c.kvHead, c.query);
    const float s = std::bit_cast<float>(c.s);
    float byForm = 0;
    if constexpr (Variant::kHasScore) {
      score = byForm = Variant::score(params, row, s, c.kvPos, c.depth, c.kvHead);
      if constexpr (Variant::kIsCapped || Variant::kIsSloped) {
        const deft::ScoreForm form = Variant::form(params, row, c.kvHead);
        byForm = Variant::kIsCapped ? form.cap * std::tanh(form.rate * s) : s;
        if (Variant::kIsSloped)
          byForm += form.slope * float(c.kvPos - form.origin);
      }
    }
    if constexpr (Variant::kHasMask) {
      mask = Variant::mask(params, row, c.kvPos, c.depth, c.kvHead);
      tile = Variant::tile(params, c.tile);
    }
    std::printf("%08x %d %d %d %08x\n", std::bit_cast<unsigned>(score), mask, tile.any, tile.all,
                std::bit_cast<unsigned>(byForm));
  }
}
)";

std::string caseText(const HookCase &test, size_t index) {
  std::string space = "v" + std::to_string(index), text = "namespace " + space + " {\n", hooks = test.hooks;
  const std::string global = "using Params = ::Params;"; // the one name that the text takes from outside
  hooks.replace(hooks.find(global), global.size(), "using Params = " + space + "::Params;");
  text += hooks + "#line 1 \"generated\"\n";
  for (size_t i = 0; i < test.params.size(); ++i) {
    text += "unsigned param" + std::to_string(i) + "[] = {";
    for (std::uint32_t bits : test.params[i])
      text += std::to_string(bits) + "u, ";
    text += "};\n";
  }
  text += "const Call calls[] = {\n";
  for (const HookCall &call : test.calls) {
    text += "{" + std::to_string(std::bit_cast<std::uint32_t>(call.s)) + "u";
    for (int value : {call.qPos, call.kvPos, call.head, call.kvHead, call.depth, call.query})
      text += ", " + std::to_string(value);
    text += ", {";
    for (int value : call.tile)
      text += std::to_string(value) + ", ";
    text += "}},\n";
  }
  text += "};\nvoid main() {\n  Params params{};\n  char *slot = reinterpret_cast<char *>(&params);\n";
  if (!test.params.empty())
    text += "  static_assert(sizeof(Params) == 8 * " + std::to_string(test.params.size()) + ");\n";
  for (size_t i = 0; i < test.params.size(); ++i) {
    std::string name = "param" + std::to_string(i);
    text += "  { const void *array = " + name + "; std::memcpy(slot, " +
            (test.isArray[i] ? "&array, 8" : name + ", 4") + "); slot += 8; }\n";
  }
  return text + "  (void)slot;\n  run<Variant>(params, calls, " + std::to_string(test.calls.size()) +
         ");\n}\n}\n";
}

} // namespace

std::vector<std::vector<HookResult>> runHooks(const std::vector<HookCase> &cases) {
  std::string pattern = (std::filesystem::temp_directory_path() / "deft_hooks_XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    return {};
  std::filesystem::path folder = pattern;
  {
    std::ofstream source(folder / "hooks.cpp");
    source << kPrelude;
    for (size_t i = 0; i < cases.size(); ++i)
      source << caseText(cases[i], i);
    source << "int main() {\n";
    for (size_t i = 0; i < cases.size(); ++i)
      source << "  v" << i << "::main();\n";
    source << "}\n";
  }
  // Undefined behaviour traps: an overflow that only happens to wrap here need not elsewhere.
  // Without built-ins: the compiler's folding of exp(2) may differ from the library's in the last bit.
  std::string program = (folder / "hooks").string();
  std::string build = DEFT_HOST_COMPILER
      " -std=c++20 -w -fno-builtin -ffp-contract=off -fsanitize=undefined -fsanitize-undefined-trap-on-error"
      " -I" DEFT_SOURCE_ROOT " ";
  build += (folder / "hooks.cpp").string();
  build += " -o ";
  build += program;
  std::vector<std::vector<HookResult>> results;
  if (std::system(build.c_str()) == 0) {
    if (FILE *pipe = popen(program.c_str(), "r")) {
      for (const HookCase &test : cases) {
        std::vector<HookResult> &of = results.emplace_back();
        unsigned bits = 0, formBits = 0;
        int mask = 0, any = 0, all = 0;
        while (of.size() < test.calls.size() &&
               std::fscanf(pipe, "%x %d %d %d %x", &bits, &mask, &any, &all, &formBits) == 5)
          of.push_back(
              {std::bit_cast<float>(bits), mask != 0, any != 0, all != 0, std::bit_cast<float>(formBits)});
      }
      pclose(pipe);
    }
  }
  std::filesystem::remove_all(folder);
  return results;
}

} // namespace deft::test
