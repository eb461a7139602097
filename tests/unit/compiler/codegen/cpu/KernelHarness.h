#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/spec/Variant.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Runs one table of an emitted kernel on rows and tokens made from a seed, beside the same attention in
/// float64.
namespace deft::test {

using Kernel = std::shared_ptr<const abi::CpuKernel>;

/// A variant without mask and score, ratio 2.
spec::Variant plainVariant(int dim, spec::DType dtype = spec::DType::BF16);

/// Appends expressions to a variant, which Sema would do from text.
class Exprs {
public:
  explicit Exprs(spec::Variant &variant) : variant_(variant) {}
  spec::ExprId constant(double value, spec::ScalarType type = spec::ScalarType::F32);
  spec::ExprId builtin(spec::Builtin builtin);
  spec::ExprId param(int index);
  spec::ExprId element(int index);
  spec::ExprId op(spec::ExprOp op, spec::ScalarType type, std::initializer_list<spec::ExprId> operands);
  spec::ExprId f32(spec::ExprOp op, std::initializer_list<spec::ExprId> operands) {
    return this->op(op, spec::ScalarType::F32, operands);
  }

  /// `sum` and so many times a name, i32 or f32.
  spec::ExprId addWeighed(spec::ExprId sum, spec::Builtin name, double factor);

private:
  spec::Variant &variant_;
};

float valueOf(spec::DType dtype, std::uint16_t bits);
std::uint16_t bitsOf(spec::DType dtype, float value);

/// The attention op of a variant, with the context that it lives in.
class Imported {
public:
  explicit Imported(const spec::Variant &variant);
  ~Imported();
  dialect::AttentionOp op();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// By the JIT for this machine; a failure is a test failure and gives null.
Kernel jitKernel(const spec::Variant &variant);
/// By an object made for `target` and loaded here.
Kernel objectKernel(const spec::Variant &variant, const codegen::cpu::CpuTarget &target);

struct Case {
  int rows = 4;
  int tokens = 100; ///< split into blocks as an executor would
  int kvPos = 0;
  int depth = 3;
  int kvHead = 0;
  bool masked = true;
  float range = 1.0f; ///< of q
  unsigned seed = 1;
  std::vector<abi::ParamSlot> params = {};
  /// Rows that see token t (counted from 0); null: all.
  std::function<std::pair<int, int>(int t)> interval = nullptr;

  /// Of row r, and token at kvPos.
  static int qPos(int row) { return 90 + 3 * row; }
  static int query(int row) { return 7 - row / 2; }
  static int head(int row) { return row % 2; }
};

/// Whether a row sees a token, and the final score; natural numbers of float64.
struct Formula {
  std::function<bool(int row, int kvPos)> mask;
  std::function<double(int row, int kvPos, double s)> score;
};

struct Answer {
  std::vector<double> out; ///< [rows][dim of v]
  std::vector<double> lse; ///< [rows]; empty for sigmoid
};

/// The attention of a case by the emitted kernel, as partials (f32) and as output values.
struct Results {
  Answer partial;
  Answer output;
};
Results runKernel(const abi::CpuKernel &kernel, const spec::Variant &variant, const Case &c);
Answer inDoubles(const spec::Variant &variant, const Case &c, const Formula &formula);

/// sqrt(sum (a - b)^2 / sum b^2), 0 when both are 0.
double relativeError(const std::vector<double> &a, const std::vector<double> &b);

/// Fails where the kernel is not the formula to f32 accuracy, and its output not that rounded once.
void expectMatches(const abi::CpuKernel &kernel, const spec::Variant &variant, const Case &c,
                   const Formula &formula);

} // namespace deft::test
