#include "tests/support/Masks.h"

#include "tests/support/RandomExpr.h"
#include "tests/support/VariantBuilder.h"

#include <functional>

namespace deft::test {

using spec::Builtin;
using spec::ExprId;
using spec::ExprOp;
using spec::ScalarType;

namespace {

/// Writes masks nearly as specs do.
struct MaskWriter : VariantBuilder {
  ExprId q() { return read(Builtin::QPos); }
  ExprId kv() { return read(Builtin::KvPos); }
  ExprId i32(ExprOp kind, ExprId a, ExprId b) { return op(kind, ScalarType::I32, {a, b}); }
  ExprId is(ExprOp kind, ExprId a, ExprId b) { return op(kind, ScalarType::Bool, {a, b}); }
  ExprId window(ExprId width) { return is(ExprOp::Gt, kv(), i32(ExprOp::Sub, q(), width)); }
  ExprId blockOf(ExprId position, ExprId size) {
    return i32(ExprOp::Sub, position, i32(ExprOp::Rem, position, size));
  }
  ExprId scalar(const std::string &name, int value) {
    const int index = param(name, ScalarType::I32, spec::Param::Shape::Scalar);
    variant.params.back().defaultValue = value;
    return readParam(index);
  }
};

} // namespace

std::vector<NamedMask> modelMasks() {
  std::vector<NamedMask> masks;
  const auto add = [&](const std::string &name, const std::function<ExprId(MaskWriter &)> &write) {
    MaskWriter writer;
    writer.variant.mask = write(writer);
    masks.push_back({name, writer.variant});
  };
  add("window", [](MaskWriter &m) { return m.window(m.integer(20)); });
  add("window of a parameter", [](MaskWriter &m) { return m.window(m.scalar("w", 7)); });
  add("window written the other way",
      [](MaskWriter &m) { return m.is(ExprOp::Lt, m.i32(ExprOp::Sub, m.q(), m.kv()), m.integer(33)); });
  add("distance", [](MaskWriter &m) {
    const ExprId distance = m.op(ExprOp::Abs, ScalarType::I32, {m.i32(ExprOp::Sub, m.kv(), m.q())});
    return m.is(ExprOp::Le, distance, m.integer(12));
  });
  add("sink and window", [](MaskWriter &m) {
    return m.is(ExprOp::Or, m.is(ExprOp::Lt, m.kv(), m.integer(4)), m.window(m.integer(24)));
  });
  add("blocks", [](MaskWriter &m) { return m.is(ExprOp::Ge, m.kv(), m.blockOf(m.q(), m.integer(32))); });
  add("same block", [](MaskWriter &m) {
    const ExprId size = m.scalar("size", 48);
    return m.is(ExprOp::Eq, m.blockOf(m.kv(), size), m.blockOf(m.q(), size));
  });
  add("switched off", [](MaskWriter &m) {
    const ExprId width = m.scalar("w", 0);
    return m.is(ExprOp::Or, m.is(ExprOp::Le, width, m.integer(0)), m.window(width));
  });
  add("switched on", [](MaskWriter &m) {
    const ExprId width = m.scalar("w", 16);
    return m.is(ExprOp::Or, m.is(ExprOp::Le, width, m.integer(0)), m.window(width));
  });
  add("delayed",
      [](MaskWriter &m) { return m.is(ExprOp::Le, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(5))); });
  add("prefix alone", [](MaskWriter &m) { return m.is(ExprOp::Lt, m.kv(), m.integer(40)); });
  add("band behind the query", [](MaskWriter &m) {
    return m.is(ExprOp::And, m.is(ExprOp::Gt, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(50))),
                m.is(ExprOp::Lt, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(10))));
  });
  add("nothing", [](MaskWriter &m) { return m.is(ExprOp::Lt, m.kv(), m.integer(0)); });
  add("everything but the last blocks", [](MaskWriter &m) {
    return m.is(ExprOp::Lt, m.kv(), m.i32(ExprOp::Max, m.integer(16), m.blockOf(m.q(), m.integer(16))));
  });
  add("window for each head", [](MaskWriter &m) {
    m.param("w", ScalarType::I32, spec::Param::Shape::PerQueryHead);
    return m.window(m.readParam(0));
  });
  const auto addOfPath = [&](const std::string &name, const std::function<ExprId(MaskWriter &)> &write) {
    add(name, write);
    masks.back().variant.bound = spec::MaskBound::Path;
  };
  const auto past = [](MaskWriter &m) { return m.is(ExprOp::Le, m.kv(), m.q()); };
  addOfPath("the whole path", [](MaskWriter &m) { return m.is(ExprOp::Ge, m.kv(), m.integer(0)); });
  addOfPath("causal on a path", [&](MaskWriter &m) { return past(m); });
  addOfPath("prefix of both directions", [&](MaskWriter &m) {
    return m.is(ExprOp::Or, past(m), m.is(ExprOp::Lt, m.kv(), m.scalar("n", 40)));
  });
  addOfPath("prefix and window", [&](MaskWriter &m) {
    return m.is(ExprOp::Or, m.is(ExprOp::And, past(m), m.window(m.integer(24))),
                m.is(ExprOp::Lt, m.kv(), m.integer(9)));
  });
  addOfPath("distance both ways", [](MaskWriter &m) {
    const ExprId distance = m.op(ExprOp::Abs, ScalarType::I32, {m.i32(ExprOp::Sub, m.kv(), m.q())});
    return m.is(ExprOp::Le, distance, m.integer(12));
  });
  addOfPath("a stretch beside the past", [&](MaskWriter &m) {
    return m.is(
        ExprOp::Or, past(m),
        m.is(ExprOp::And, m.is(ExprOp::Ge, m.kv(), m.integer(30)), m.is(ExprOp::Lt, m.kv(), m.integer(50))));
  });
  addOfPath("blocks both ways", [](MaskWriter &m) {
    return m.is(ExprOp::Eq, m.blockOf(m.kv(), m.integer(16)), m.blockOf(m.q(), m.integer(16)));
  });
  addOfPath("delayed on a path",
            [](MaskWriter &m) { return m.is(ExprOp::Le, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(5))); });
  return masks;
}

spec::Variant randomMask(unsigned seed) {
  std::mt19937 random(seed);
  VariantBuilder builder;
  RandomExpr expr(builder, random, /*withScore=*/false);
  expr.withFunctions = false;
  expr.realsOfThree = seed % 4 == 0 ? 1 : 0;
  builder.variant.mask = expr.boolean(2 + static_cast<int>(seed % 4));
  if (seed % 3 == 0)
    builder.variant.bound = spec::MaskBound::Path;
  return builder.variant;
}

} // namespace deft::test
