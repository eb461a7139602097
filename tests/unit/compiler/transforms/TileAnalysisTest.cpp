#include "compiler/transforms/Import.h"
#include "compiler/transforms/Passes.h"
#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/transforms/ExprF32.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

/// The proof of the interval analysis: over small tiles, every pair is evaluated and compared with what
/// `tile` claims of all of them.
namespace deft::transforms {
namespace {

using spec::Builtin;
using spec::ExprId;
using spec::ExprOp;
using spec::ScalarType;
using test::Scalar;

struct Box {
  int qLo, qHi, kvLo, kvHi, depthLo, depthHi, queryLo, queryHi, headLo, headHi, kvHead;

  std::vector<Scalar> arguments() const {
    std::vector<Scalar> result;
    for (int bound : {qLo, qHi, kvLo, kvHi, depthLo, depthHi, queryLo, queryHi, headLo, headHi, kvHead})
      result.push_back({bound, 0});
    return result;
  }

  template <typename F> void forEachPair(F visit) const {
    for (int q = qLo; q <= qHi; ++q)
      for (int kv = kvLo; kv <= kvHi; ++kv)
        for (int depth = depthLo; depth <= depthHi; ++depth)
          for (int query = queryLo; query <= queryHi; ++query)
            for (int head = headLo; head <= headHi; ++head)
              visit(reference::Site{0, q, kv, head, kvHead, depth, query});
  }
};

std::ostream &operator<<(std::ostream &out, const Box &box) {
  return out << "q [" << box.qLo << ", " << box.qHi << "] kv [" << box.kvLo << ", " << box.kvHi << "] depth ["
             << box.depthLo << ", " << box.depthHi << "] query [" << box.queryLo << ", " << box.queryHi
             << "] head [" << box.headLo << ", " << box.headHi << "] kv_head " << box.kvHead;
}

Box randomBox(std::mt19937 &random, const spec::Variant &variant) {
  auto within = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  auto interval = [&](int lo, int hi, int longest, int &from, int &to) {
    from = within(lo, hi);
    to = std::min(hi, from + within(0, longest - 1));
  };
  constexpr int kLast = dialect::kPositionLimit - 1;
  // Mostly near the start, where small constants matter; sometimes at the end of what positions may be.
  int base = within(0, 9) == 0 ? kLast - 24 : 0;
  Box box{};
  interval(base == 0 ? -1 : base, base + 16, 4, box.qLo, box.qHi);
  interval(base, base + 16, 6, box.kvLo, box.kvHi);
  interval(0, 4, 2, box.depthLo, box.depthHi);
  interval(0, 5, 2, box.queryLo, box.queryHi);
  box.kvHead = within(0, variant.kvHeads - 1);
  interval(box.kvHead * variant.ratio(), (box.kvHead + 1) * variant.ratio() - 1, 3, box.headLo, box.headHi);
  return box;
}

/// Random values of the parameters, the ends of the types and NaN among them.
exec::Inputs randomParams(std::mt19937 &random, const spec::Variant &variant) {
  auto pick = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  exec::Inputs inputs;
  for (const spec::Param &param : variant.params) {
    int count = param.shape == spec::Param::Shape::Scalar         ? 1
                : param.shape == spec::Param::Shape::Table        ? param.size
                : param.shape == spec::Param::Shape::PerQueryHead ? variant.queryHeads
                                                                  : variant.kvHeads;
    exec::ParamValue value;
    for (int i = 0; i < count; ++i) {
      if (param.type == ScalarType::F32)
        value.f32.push_back(pick(12) == 0 ? std::array{kInf, -kInf, std::nanf(""), 3e38f, 0.f}[pick(5)]
                                          : static_cast<float>(pick(41) - 20) / 4);
      else
        value.i32.push_back(pick(12) == 0 ? std::array{INT32_MIN, INT32_MAX, -1, 0}[pick(4)] : pick(21) - 8);
    }
    inputs.params.push_back(value);
  }
  return inputs;
}

/// One variant, compiled, with its parameters bound.
class Compiled {
public:
  Compiled(const spec::Variant &variant, exec::Inputs inputs)
      : variant_(variant), inputs_(std::move(inputs)) {
    loadDialects(context_);
    module_ = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
    importVariant(*module_, variant, [&](support::SourceRange) { return mlir::UnknownLoc::get(&context_); });
    EXPECT_TRUE(mlir::succeeded(optimize(*module_)));
    for (size_t i = 0; i < variant.params.size(); ++i) {
      std::vector<Scalar> &values = params_[variant.params[i].name];
      for (float value : inputs_.params[i].f32)
        values.push_back({0, value});
      for (int value : inputs_.params[i].i32)
        values.push_back({value, 0});
    }
    attention_ = *module_->getOps<dialect::AttentionOp>().begin();
    if (attention_.hasMask()) {
      mask_.emplace(attention_.getMask(), params_);
      tile_.emplace(attention_.getTile(), params_);
    }
  }

  bool visible(const reference::Site &site) const {
    return test::evaluateBool(variant_, inputs_, *variant_.mask, site);
  }
  bool visibleByIr(const reference::Site &site) {
    return !mask_ || mask_
                         ->run({{0, 0},
                                {site.qPos, 0},
                                {site.kvPos, 0},
                                {site.head, 0},
                                {site.kvHead, 0},
                                {site.depth, 0},
                                {site.query, 0}})[0]
                         .integer;
  }
  /// {any, all}
  std::pair<bool, bool> claim(const Box &box) {
    if (!tile_)
      return {true, true};
    const std::vector<Scalar> &yielded = tile_->run(box.arguments());
    return {yielded[0].integer != 0, yielded[1].integer != 0};
  }
  std::string undefined() const { return mask_ ? mask_->undefined() + tile_->undefined() : ""; }

  std::string text() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module_->print(stream);
    return text;
  }

private:
  spec::Variant variant_;
  exec::Inputs inputs_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  dialect::AttentionOp attention_;
  test::ParamValues params_;
  std::optional<test::RegionInterpreter> mask_, tile_;
};

struct Counts {
  long tiles = 0, empty = 0, whole = 0, claimedEmpty = 0, claimedWhole = 0;
};

/// Checks one tile. Adds what is true of it, and what is claimed, to the counts.
void checkTile(Compiled &compiled, const Box &box, Counts &counts) {
  bool any = false, all = true, sameByIr = true;
  box.forEachPair([&](const reference::Site &site) {
    bool visible = compiled.visible(site);
    any |= visible;
    all &= visible;
    sameByIr &= visible == compiled.visibleByIr(site);
  });
  auto [claimedAny, claimedAll] = compiled.claim(box);
  ASSERT_TRUE(sameByIr) << "the mask's IR differs from the expression in tile " << box << '\n'
                        << compiled.text();
  ASSERT_TRUE(claimedAny || !any) << "tile " << box << " is claimed empty\n" << compiled.text();
  ASSERT_TRUE(!claimedAll || all) << "tile " << box << " is claimed whole\n" << compiled.text();
  ASSERT_EQ(compiled.undefined(), "") << "in tile " << box << '\n' << compiled.text();
  ++counts.tiles;
  counts.empty += !any;
  counts.whole += all;
  counts.claimedEmpty += !claimedAny;
  counts.claimedWhole += claimedAll;
}

void checkRandomMasks(unsigned firstSeed, int masks, int depth, int realsOfThree, Counts &counts) {
  static constexpr std::pair<int, int> kHeads[] = {{2, 2}, {4, 2}, {6, 2}, {12, 1}};
  for (int i = 0; i < masks; ++i) {
    unsigned seed = firstSeed + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto [queryHeads, kvHeads] = kHeads[seed % 4];
    test::VariantBuilder builder(queryHeads, kvHeads, 64);
    test::RandomExpr expressions(builder, random, /*withScore=*/false);
    expressions.realsOfThree = realsOfThree;
    builder.variant.mask = expressions.boolean(depth);
    exec::Inputs params = randomParams(random, builder.variant);
    Compiled compiled(builder.variant, params);
    for (int tile = 0; tile < 12; ++tile)
      ASSERT_NO_FATAL_FAILURE(checkTile(compiled, randomBox(random, builder.variant), counts));
  }
}

void print(const Counts &counts) {
  std::cout << counts.tiles << " tiles; empty " << counts.empty << ", claimed " << counts.claimedEmpty
            << "; whole " << counts.whole << ", claimed " << counts.claimedWhole << '\n';
}

TEST(TileAnalysisTest, ClaimsHoldForRandomMasks) {
  Counts counts;
  for (int depth : {1, 2, 3, 4})
    ASSERT_NO_FATAL_FAILURE(checkRandomMasks(20260101u + 100000u * depth, 1000, depth, 1, counts));
  print(counts);
  // An analysis that claims nothing would be sound too.
  EXPECT_GT(counts.claimedEmpty, counts.empty * 6 / 10);
  EXPECT_GT(counts.claimedWhole, counts.whole * 6 / 10);
}

TEST(TileAnalysisTest, ClaimsHoldForRandomMasksOfF32) {
  Counts counts;
  for (int depth : {1, 2, 3})
    ASSERT_NO_FATAL_FAILURE(checkRandomMasks(777000u + 100000u * depth, 1000, depth, 3, counts));
  print(counts);
  EXPECT_GT(counts.claimedEmpty, counts.empty * 3 / 10);
  EXPECT_GT(counts.claimedWhole, counts.whole * 3 / 10);
}

/// kv_pos OP q_pos - window, and the like, for every comparison and every tile of a small grid.
class ExactMaskTest : public testing::Test {
protected:
  test::VariantBuilder builder{4, 2, 64};

  ExprId op(ExprOp op, ScalarType type, ExprId a, ExprId b) { return builder.op(op, type, {a, b}); }
  ExprId read(Builtin name) { return builder.read(name); }

  /// Every tile with bounds in a small grid must be told exactly.
  void expectExact(ExprId mask, exec::Inputs params = {}) {
    std::string text;
    Counts counts = expectSound(mask, params, text);
    EXPECT_EQ(counts.claimedEmpty, counts.empty) << text;
    EXPECT_EQ(counts.claimedWhole, counts.whole) << text;
  }

  Counts expectSound(ExprId mask) {
    std::string text;
    return expectSound(mask, {}, text);
  }

private:
  Counts expectSound(ExprId mask, const exec::Inputs &params, std::string &text) {
    builder.variant.mask = mask;
    Compiled compiled(builder.variant, params);
    text = compiled.text();
    Counts counts;
    for (int qLo = -1; qLo <= 8; ++qLo)
      for (int qHi = qLo; qHi <= std::min(8, qLo + 4); ++qHi)
        for (int kvLo = 0; kvLo <= 10; ++kvLo)
          for (int kvHi = kvLo; kvHi <= std::min(10, kvLo + 5); ++kvHi)
            if (!testing::Test::HasFatalFailure())
              checkTile(compiled, {qLo, qHi, kvLo, kvHi, 0, 1, 0, 0, 2, 3, 1}, counts);
    return counts;
  }
};

TEST_F(ExactMaskTest, EveryComparisonOfPositions) {
  for (ExprOp compare : {ExprOp::Lt, ExprOp::Le, ExprOp::Gt, ExprOp::Ge, ExprOp::Eq, ExprOp::Ne})
    for (int window : {-2, 0, 3, 7}) {
      SCOPED_TRACE(static_cast<int>(compare));
      builder.variant.exprs.clear();
      ExprId start = op(ExprOp::Sub, ScalarType::I32, read(Builtin::QPos), builder.integer(window));
      ExprId mask = op(compare, ScalarType::Bool, read(Builtin::KvPos), start);
      expectExact(mask);
      expectExact(builder.op(ExprOp::Not, ScalarType::Bool, {mask}));
    }
}

TEST_F(ExactMaskTest, WindowGivenAtRunTime) {
  int window = builder.param("window", ScalarType::I32, spec::Param::Shape::Scalar);
  ExprId start = op(ExprOp::Sub, ScalarType::I32, read(Builtin::QPos), builder.readParam(window));
  ExprId mask = op(ExprOp::Gt, ScalarType::Bool, read(Builtin::KvPos), start);
  for (int value : {-3, 0, 4, 1000}) {
    exec::Inputs params;
    params.params.push_back({{}, {value}});
    expectExact(mask, params);
  }
}

TEST_F(ExactMaskTest, WindowOfEachHeadWhereTheyAreAlike) {
  int window = builder.param("window", ScalarType::I32, spec::Param::Shape::PerQueryHead);
  ExprId start = op(ExprOp::Sub, ScalarType::I32, read(Builtin::QPos), builder.readParam(window));
  exec::Inputs params;
  params.params.push_back({{}, {1, 1, 5, 5}});
  expectExact(op(ExprOp::Gt, ScalarType::Bool, read(Builtin::KvPos), start), params);
}

TEST_F(ExactMaskTest, DistanceAsF32) {
  ExprId distance =
      op(ExprOp::Sub, ScalarType::F32, builder.op(ExprOp::ToF32, ScalarType::F32, {read(Builtin::QPos)}),
         builder.op(ExprOp::ToF32, ScalarType::F32, {read(Builtin::KvPos)}));
  expectExact(op(ExprOp::Lt, ScalarType::Bool,
                 op(ExprOp::Mul, ScalarType::F32, distance, builder.constant(0.5)), builder.constant(1.75)));
}

TEST_F(ExactMaskTest, BlocksOfPositions) {
  auto block = [&](Builtin name) {
    ExprId x = read(name);
    return op(ExprOp::Sub, ScalarType::I32, x, op(ExprOp::Rem, ScalarType::I32, x, builder.integer(4)));
  };
  ExprId mine = block(Builtin::KvPos);
  expectExact(op(ExprOp::Eq, ScalarType::Bool, mine, block(Builtin::QPos)));
}

TEST_F(ExactMaskTest, WindowThatLeavesI32Wraps) {
  // q_pos - (least i32) wraps to a negative number for q_pos >= 0 and to the largest for q_pos = -1.
  ExprId start = op(ExprOp::Sub, ScalarType::I32, read(Builtin::QPos), builder.integer(INT32_MIN));
  builder.variant.mask = op(ExprOp::Gt, ScalarType::Bool, read(Builtin::KvPos), start);
  Compiled compiled(builder.variant, {});
  Counts counts;
  for (int qLo = -1; qLo <= 3; ++qLo)
    for (int qHi = qLo; qHi <= 3; ++qHi)
      ASSERT_NO_FATAL_FAILURE(checkTile(compiled, {qLo, qHi, 0, 3, 0, 0, 0, 0, 2, 3, 1}, counts));
  EXPECT_GT(counts.whole, 0);
}

/// A bound that leaves a value out would claim a tile empty, or whole, that is not.
TEST_F(ExactMaskTest, BoundsOfEveryFunctionHoldItsValues) {
  int functions = 0;
  for (const spec::Operation &function : spec::operations()) {
    if (!function.isFunction || function.operands != 1)
      continue;
    ++functions;
    SCOPED_TRACE(function.word);
    long tiles = 0, whole = 0, empty = 0;
    for (const double scale : {0.5, -0.75, 9.0})
      for (const int at : {0, 3, 7}) { // as large as one of the values
        builder.variant.exprs.clear();
        const auto real = [&](ExprOp name, ExprId a, ExprId b) { return op(name, ScalarType::F32, a, b); };
        ExprId position = builder.op(ExprOp::ToF32, ScalarType::F32, {read(Builtin::KvPos)});
        ExprId x =
            real(ExprOp::Mul, real(ExprOp::Sub, position, builder.constant(4)), builder.constant(scale));
        ExprId value = builder.op(function.op, ScalarType::F32, {x});
        const double limit = function.ofReals((at - 4) * scale, 0);
        ExprId least = builder.constant(std::isfinite(limit) ? limit : 1);
        const Counts counts = expectSound(op(ExprOp::Le, ScalarType::Bool, value, least));
        ASSERT_FALSE(HasFatalFailure());
        tiles += counts.tiles;
        whole += counts.whole;
        empty += counts.empty;
      }
    EXPECT_GT(whole, 0);
    EXPECT_GT(empty, 0);
    EXPECT_GT(tiles, whole + empty);
  }
  EXPECT_GE(functions, 12);
}

/// Each makes a NaN in one more way; what holds for numbers must not be claimed of it.
TEST_F(ExactMaskTest, ClaimsHoldWhereNanArises) {
  constexpr auto kF32 = ScalarType::F32;
  auto real = [&](Builtin name) { return builder.op(ExprOp::ToF32, kF32, {read(name)}); };
  auto compare = [&](ExprOp name, ExprId a, ExprId b) { return op(name, ScalarType::Bool, a, b); };
  auto choose = [&](Builtin name, double above, double otherwise) {
    ExprId condition = compare(ExprOp::Gt, read(name), builder.integer(3));
    ExprId a = builder.constant(above);
    return builder.op(ExprOp::Select, kF32, {condition, a, builder.constant(otherwise)});
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  ExprId zero = builder.constant(0);

  ExprId sum = op(ExprOp::Add, kF32, choose(Builtin::KvPos, kInf, 1), choose(Builtin::QPos, -kInf, 1));
  expectSound(compare(ExprOp::Le, sum, builder.constant(kInf)));
  expectSound(compare(ExprOp::Ne, sum, sum));
  ExprId product = op(ExprOp::Mul, kF32, choose(Builtin::KvPos, kInf, 1), choose(Builtin::QPos, 0, 1));
  expectSound(compare(ExprOp::Ge, product, zero));

  ExprId root =
      builder.op(ExprOp::Sqrt, kF32, {op(ExprOp::Sub, kF32, real(Builtin::KvPos), builder.constant(3))});
  expectSound(compare(ExprOp::Ge, root, zero));
  // A NaN within known bounds, as tanh leaves it.
  root = builder.op(ExprOp::Tanh, kF32, {root});
  expectSound(compare(ExprOp::Le, op(ExprOp::Min, kF32, root, builder.constant(2)), builder.constant(1.75)));
  expectSound(compare(ExprOp::Ge, op(ExprOp::Max, kF32, root, builder.constant(-2)), builder.constant(-1.5)));
  ExprId condition = compare(ExprOp::Gt, read(Builtin::QPos), builder.integer(3));
  ExprId one = builder.constant(1);
  expectSound(
      compare(ExprOp::Ge, builder.op(ExprOp::Select, kF32, {condition, root, one}), builder.constant(-2)));
  expectSound(
      compare(ExprOp::Ge, builder.op(ExprOp::Select, kF32, {condition, one, root}), builder.constant(-2)));
}

} // namespace
} // namespace deft::transforms
