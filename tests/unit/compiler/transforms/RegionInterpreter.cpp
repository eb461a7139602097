#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "compiler/spec/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace deft::test {

using namespace mlir;
using namespace dialect;

namespace {

bool compare(arith::CmpIPredicate predicate, int64_t a, int64_t b) {
  using P = arith::CmpIPredicate;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  llvm_unreachable("unknown predicate");
}

bool compare(arith::CmpFPredicate predicate, float a, float b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  }
  llvm_unreachable("unknown predicate");
}

int64_t truncate(uint64_t value, unsigned bits) {
  if (bits == 1)
    return value & 1;
  return bits == 32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

} // namespace

RegionInterpreter::RegionInterpreter(Region &region, const ParamValues &params) : params_(params) {
  for (BlockArgument argument : region.getArguments())
    slots_[argument] = static_cast<unsigned>(slots_.size());
  for (Operation &op : region.front().without_terminator())
    slots_[op.getResult(0)] = static_cast<unsigned>(slots_.size());
  values_.resize(slots_.size());
  for (Operation &op : region.front().without_terminator())
    steps_.push_back(compile(op));
  for (Value value : region.front().getTerminator()->getOperands())
    yieldedSlots_.push_back(slot(value));
  yielded_.resize(yieldedSlots_.size());
}

const std::vector<Scalar> &RegionInterpreter::run(llvm::ArrayRef<Scalar> arguments) {
  std::copy(arguments.begin(), arguments.end(), values_.begin());
  for (const Step &step : steps_)
    step(values_);
  for (size_t i = 0; i < yielded_.size(); ++i)
    yielded_[i] = values_[yieldedSlots_[i]];
  return yielded_;
}

RegionInterpreter::Step RegionInterpreter::compile(Operation &op) {
  unsigned out = slot(op.getResult(0));
  unsigned a = op.getNumOperands() > 0 ? slot(op.getOperand(0)) : 0;
  unsigned b = op.getNumOperands() > 1 ? slot(op.getOperand(1)) : 0;
  unsigned c = op.getNumOperands() > 2 ? slot(op.getOperand(2)) : 0;
  unsigned bits = op.getResult(0).getType().getIntOrFloatBitWidth();
  using V = std::vector<Scalar>;
  auto integers = [=](auto f) -> Step {
    return [=](V &v) {
      v[out].integer = truncate(
          static_cast<uint64_t>(f(static_cast<uint64_t>(v[a].integer), static_cast<uint64_t>(v[b].integer))),
          bits);
    };
  };
  auto reals = [=](auto f) -> Step { return [=](V &v) { v[out].real = f(v[a].real, v[b].real); }; };
  auto unary = [=](float (*f)(float)) -> Step { return [=](V &v) { v[out].real = f(v[a].real); }; };
  auto fixed = [=](Scalar value) -> Step { return [=](V &v) { v[out] = value; }; };
#define DEFT_STEP(ID, NUMBER, WORD, NATURAL, MEANING, OP, ...)                                               \
  .Case([&](math::OP) { return unary([](float a) -> float { return MEANING; }); })
  return llvm::TypeSwitch<Operation *, Step>(&op)
      .Case([&](arith::ConstantOp constant) {
        if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
          return fixed({0, real.getValue().convertToFloat()});
        auto integer = cast<IntegerAttr>(constant.getValue());
        return fixed({bits == 1 ? int64_t(integer.getValue().getZExtValue()) : integer.getInt(), 0});
      })
      .Case([&](ParamOp param) { return fixed(params_.at(param.getName().str()).at(0)); })
      .Case([&](ParamElementOp element) -> Step {
        const std::vector<Scalar> &elements = params_.at(element.getName().str());
        return [=, this, &elements](V &v) {
          if (v[a].integer < 0 || v[a].integer >= static_cast<int64_t>(elements.size()))
            undefined_ = "element " + std::to_string(v[a].integer) + " of " + std::to_string(elements.size());
          else
            v[out] = elements[v[a].integer];
        };
      })
      .Case([&](arith::AddIOp) { return integers([](uint64_t x, uint64_t y) { return x + y; }); })
      .Case([&](arith::SubIOp) { return integers([](uint64_t x, uint64_t y) { return x - y; }); })
      .Case([&](arith::MulIOp) { return integers([](uint64_t x, uint64_t y) { return x * y; }); })
      .Case([&](arith::AndIOp) { return integers([](uint64_t x, uint64_t y) { return x & y; }); })
      .Case([&](arith::OrIOp) { return integers([](uint64_t x, uint64_t y) { return x | y; }); })
      .Case([&](arith::XOrIOp) { return integers([](uint64_t x, uint64_t y) { return x ^ y; }); })
      .Case([&](arith::MinSIOp) { return integers([](int64_t x, int64_t y) { return std::min(x, y); }); })
      .Case([&](arith::MaxSIOp) { return integers([](int64_t x, int64_t y) { return std::max(x, y); }); })
      .Case([&](math::AbsIOp) { return integers([](int64_t x, int64_t) { return std::abs(x); }); })
      .Case([&](arith::RemSIOp) -> Step {
        return [=, this](V &v) {
          if (v[b].integer == 0 || v[b].integer == -1)
            undefined_ = "remainder by " + std::to_string(v[b].integer);
          else
            v[out].integer = v[a].integer % v[b].integer;
        };
      })
      .Case([&](arith::FloorDivSIOp) -> Step {
        return [=, this](V &v) {
          const int64_t x = v[a].integer, y = v[b].integer;
          if (y == 0 || y == -1)
            undefined_ = "division by " + std::to_string(y);
          else
            v[out].integer = x / y - (x % y != 0 && (x < 0) != (y < 0));
        };
      })
      .Case<arith::ExtSIOp>([&](auto extend) -> Step {
        bool isBool = extend.getIn().getType().isInteger(1);
        return [=](V &v) { v[out].integer = isBool ? -v[a].integer : v[a].integer; };
      })
      .Case<arith::ExtUIOp, arith::TruncIOp>(
          [&](auto) { return integers([](uint64_t x, uint64_t) { return x; }); })
      .Case([&](arith::CmpIOp op) -> Step {
        auto predicate = op.getPredicate();
        return [=](V &v) { v[out].integer = compare(predicate, v[a].integer, v[b].integer); };
      })
      .Case([&](arith::CmpFOp op) -> Step {
        auto predicate = op.getPredicate();
        return [=](V &v) { v[out].integer = compare(predicate, v[a].real, v[b].real); };
      })
      .Case([&](arith::SelectOp) -> Step { return [=](V &v) { v[out] = v[a].integer ? v[b] : v[c]; }; })
      .Case([&](arith::SIToFPOp cast) -> Step {
        float sign = cast.getIn().getType().isInteger(1) ? -1.f : 1.f;
        return [=](V &v) { v[out].real = sign * static_cast<float>(v[a].integer); };
      })
      .Case([&](arith::UIToFPOp) -> Step {
        return [=](V &v) { v[out].real = static_cast<float>(v[a].integer); };
      })
      .Case([&](arith::FPToSIOp) -> Step {
        return [=, this](V &v) {
          if (!(v[a].real >= -2147483648.f && v[a].real < 2147483648.f))
            undefined_ = "the integer of " + std::to_string(v[a].real);
          else
            v[out].integer = static_cast<int64_t>(v[a].real);
        };
      })
      .Case([&](arith::AddFOp) { return reals([](float x, float y) { return x + y; }); })
      .Case([&](arith::SubFOp) { return reals([](float x, float y) { return x - y; }); })
      .Case([&](arith::MulFOp) { return reals([](float x, float y) { return x * y; }); })
      .Case([&](arith::DivFOp) { return reals([](float x, float y) { return x / y; }); })
      .Case([&](arith::MinNumFOp) { return reals([](float x, float y) { return std::fmin(x, y); }); })
      .Case([&](arith::MaxNumFOp) { return reals([](float x, float y) { return std::fmax(x, y); }); })
      .Case([&](arith::NegFOp) { return reals([](float x, float) { return -x; }); })
      .Case([&](math::AbsFOp) { return unary([](float x) { return std::fabs(x); }); })
          DEFT_MATH_FUNCTIONS(DEFT_STEP)
      .Default([](Operation *other) -> Step {
        llvm::report_fatal_error(llvm::Twine("no meaning of ") + other->getName().getStringRef());
      });
#undef DEFT_STEP
}

} // namespace deft::test
