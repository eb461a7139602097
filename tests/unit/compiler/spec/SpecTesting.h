#pragma once

#include "compiler/spec/CompileSpec.h"
#include "compiler/spec/Names.h"
#include "compiler/support/Render.h"

#include <charconv>
#include <gtest/gtest.h>
#include <map>

namespace deft::spec::testing {

/// Files by name, in memory: imports of a test find only these.
inline ImportResolver resolverOf(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string &,
                                    const std::string &path) -> support::Result<ImportedFile> {
    auto found = files.find(path);
    if (found == files.end())
      return support::Error{support::ErrorCode::Diagnostics, "cannot find `" + path + "`", {}};
    return ImportedFile{path, found->second};
  };
}

struct Compiled {
  std::vector<Variant> variants;
  std::string findings;
  std::size_t errors = 0;

  const Variant &only() const {
    EXPECT_EQ(variants.size(), 1u) << findings;
    static const Variant none;
    return variants.empty() ? none : variants.front();
  }
};

inline Compiled compile(const std::string &text, std::map<std::string, std::string> files = {}) {
  support::SourceManager sources;
  support::DiagnosticSink sink;
  Compiled compiled;
  compiled.variants = compileSpec(sources, sources.add("my.deft", text), resolverOf(std::move(files)), sink);
  compiled.findings = support::renderDiagnostics(sources, sink);
  compiled.errors = sink.errorCount();
  return compiled;
}

/// An attention that is complete, with more items.
inline std::string attention(const std::string &items) {
  return "attention a { query_heads = 8; kv_heads = 4; head_dim = 64; " + items + " }";
}

/// A typed expression as text, operator first: `(add:f32 s (to_f32 kv_pos))`.
inline std::string describe(const Variant &variant, ExprId id) {
  const Expr &expr = variant.exprs.at(id);
  switch (expr.op) {
  case ExprOp::Constant: {
    if (expr.type == ScalarType::Bool)
      return expr.value ? "true" : "false";
    char buffer[40];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, expr.value).ptr;
    return std::string(buffer, end) + (expr.type == ScalarType::F32 ? "f" : "");
  }
  case ExprOp::Builtin:
    return toString(expr.builtin);
  case ExprOp::Param:
    return variant.params.at(expr.param).name;
  case ExprOp::ParamElement:
    return variant.params.at(expr.param).name + "[]";
  default:
    break;
  }
  std::string text = std::string("(") + toString(expr.op) + ":" + toString(expr.type);
  if (expr.op == ExprOp::TableElement)
    text += " " + variant.params.at(expr.param).name;
  for (ExprId operand : expr.operands)
    text += " " + describe(variant, operand);
  return text + ")";
}

/// The score that `items` define, as text; the findings when there is an error.
inline std::string scoreOf(const std::string &items) {
  Compiled compiled = compile(attention(items));
  if (compiled.variants.empty())
    return compiled.findings;
  const Variant &variant = compiled.only();
  return variant.score ? describe(variant, *variant.score) : "s";
}

inline std::string maskOf(const std::string &items) {
  Compiled compiled = compile(attention(items));
  if (compiled.variants.empty())
    return compiled.findings;
  const Variant &variant = compiled.only();
  return variant.mask ? describe(variant, *variant.mask) : "tree";
}

} // namespace deft::spec::testing
