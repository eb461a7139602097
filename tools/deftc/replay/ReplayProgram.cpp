#include "tools/deftc/replay/ReplayProgram.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Words.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Bits of random values between 1/8 and 2, of either sign: `base`, and what `mask` leaves of a random
/// number.
struct RandomBits {
  int bytes, base, mask, sign;
};

RandomBits bitsOf(spec::DType dtype) {
  switch (dtype) {
  case spec::DType::BF16:
    return {2, 0x3e00, 0x01ff, 0x8000};
  case spec::DType::F16:
    return {2, 0x3000, 0x0fff, 0x8000};
  case spec::DType::F8E4M3:
    return {1, 0x20, 0x1f, 0x80};
  default:
    return {1, 0x30, 0x0f, 0x80};
  }
}

std::string hex(int value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", static_cast<unsigned>(value));
  return text;
}

/// Numbers or rows, so many a line.
std::string list(std::size_t count, std::size_t perLine, const char *indent,
                 const std::function<std::string(std::size_t)> &one) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : i % perLine == 0 ? ",\n" + std::string(indent) : ", ") + one(i);
  return text;
}

std::string number(float value) { return support::significant(value, 9); }

/// What both languages write the same facts of.
struct Facts {
  const ReplayStep &replay;
  const spec::Variant &variant;
  const tree::KvTree &tree;
  const std::vector<exec::ParamValue> &params;

  Facts(const ReplayStep &of, const std::vector<exec::ParamValue> &values)
      : replay(of), variant(of.variant()), tree(of.tree), params(values) {}

  const std::string &spec() const { return replay.step.spec.front().text; }
  long long pages() const { return replay.place.cache.poolPages; } ///< of a contiguous cache tokens
  int pageSize() const { return variant.cache.pageSize; }
  bool isHeadsFirst() const { return variant.cache.isPaged() && variant.cache.order == spec::PageOrder::Hnd; }
  long long slots() const { return pages() * std::max(pageSize(), 1); }
  int budget() const { return replay.step.run ? replay.step.run->budget : 0; }

  std::vector<long long> cacheShape(int dim) const {
    const long long heads = variant.kvHeads, slots = pageSize();
    if (slots == 0)
      return {pages(), heads, dim};
    return isHeadsFirst() ? std::vector<long long>{pages(), heads, slots, dim}
                          : std::vector<long long>{pages(), slots, heads, dim};
  }
  std::string title() const {
    return "`" + variant.name + "`: " + counted(std::ssize(tree.queries()), "query", "queries") + ", " +
           counted(tree.tokens(), "token", "tokens") + ". Made by `deftc replay --program`.";
  }
  std::string nodes(const char *open, const char *close) const {
    return list(tree.nodes().size(), 6, "    ", [&](std::size_t i) {
      const tree::Node &node = tree.nodes()[i];
      return open + std::to_string(node.parent) + ", " + std::to_string(node.tokens) + ", " +
             std::to_string(node.location) + close;
    });
  }
  std::string queries(const char *open, const char *close) const {
    return list(tree.queries().size(), 12, "    ", [&](std::size_t i) {
      const tree::Query &query = tree.queries()[i];
      return open + std::to_string(query.node) + ", " + std::to_string(tree.seenTokens(query)) + close;
    });
  }
  std::string table() const {
    const std::vector<int> &entries = replay.place.cache.pageTable;
    return list(entries.size(), 20, "    ", [&](std::size_t i) { return std::to_string(entries[i]); });
  }
  std::string values(const exec::ParamValue &value) const {
    return list(exec::countOf(value), 12, "    ", [&](std::size_t i) {
      return value.f32.empty() ? std::to_string(value.i32[i]) : number(value.f32[i]);
    });
  }
  /// Elements of an array over tokens or queries.
  long long elementsOf(const spec::Param &param) const {
    return param.isOfTokens() ? slots() * variant.elementsOf(param) : std::ssize(tree.queries());
  }
  bool isDrawn(std::size_t param) const { return variant.params[param].isSizedByRun(); }

  Result<void> check() const {
    for (std::size_t i = 1; i < replay.step.spec.size(); ++i)
      if (!replay.step.spec[i].name.starts_with('<'))
        return Error{ErrorCode::Usage,
                     "the spec imports `" + replay.step.spec[i].name +
                         "`, which is not shipped: a program in one file cannot include it",
                     "`deftc replay " + replay.path + "` runs it"};
    if (variant.tensors.hasScales())
      return Error{ErrorCode::Usage, "replay cannot write a program for a cache with scales in its rows",
                   "`deftc replay " + replay.path + "` runs the step"};
    if (variant.readsGivenLists())
      return Error{ErrorCode::Usage,
                   "`" + variant.name + "` reads its caller's lists, and the file does not have these",
                   "`deftc replay " + replay.path + "` runs it over random lists"};
    if (spec().find("\"\"\"") != std::string::npos || spec().find(")deft\"") != std::string::npos)
      return Error{ErrorCode::Usage, "the spec's text cannot be written into a program", ""};
    return {};
  }
};

/// An include at the beginning of a line would be this file's.
constexpr const char *kCppHead =
    "//   c++ -std=c++20 -O2 step.cpp $(pkg-config --cflags --libs deft) -o step && ./step\n"
    "#include <deft/deft.hpp>\n\n#include <algorithm>\n#include <chrono>\n#include <cstdint>\n"
    "#include <cstdio>\n#include <vector>\n\n";

const char *const kCppRandom = R"cpp(
/// Random bits whose values lie between 1/8 and 2, of either sign.
template <typename T> std::vector<T> randomBits(long long count, unsigned base, unsigned mask, unsigned sign) {
  static std::uint64_t state = 1;
  std::vector<T> bits(static_cast<std::size_t>(count));
  for (T &one : bits) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<unsigned>(state >> 40);
    one = static_cast<T>(base | (random & mask) | (random >> 8 & sign));
  }
  return bits;
}

)cpp";

/// "randomBits<std::uint16_t>(3ll * 8 * 128, ...)".
std::string cppBits(const std::vector<long long> &shape, spec::DType dtype) {
  const RandomBits bits = bitsOf(dtype);
  std::string size;
  for (const long long one : shape)
    size += (size.empty() ? "" : " * ") + std::to_string(one) + "ll";
  return std::string("randomBits<") + (bits.bytes == 2 ? "std::uint16_t" : "std::uint8_t") + ">(" + size +
         ", " + hex(bits.base) + ", " + hex(bits.mask) + ", " + hex(bits.sign) + ")";
}

std::string cppParams(const Facts &facts) {
  std::string text;
  for (std::size_t i = 0; i < facts.variant.params.size(); ++i) {
    const spec::Param &param = facts.variant.params[i];
    const bool isF32 = param.type == spec::ScalarType::F32;
    const std::string type = isF32 ? "float" : "std::int32_t";
    if (facts.isDrawn(i)) // what the tree's tokens have is not what a slot has
      text += "  params.set(\"" + param.name + "\", std::vector<" + type + ">(" +
              std::to_string(facts.elementsOf(param)) + (isF32 ? ", 0.5f" : ", 1") + ")).value();\n";
    else
      text += "  params.set(\"" + param.name + "\", std::vector<" + type + ">{" +
              facts.values(facts.params[i]) + "}).value();\n";
  }
  return text.empty() ? text : "  deft::Params params(attention);\n" + text;
}

std::string cppPlanOptions(const Facts &facts, bool hasParams) {
  const capture::Step &step = facts.replay.step;
  std::string name = config::partitionName(step.config.partition), id;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (name[i] != '_')
      id += i == 0 || name[i - 1] == '_' ? static_cast<char>(std::toupper(name[i])) : name[i];
  return "{.partition = deft::Partition::" + id +
         ", .chunkTokens = " + std::to_string(step.config.chunkTokens) +
         (step.plan.isInvariant ? ", .invariant = true" : "") + (hasParams ? ", .params = &params}" : "}");
}

/// numpy's type of bits, and of values where it has one.
std::string pythonType(spec::DType dtype) {
  return spec::elementBytes(dtype) == 1 ? "uint8" : dtype == spec::DType::F16 ? "float16" : "uint16";
}

std::string pythonBits(const std::vector<long long> &shape, spec::DType dtype) {
  const RandomBits bits = bitsOf(dtype);
  std::string text = "random_bits((";
  for (const long long one : shape)
    text += std::to_string(one) + ", ";
  text.resize(text.size() - 2); // of at least three dimensions
  return text + "), \"" + (bits.bytes == 2 ? "uint16" : "uint8") + "\", \"" + pythonType(dtype) + "\", " +
         hex(bits.base) + ", " + hex(bits.mask) + ", " + hex(bits.sign) + ")";
}

std::string pythonParams(const Facts &facts) {
  std::string text;
  for (std::size_t i = 0; i < facts.variant.params.size(); ++i) {
    const spec::Param &param = facts.variant.params[i];
    const bool isF32 = param.type == spec::ScalarType::F32;
    const std::string type = isF32 ? "float32" : "int32";
    text += "    \"" + param.name + "\": ";
    if (facts.isDrawn(i))
      text += "numpy.full(" + std::to_string(facts.elementsOf(param)) + (isF32 ? ", 0.5" : ", 1") + ", \"" +
              type + "\"),\n";
    else if (param.shape == spec::Param::Shape::Scalar)
      text += facts.values(facts.params[i]) + ",\n";
    else
      text += "numpy.array([" + facts.values(facts.params[i]) + "], \"" + type + "\"),\n";
  }
  return text;
}

} // namespace

Result<std::string> cppProgram(const ReplayStep &step, const std::vector<exec::ParamValue> &params) {
  const Facts facts(step, params);
  if (auto checked = facts.check(); !checked)
    return checked.error();
  const spec::Variant &variant = facts.variant;
  const spec::Tensors &tensors = variant.tensors;
  const auto queries = static_cast<long long>(facts.tree.queries().size());
  const std::string paramsText = cppParams(facts);
  const bool hasParams = !paramsText.empty();
  std::string text = "// " + facts.title() + "\n" + kCppHead;
  text += "const char *const kSpec = R\"deft(" + facts.spec() + ")deft\";\n\n";
  text += "struct Node {\n  int parent, tokens, location;\n};\nconst std::vector<Node> kNodes = {\n    " +
          facts.nodes("{", "}") + "};\n";
  text += "struct Query {\n  int node, seen;\n};\nconst std::vector<Query> kQueries = {\n    " +
          facts.queries("{", "}") + "};\n";
  if (facts.pageSize() > 0)
    text += "const std::vector<int> kPageTable = {\n    " + facts.table() + "};\n";
  text += kCppRandom;
  text += "int main() {\n  const auto attention = deft::compileSpec(kSpec, {.attention = \"" + variant.name +
          "\"}).value();\n  const auto runtime = deft::Runtime::create().value();\n"
          "  deft::Tree tree;\n  for (const Node &node : kNodes)\n"
          "    (void)(node.parent < 0 ? tree.addRoot(node.tokens, node.location)\n"
          "                           : tree.addChild(node.parent, node.tokens, node.location)).value();\n"
          "  for (const Query &query : kQueries) // a query that sees its whole node grows with it\n"
          "    (void)(query.seen == kNodes[query.node].tokens ? tree.addQuery(query.node)\n"
          "                                                   : tree.addQuery(query.node, "
          "query.seen)).value();\n";
  text += paramsText;
  text += "  const auto plan = deft::Plan::make(attention, tree, " + cppPlanOptions(facts, hasParams) +
          ").value();\n\n";
  text +=
      "  const auto q = " + cppBits({queries, variant.queryHeads, tensors.q.dim}, tensors.q.dtype) + ";\n";
  text += "  const auto k = " + cppBits(facts.cacheShape(tensors.k.dim), tensors.k.dtype) + ";\n";
  if (!tensors.valueInKey)
    text += "  const auto v = " + cppBits(facts.cacheShape(tensors.v.dim), tensors.v.dtype) + ";\n";
  text += "  std::vector<std::uint16_t> out(" + std::to_string(queries) + "ll * " +
          std::to_string(variant.queryHeads) + " * " + std::to_string(tensors.out.dim) + ");\n";
  text += std::string("  const deft::Inputs inputs{.q = q.data(), .k = k.data()") +
          (tensors.valueInKey ? "" : ", .v = v.data()") +
          (facts.pageSize() > 0 ? ", .pageTable = kPageTable" : "") +
          (hasParams ? ", .params = &params" : "") +
          "};\n  const deft::Outputs outputs{.out = out.data()};\n";
  std::string runs = "runtime.run(attention, plan, inputs, outputs).value();";
  if (variant.select && facts.budget() > 0) {
    text += "  auto selection = deft::Selection::make(attention, " + std::to_string(facts.budget()) +
            ").value();\n"
            "  runtime.runSelecting(attention, plan, selection, inputs, outputs).value();\n";
    if (step.step.run->kind == capture::RunKind::Sparse)
      runs = "runtime.runSparse(attention, plan, selection, inputs, outputs).value();";
    else
      runs = "runtime.runSelecting(attention, plan, selection, inputs, outputs).value();";
  }
  text += "  double fastest = 1e30;\n  for (int i = 0; i < 5; ++i) {\n"
          "    const auto begin = std::chrono::steady_clock::now();\n    " +
          runs +
          "\n    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - "
          "begin;\n"
          "    fastest = std::min(fastest, taken.count());\n  }\n"
          "  std::printf(\"%d items, %.1f us\\n\", plan.summary().items, fastest);\n}\n";
  return text;
}

Result<std::string> pythonProgram(const ReplayStep &step, const std::vector<exec::ParamValue> &params) {
  const Facts facts(step, params);
  if (auto checked = facts.check(); !checked)
    return checked.error();
  const spec::Variant &variant = facts.variant;
  const spec::Tensors &tensors = variant.tensors;
  const auto queries = static_cast<long long>(facts.tree.queries().size());
  const std::string paramsText = pythonParams(facts);
  const capture::Step &captured = step.step;
  std::string text = "# " + facts.title() + "\nimport time\n\nimport deft\nimport numpy\n\nSPEC = r\"\"\"" +
                     facts.spec() + "\"\"\"\nNODES = [  # parent, tokens, location\n    " +
                     facts.nodes("(", ")") +
                     "]\nQUERIES = [  # node, number of its tokens that the query sees\n    " +
                     facts.queries("(", ")") + "]\n";
  if (facts.pageSize() > 0)
    text += "PAGE_TABLE = numpy.array([\n    " + facts.table() + "], \"int32\")\n";
  if (!paramsText.empty())
    text += "PARAMS = {\n" + paramsText + "}\n";
  text += "RANDOM = numpy.random.default_rng(0)\n\n\n"
          "def random_bits(shape, bits, kind, base, mask, sign):\n"
          "    \"\"\"Returns the bits of random values between 1/8 and 2, of either sign.\"\"\"\n"
          "    drawn = RANDOM.integers(0, 1 << 16, shape, \"int32\")\n"
          "    return (base | (drawn & mask) | (drawn >> (8 if bits == \"uint8\" else 0) & "
          "sign)).astype(bits).view(kind)\n\n\n"
          "attention = deft.compile(SPEC, attention=\"" +
          variant.name +
          "\")\ntree = deft.Tree()\nfor parent, tokens, location in NODES:\n"
          "    tree.add_root(tokens, location=location) if parent < 0 else tree.add_child(parent, tokens, "
          "location=location)\n"
          "for node, seen in QUERIES:  # a query that sees its whole node grows with it\n"
          "    tree.add_query(node, None if seen == NODES[node][1] else seen)\n";
  text += "plan = attention.plan(tree, " + std::string(paramsText.empty() ? "" : "params=PARAMS, ") +
          "partition=\"" + config::partitionName(captured.config.partition) +
          "\", chunk_tokens=" + std::to_string(captured.config.chunkTokens) +
          (captured.plan.isInvariant ? ", invariant=True" : "") + ")\n";
  text += "q = " + pythonBits({queries, variant.queryHeads, tensors.q.dim}, tensors.q.dtype) + "\n";
  text += "k = " + pythonBits(facts.cacheShape(tensors.k.dim), tensors.k.dtype) + "\n";
  text += tensors.valueInKey ? "v = None\n"
                             : "v = " + pythonBits(facts.cacheShape(tensors.v.dim), tensors.v.dtype) + "\n";
  const std::string table = facts.pageSize() > 0 ? ", PAGE_TABLE" : "";
  std::string runs = "plan.run(q, k, v" + table + ")";
  if (variant.select && facts.budget() > 0) {
    const std::string selecting = "plan.run_selecting(selection, q, k, v" + table + ")";
    text +=
        "selection = deft.Selection(attention, " + std::to_string(facts.budget()) + ")\n" + selecting + "\n";
    runs = captured.run->kind == capture::RunKind::Sparse ? "plan.run_sparse(selection, q, k, v" + table + ")"
                                                          : selecting;
  }
  text += "times = []\nfor _ in range(5):\n    begin = time.perf_counter()\n    out = " + runs +
          "\n    times.append(time.perf_counter() - begin)\n"
          "print(f\"{plan.summary().items} items, {min(times) * 1e6:.1f} us\")\n";
  return text;
}

} // namespace deft::cli
