#include "compiler/codegen/cpu/VectorMath.h"

#include "compiler/codegen/cpu/Lowering.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace deft::codegen::cpu {

/// One elementary function, compiled as a loop over an array of a multiple of 16 elements.
class Compiled {
public:
  using Emit = mlir::Value (*)(Emitter &, mlir::Value);
  Compiled(Emit emit, int lanes) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<mlir::arith::ArithDialect, mlir::LLVM::LLVMDialect, mlir::scf::SCFDialect,
                        mlir::vector::VectorDialect>();
    mlir::OpBuilder builder(&context);
    auto module = mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(builder.getUnknownLoc()));
    Emitter e(builder, builder.getUnknownLoc(), lanes);
    auto function = e.function(*module, "f", {}, {e.pointerType(), e.pointerType(), e.i64Type()});
    function.setLinkage(mlir::LLVM::Linkage::External);
    e.loop(e.i64(0), function.getArgument(2), lanes, [&](mlir::Value i) {
      mlir::Value x = e.loadAt(e.vectorOf(e.f32Type()), function.getArgument(0), i);
      e.store(emit(e, x), e.at(function.getArgument(1), e.f32Type(), i));
    });
    e.ret();
    auto target = lanes == 16 ? CpuTarget::host() : CpuTarget::level(3);
    auto llvm = lowerModule(*module, *target);
    EXPECT_TRUE(llvm.ok());
    auto object = generateCode(*llvm, llvm::CodeGenFileType::ObjectFile);
    auto loaded = loadObject(*object, "f");
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    code_ = *loaded;
  }

  std::vector<float> operator()(std::vector<float> x) const {
    const std::size_t count = x.size();
    x.resize((count + 15) / 16 * 16, 1.0f);
    std::vector<float> y(x.size());
    reinterpret_cast<void (*)(const float *, float *, long long)>(const_cast<void *>(code_.get()))(
        x.data(), y.data(), static_cast<long long>(x.size()));
    y.resize(count);
    return y;
  }
  float at(float x) const { return (*this)(std::vector<float>{x})[0]; }

private:
  std::shared_ptr<const void> code_;
};

/// The distance of `value` from the exact result, in units of the last place of its float.
static double ulps(float value, double exact) {
  if (std::isinf(static_cast<float>(exact)) || std::isinf(value))
    return static_cast<float>(exact) == value ? 0 : 1e9;
  const float magnitude = std::fabs(static_cast<float>(exact));
  const double unit = static_cast<double>(std::nextafter(magnitude, kInf)) - magnitude;
  return std::fabs(value - exact) / unit;
}

/// The largest error over every `step`-th float of [low, high], both signs of patterns included.
static double worst(const Compiled &f, double (*exact)(double), float low, float high, float *where) {
  std::vector<float> x;
  const int samples = 400000;
  for (int i = 0; i <= samples; ++i)
    x.push_back(static_cast<float>(low + (static_cast<double>(high) - low) * i / samples));
  // Small magnitudes too, which an even walk over the range would miss.
  for (float magnitude = 1; magnitude > 1e-38f; magnitude *= 0.97f)
    for (float value : {magnitude, -magnitude})
      if (value >= low && value <= high)
        x.push_back(value);
  const std::vector<float> y = f(x);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], exact(x[i]));
    if (!(error <= largest)) {
      largest = error;
      *where = x[i];
    }
  }
  return largest;
}

/// Every function at both vector widths that packages and this machine use.
class VectorMathTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    auto host = CpuTarget::host();
    ASSERT_TRUE(host.ok()) << host.error().message;
    if (GetParam() > host->lanes())
      GTEST_SKIP() << "this processor has no AVX-512";
  }
  Compiled compiled(Compiled::Emit emit) const { return Compiled(emit, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Lanes, VectorMathTest, testing::Values(8, 16));

static double exactExp(double x) { return std::exp(x); }
static double exactExp2(double x) { return std::exp2(x); }
static double exactLog(double x) { return std::log(x); }
static double exactLog2(double x) { return std::log2(x); }
static double exactTanh(double x) { return std::tanh(x); }
static double exactSin(double x) { return std::sin(x); }
static double exactCos(double x) { return std::cos(x); }

TEST_P(VectorMathTest, ExpIsAccurateAndRightAtItsEnds) {
  const Compiled f = compiled(emitExp);
  float where = 0;
  EXPECT_LE(worst(f, exactExp, -87.3f, 88.72f, &where), 2.0) << "at " << where;
  EXPECT_LE(worst(f, exactExp, -103.9f, -87.3f, &where), 2.0) << "subnormal, at " << where;
  EXPECT_EQ(f.at(-kInf), 0.0f);
  EXPECT_EQ(f.at(-1e30f), 0.0f);
  EXPECT_EQ(f.at(-104.0f), 0.0f);
  EXPECT_EQ(f.at(-103.9f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(f.at(0.0f), 1.0f);
  EXPECT_EQ(f.at(-0.0f), 1.0f);
  EXPECT_EQ(f.at(88.73f), kInf);
  EXPECT_EQ(f.at(kInf), kInf);
  EXPECT_EQ(f.at(std::numeric_limits<float>::denorm_min()), 1.0f);
  EXPECT_TRUE(std::isnan(f.at(std::nanf(""))));
}

TEST_P(VectorMathTest, ExpWeightIsAccurateAndVanishesSmoothly) {
  const Compiled f = compiled(emitExpWeight);
  float where = 0;
  EXPECT_LE(worst(f, exactExp, -87.29f, 0.0f, &where), 2.0) << "at " << where;
  EXPECT_EQ(f.at(-kInf), 0.0f);
  EXPECT_EQ(f.at(-87.4f), 0.0f);
  EXPECT_EQ(f.at(-1e30f), 0.0f);
  EXPECT_EQ(f.at(0.0f), 1.0f);
  EXPECT_EQ(f.at(std::nanf("")), 0.0f);
}

TEST_P(VectorMathTest, Exp2IsAccurateAndExactAtIntegers) {
  const Compiled f = compiled(emitExp2);
  float where = 0;
  EXPECT_LE(worst(f, exactExp2, -149.0f, 127.99f, &where), 2.0) << "at " << where;
  for (int n = -149; n <= 127; ++n)
    EXPECT_EQ(f.at(static_cast<float>(n)), std::ldexp(1.0f, n));
  EXPECT_EQ(f.at(128.0f), kInf);
  EXPECT_EQ(f.at(kInf), kInf);
  EXPECT_EQ(f.at(-kInf), 0.0f);
  EXPECT_TRUE(std::isnan(f.at(std::nanf(""))));
}

TEST_P(VectorMathTest, LogsAreAccurateAndRightAtTheirEnds) {
  const Compiled natural = compiled(emitLog), binary = compiled(emitLog2);
  float where = 0;
  for (auto [low, high] : {std::pair{0.5f, 2.0f}, {1e-38f, 1.0f}, {1.0f, 3e38f}, {1e-44f, 1e-38f}}) {
    EXPECT_LE(worst(natural, exactLog, low, high, &where), 3.0) << "at " << where;
    EXPECT_LE(worst(binary, exactLog2, low, high, &where), 3.0) << "at " << where;
  }
  for (const Compiled *f : {&natural, &binary}) {
    EXPECT_EQ(f->at(0.0f), -kInf);
    EXPECT_EQ(f->at(-0.0f), -kInf);
    EXPECT_EQ(f->at(kInf), kInf);
    EXPECT_EQ(f->at(1.0f), 0.0f);
    EXPECT_TRUE(std::isnan(f->at(-1.0f)));
    EXPECT_TRUE(std::isnan(f->at(-kInf)));
    EXPECT_TRUE(std::isnan(f->at(std::nanf(""))));
  }
}

TEST_P(VectorMathTest, TanhIsAccurateOddAndBounded) {
  const Compiled f = compiled(emitTanh);
  float where = 0;
  EXPECT_LE(worst(f, exactTanh, -12.0f, 12.0f, &where), 4.0) << "at " << where;
  EXPECT_EQ(f.at(kInf), 1.0f);
  EXPECT_EQ(f.at(-kInf), -1.0f);
  EXPECT_EQ(f.at(50.0f), 1.0f);
  EXPECT_TRUE(std::signbit(f.at(-0.0f)));
  EXPECT_TRUE(std::isnan(f.at(std::nanf(""))));
  for (float x : {1e-30f, 0.1f, 0.7f, 3.0f, 9.5f}) {
    EXPECT_EQ(f.at(-x), -f.at(x));
    EXPECT_LE(f.at(x), 1.0f);
  }
}

TEST_P(VectorMathTest, SineAndCosineAreAccurateHoweverManyTurnsWereMade) {
  const Compiled sine = compiled(emitSin), cosine = compiled(emitCos);
  for (const float range : {2.0f, 1e3f, 3e5f, 0x1p30f}) {
    float where = 0;
    EXPECT_LE(worst(sine, exactSin, -range, range, &where), 1.0) << "at " << where;
    EXPECT_LE(worst(cosine, exactCos, -range, range, &where), 1.0) << "at " << where;
  }
  for (const Compiled *f : {&sine, &cosine}) {
    for (const float x : {1e10f, -3e30f})
      EXPECT_LE(std::fabs(f->at(x)), 1.0f);
    for (const float x : {kInf, -kInf, std::nanf("")})
      EXPECT_TRUE(std::isnan(f->at(x)));
  }
  EXPECT_EQ(sine.at(0.0f), 0.0f);
  EXPECT_EQ(cosine.at(0.0f), 1.0f);
}

} // namespace deft::codegen::cpu
