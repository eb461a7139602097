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
  const auto distanceIs = [](MaskWriter &m, ExprOp kind, int distance) {
    return m.is(kind, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(distance)));
  };
  add("window and one token far behind", [&](MaskWriter &m) {
    return m.is(ExprOp::Or, distanceIs(m, ExprOp::Eq, 15), distanceIs(m, ExprOp::Gt, 3));
  });
  add("window and a band behind it", [&](MaskWriter &m) {
    return m.is(ExprOp::Or, m.is(ExprOp::And, distanceIs(m, ExprOp::Gt, 50), distanceIs(m, ExprOp::Lt, 30)),
                distanceIs(m, ExprOp::Gt, 8));
  });
  add("sink, band and window", [&](MaskWriter &m) {
    return m.is(ExprOp::Or, m.is(ExprOp::Lt, m.kv(), m.integer(3)),
                m.is(ExprOp::Or,
                     m.is(ExprOp::And, distanceIs(m, ExprOp::Ge, 40), distanceIs(m, ExprOp::Le, 35)),
                     distanceIs(m, ExprOp::Ge, 5)));
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
  addOfPath("window behind a stretch that all see", [&](MaskWriter &m) {
    return m.is(ExprOp::Or,
                m.is(ExprOp::And, past(m),
                     m.is(ExprOp::And, m.is(ExprOp::Ge, m.kv(), m.integer(20)), m.window(m.integer(15)))),
                m.is(ExprOp::Ge, m.kv(), m.integer(45)));
  });
  addOfPath("blocks both ways", [](MaskWriter &m) {
    return m.is(ExprOp::Eq, m.blockOf(m.kv(), m.integer(16)), m.blockOf(m.q(), m.integer(16)));
  });
  addOfPath("delayed on a path",
            [](MaskWriter &m) { return m.is(ExprOp::Le, m.kv(), m.i32(ExprOp::Sub, m.q(), m.integer(5))); });
  return masks;
}

spec::Variant randomBands(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  MaskWriter m;
  const auto behind = [&](int distance) { return m.i32(ExprOp::Sub, m.q(), m.integer(distance)); };
  const auto band = [&] {
    const int near = below(30);
    const ExprId starts[] = {behind(near + below(25)), m.integer(below(60)),
                             m.blockOf(m.q(), m.integer(2 + below(30)))};
    const ExprId ends[] = {behind(near), m.integer(below(90)), behind(below(3))};
    const ExprId from = m.is(ExprOp::Ge, m.kv(), starts[below(3)]),
                 until = m.is(ExprOp::Le, m.kv(), ends[below(3)]);
    const int sides = below(5);
    return sides == 0 ? from : sides == 1 ? until : m.is(ExprOp::And, from, until);
  };
  ExprId mask = band();
  for (int more = below(3); more > 0; --more)
    mask = m.is(ExprOp::Or, mask, band());
  m.variant.mask = mask;
  if (below(3) == 0)
    m.variant.bound = spec::MaskBound::Path;
  return m.variant;
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
