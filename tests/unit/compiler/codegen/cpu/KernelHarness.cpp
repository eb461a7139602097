#include "tests/unit/compiler/codegen/cpu/KernelHarness.h"

#include "compiler/codegen/cpu/Lowering.h"
#include "compiler/transforms/Import.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace deft::test {

using spec::DType;

spec::Variant plainVariant(int dim, DType dtype) {
  spec::Variant variant;
  variant.name = "v";
  variant.queryHeads = 2;
  variant.kvHeads = 1;
  variant.tensors = spec::Tensors::alike(dim, dtype);
  variant.withLse = true;
  variant.scale = 1 / std::sqrt(dim);
  return variant;
}

spec::ExprId Exprs::addWeighed(spec::ExprId sum, spec::Builtin name, double factor) {
  spec::ExprId value = builtin(name);
  if (spec::typeOf(name) == spec::ScalarType::I32)
    value = op(spec::ExprOp::ToF32, spec::ScalarType::F32, {value});
  return f32(spec::ExprOp::Add, {sum, f32(spec::ExprOp::Mul, {value, constant(factor)})});
}

spec::ExprId Exprs::constant(double value, spec::ScalarType type) {
  spec::ExprId id = op(spec::ExprOp::Constant, type, {});
  variant_.exprs.back().value = value;
  return id;
}
spec::ExprId Exprs::builtin(spec::Builtin builtin) {
  spec::ExprId id = op(spec::ExprOp::Builtin, spec::typeOf(builtin), {});
  variant_.exprs.back().builtin = builtin;
  return id;
}
spec::ExprId Exprs::param(int index) {
  spec::ExprId id = op(spec::ExprOp::Param, variant_.params[index].type, {});
  variant_.exprs.back().param = index;
  return id;
}
spec::ExprId Exprs::element(int index) {
  spec::ExprId id = op(spec::ExprOp::ParamElement, variant_.params[index].type, {});
  variant_.exprs.back().param = index;
  return id;
}
spec::ExprId Exprs::op(spec::ExprOp op, spec::ScalarType type, std::initializer_list<spec::ExprId> operands) {
  spec::Expr expr;
  expr.op = op;
  expr.type = type;
  expr.operands = operands;
  variant_.exprs.push_back(expr);
  return static_cast<spec::ExprId>(variant_.exprs.size() - 1);
}

float valueOf(DType dtype, std::uint16_t bits) {
  if (dtype == DType::BF16)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float magnitude = exponent == 31 ? (mantissa ? std::nanf("") : std::numeric_limits<float>::infinity())
                          : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                          : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::uint16_t bitsOf(DType dtype, float value) {
  // The nearest of all patterns of one sign, by bisection: slow, and evidently right.
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  std::uint16_t low = 0, high = dtype == DType::BF16 ? 0x7f80 : 0x7c00;
  const double magnitude = std::fabs(value);
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (valueOf(dtype, middle) <= magnitude ? low : high) = middle;
  }
  const double down = magnitude - valueOf(dtype, low), up = valueOf(dtype, high) - magnitude;
  const bool takeHigh = up < down || (up == down && high % 2 == 0);
  return sign | (takeHigh ? high : low);
}

struct Imported::Parts {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  dialect::AttentionOp op;
};

Imported::Imported(const spec::Variant &variant) : parts_(std::make_unique<Parts>()) {
  transforms::loadDialects(parts_->context);
  auto location = mlir::UnknownLoc::get(&parts_->context);
  parts_->module = mlir::ModuleOp::create(location);
  parts_->op = transforms::importVariant(*parts_->module, variant,
                                         [&](support::SourceRange) -> mlir::Location { return location; });
}
Imported::~Imported() = default;
dialect::AttentionOp Imported::op() { return parts_->op; }

Kernel jitKernel(const spec::Variant &variant) {
  Imported imported(variant);
  auto kernel = codegen::cpu::jit(imported.op());
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  return kernel.ok() ? *kernel : nullptr;
}

Kernel objectKernel(const spec::Variant &variant, const codegen::cpu::CpuTarget &target) {
  Imported imported(variant);
  auto object = codegen::cpu::objectCode(imported.op(), target);
  EXPECT_TRUE(object.ok()) << object.error().message;
  if (!object.ok())
    return nullptr;
  auto table = codegen::cpu::loadObject(*object, abi::kCpuKernelPrefix + variant.name);
  EXPECT_TRUE(table.ok()) << table.error().message;
  return table.ok() ? std::static_pointer_cast<const abi::CpuKernel>(*table) : nullptr;
}

namespace {

/// The numbers of a case: tokens lie scattered in a pool, as in a paged cache.
struct Data {
  std::vector<std::uint16_t> q, k, v;
  std::vector<long long> keyOffsets, valueOffsets;
};

Data makeData(const spec::Variant &variant, const Case &c) {
  std::mt19937 random(c.seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const spec::Tensors &tensors = variant.tensors;
  const int keyStride = tensors.k.dim + 5,
            valueStride = tensors.v.dim + 7; // no alignment beyond the element's
  Data data;
  std::vector<int> places(static_cast<std::size_t>(c.tokens));
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random);
  for (int place : places) {
    data.keyOffsets.push_back(static_cast<long long>(place) * keyStride + 3);
    data.valueOffsets.push_back(static_cast<long long>(place) * valueStride + 3);
  }
  data.k.resize(static_cast<std::size_t>(c.tokens * keyStride + 3));
  data.v.resize(static_cast<std::size_t>(c.tokens * valueStride + 3));
  for (auto &bits : data.k)
    bits = bitsOf(tensors.k.dtype, uniform(random));
  for (auto &bits : data.v)
    bits = bitsOf(tensors.v.dtype, uniform(random));
  // Last: the rest does not depend on how many rows there are.
  data.q.resize(static_cast<std::size_t>(c.rows * tensors.q.dim));
  for (auto &bits : data.q)
    bits = bitsOf(tensors.q.dtype, c.range * uniform(random));
  return data;
}

struct State {
  std::vector<float> acc, m, l;
};

/// Offsets that end where memory does: generated code that reads behind them, which no sanitizer sees, ends
/// the test.
class BeforeAWall {
public:
  explicit BeforeAWall(const std::vector<long long> &offsets) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
               bytes = offsets.size() * sizeof(long long);
    const std::size_t used = (bytes + page - 1) / page * page;
    size_ = used + page;
    void *pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<std::byte *>(pages);
    EXPECT_EQ(mprotect(pages_ + used, page, PROT_NONE), 0);
    data_ = reinterpret_cast<long long *>(pages_ + used - bytes);
    std::copy(offsets.begin(), offsets.end(), data_);
  }
  BeforeAWall(const BeforeAWall &) = delete;
  BeforeAWall &operator=(const BeforeAWall &) = delete;
  ~BeforeAWall() { munmap(pages_, size_); }

  const long long *data() const { return data_; }

private:
  std::byte *pages_ = nullptr;
  std::size_t size_ = 0;
  long long *data_ = nullptr;
};

/// As many entries as whole groups have; the extra ones repeat the last.
std::vector<int> padded(const abi::CpuKernel &kernel, int rows, int (*value)(int)) {
  std::vector<int> values;
  const int all = (rows + kernel.groupRows - 1) / kernel.groupRows * kernel.groupRows;
  for (int row = 0; row < all; ++row)
    values.push_back(value(std::min(row, rows - 1)));
  return values;
}

State attendAll(const abi::CpuKernel &kernel, const spec::Variant &variant, const Case &c, const Data &data) {
  const std::vector<int> qPos = padded(kernel, c.rows, Case::qPos),
                         query = padded(kernel, c.rows, Case::query),
                         head = padded(kernel, c.rows, Case::head);
  const auto rows = qPos.size(), keyDim = static_cast<std::size_t>(variant.tensors.k.dim),
             valueDim = static_cast<std::size_t>(variant.tensors.v.dim);
  State state{std::vector<float>(static_cast<std::size_t>(c.rows) * valueDim, 0.0f),
              std::vector<float>(rows, -std::numeric_limits<float>::infinity()),
              std::vector<float>(rows, 0.0f)};
  std::vector<char> packed(rows / static_cast<std::size_t>(kernel.groupRows) *
                           static_cast<std::size_t>(kernel.packedGroupBytes));
  // In two calls, as rows of different queries come.
  const int first = c.rows / 2;
  for (const auto &[begin, end] : {std::pair(0, first), std::pair(first, c.rows)}) {
    abi::CpuPackCall pack{};
    pack.q = data.q.data() + static_cast<std::size_t>(begin) * keyDim;
    pack.packed = packed.data();
    pack.rowBegin = begin;
    pack.rows = end - begin;
    kernel.pack(&pack);
  }
  for (int begin = 0; begin < c.tokens; begin += kernel.blockTokens) {
    const int tokens = std::min(kernel.blockTokens, c.tokens - begin);
    const auto padded =
        static_cast<std::size_t>((tokens + abi::kCpuTokenPad - 1) / abi::kCpuTokenPad * abi::kCpuTokenPad);
    const auto offsetsOf = [&](const std::vector<long long> &all) {
      std::vector<long long> offsets(all.begin() + begin, all.begin() + begin + tokens);
      offsets.resize(padded, offsets.back());
      return offsets;
    };
    const std::vector<long long> keyOffsets = offsetsOf(data.keyOffsets),
                                 valueOffsets = offsetsOf(data.valueOffsets);
    std::vector<int> kvPos, depth, low, high;
    bool cut = false;
    for (int t = 0; t < tokens; ++t) {
      kvPos.push_back(c.kvPos + begin + t);
      depth.push_back(c.depth);
      const auto [rowLow, rowHigh] = c.interval ? c.interval(begin + t) : std::pair(0, c.rows);
      low.push_back(rowLow);
      high.push_back(rowHigh);
      cut |= rowLow > 0 || rowHigh < c.rows;
    }
    for (std::vector<int> *values : {&kvPos, &depth, &low, &high})
      values->resize(padded);
    const int nextTokens = std::min(kernel.blockTokens, c.tokens - begin - tokens);
    const auto nextOf = [&](const std::vector<long long> &all) {
      const auto first = all.begin() + begin + tokens;
      return BeforeAWall(nextTokens > 0 ? std::vector<long long>(first, first + nextTokens)
                                        : std::vector<long long>{all.back()});
    };
    const BeforeAWall nextKeyOffsets = nextOf(data.keyOffsets), nextValueOffsets = nextOf(data.valueOffsets);
    abi::CpuAttendCall call{};
    call.packed = packed.data();
    call.acc = state.acc.data();
    call.m = state.m.data();
    call.l = state.l.data();
    call.qPos = qPos.data();
    call.query = query.data();
    call.head = head.data();
    call.k = call.nextK = data.k.data();
    call.v = call.nextV = data.v.data();
    call.keyOffsets = keyOffsets.data();
    call.valueOffsets = valueOffsets.data();
    call.kvPos = kvPos.data();
    call.depth = depth.data();
    call.rowLow = low.data();
    call.rowHigh = high.data();
    call.nextKeyOffsets = nextKeyOffsets.data();
    call.nextValueOffsets = nextValueOffsets.data();
    call.nextTokens = nextTokens;
    call.params = c.params.data();
    call.rows = c.rows;
    call.tokens = tokens;
    call.kvHead = c.kvHead;
    call.masked = c.masked;
    call.cut = cut;
    kernel.attend(&call);
  }
  state.m.resize(static_cast<std::size_t>(c.rows));
  state.l.resize(static_cast<std::size_t>(c.rows));
  return state;
}

} // namespace

Results runKernel(const abi::CpuKernel &kernel, const spec::Variant &variant, const Case &c) {
  const Data data = makeData(variant, c);
  State state = attendAll(kernel, variant, c, data);
  const std::size_t size = state.acc.size();
  std::vector<float> partial(size), lse(state.m.size()), partialLse(state.m.size());
  std::vector<std::uint16_t> out(size);
  const bool sigmoid = variant.normalize == spec::Normalize::Sigmoid;
  abi::CpuFinishCall call{state.acc.data(),
                          state.m.data(),
                          state.l.data(),
                          partial.data(),
                          sigmoid ? nullptr : partialLse.data(),
                          c.rows,
                          0,
                          nullptr,
                          0,
                          0};
  kernel.finishPartial(&call);
  call.out = out.data();
  call.lse = sigmoid ? nullptr : lse.data();
  kernel.finish(&call);
  Results run;
  run.partial.out.assign(partial.begin(), partial.end());
  for (std::uint16_t bits : out)
    run.output.out.push_back(valueOf(variant.tensors.out.dtype, bits));
  if (!sigmoid) {
    run.partial.lse.assign(partialLse.begin(), partialLse.end());
    run.output.lse.assign(lse.begin(), lse.end());
  }
  return run;
}

Answer inDoubles(const spec::Variant &variant, const Case &c, const Formula &formula) {
  const Data data = makeData(variant, c);
  const bool sigmoid = variant.normalize == spec::Normalize::Sigmoid;
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = variant.tensors;
  Answer answer;
  for (int row = 0; row < c.rows; ++row) {
    std::vector<double> scores;
    for (int t = 0; t < c.tokens; ++t) {
      double s = 0;
      for (int i = 0; i < k.dim; ++i)
        s += static_cast<double>(valueOf(q.dtype, data.q[row * k.dim + i])) *
             valueOf(k.dtype, data.k[data.keyOffsets[t] + i]);
      s *= variant.scale;
      if (formula.score)
        s = formula.score(row, c.kvPos + t, s);
      const auto [low, high] = c.interval ? c.interval(t) : std::pair(0, c.rows);
      if (row < low || row >= high || (formula.mask && !formula.mask(row, c.kvPos + t)))
        s = -std::numeric_limits<double>::infinity();
      scores.push_back(s);
    }
    const double largest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
    const double reference = std::isinf(largest) ? 0 : largest;
    double sum = 0;
    std::vector<double> sums(static_cast<std::size_t>(v.dim), 0.0);
    for (int t = 0; t < c.tokens; ++t) {
      const double weight = sigmoid ? 1 / (1 + std::exp(-scores[t])) : std::exp(scores[t] - reference);
      sum += weight;
      for (int i = 0; i < v.dim; ++i)
        sums[i] += weight * valueOf(v.dtype, data.v[data.valueOffsets[t] + i]);
    }
    for (double value : sums)
      answer.out.push_back(sigmoid ? value : sum > 0 ? value / sum : 0);
    if (!sigmoid)
      answer.lse.push_back(sum > 0 ? reference + std::log(sum) : -std::numeric_limits<double>::infinity());
  }
  return answer;
}

double relativeError(const std::vector<double> &a, const std::vector<double> &b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

void expectMatches(const abi::CpuKernel &kernel, const spec::Variant &variant, const Case &c,
                   const Formula &formula) {
  const Results run = runKernel(kernel, variant, c);
  const Answer expected = inDoubles(variant, c, formula);
  // Sums of up to a few hundred f32 products; where bf16 is multiplied in pairs, of weights rounded to it.
  // The table does not say whether V is; where K is, it shows in how q is packed.
  const spec::Tensors &tensors = variant.tensors;
  const bool dotsPairs = kernel.packedGroupBytes == kernel.groupRows * kernel.keyDim * 2 ||
                         (tensors.v.dtype == DType::BF16 && tensors.k.dtype != DType::BF16);
  const double weights = dotsPairs ? 0x1p-8 : 2e-6;
  EXPECT_LE(relativeError(run.partial.out, expected.out), weights);
  // Half a unit in the last place, relative to the smallest significand.
  const double rounding = tensors.out.dtype == DType::BF16 ? 0x1p-8 : 0x1p-11;
  EXPECT_LE(relativeError(run.output.out, expected.out), rounding + weights);
  ASSERT_EQ(run.partial.lse.size(), expected.lse.size());
  for (std::size_t row = 0; row < expected.lse.size(); ++row) {
    EXPECT_EQ(run.partial.lse[row], run.output.lse[row]);
    if (std::isinf(expected.lse[row]))
      EXPECT_EQ(run.output.lse[row], expected.lse[row]) << "row " << row;
    else
      EXPECT_NEAR(run.output.lse[row], expected.lse[row], 2e-5) << "row " << row;
  }
}

} // namespace deft::test
