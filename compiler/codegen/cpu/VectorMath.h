#pragma once

#include "compiler/codegen/cpu/Emitter.h"

/// Elementary functions (spec::DEFT_MATH_FUNCTIONS) as straight-line arithmetic on f32 scalars or vectors: no
/// libm, and the same bits at every vector width. Errors are stated in units in the last place (ulp) of the
/// result; a test checks them. NaN gives NaN, since by rule E9 a later `min` or `max` may turn it into a
/// number; emitExpWeight is the exception.
namespace deft::codegen::cpu {

/// e^x, 2 ulp. 0 at -inf and below -103.98, with subnormal results; +inf from 88.73.
mlir::Value emitExp(Emitter &e, mlir::Value x);
/// 2^x, 2 ulp; otherwise as emitExp.
mlir::Value emitExp2(Emitter &e, mlir::Value x);
/// e^x for x <= 0, for the weights of a softmax: 2 ulp down to x = -87.3, 0 below that, at -inf and for
/// NaN.
mlir::Value emitExpWeight(Emitter &e, mlir::Value x);
/// ln x, 3 ulp. -inf at 0 and -0, +inf at +inf, NaN below 0.
mlir::Value emitLog(Emitter &e, mlir::Value x);
mlir::Value emitLog2(Emitter &e, mlir::Value x);
/// 1 over the square root; both operations are rounded.
mlir::Value emitRsqrt(Emitter &e, mlir::Value x);
/// tanh x, 4 ulp, odd, +-1 at the ends.
mlir::Value emitTanh(Emitter &e, mlir::Value x);
/// sin x and cos x, 1 ulp or 2^-40 up to |x| = 2^31, from -1 to 1 beyond; NaN at both infinities.
mlir::Value emitSin(Emitter &e, mlir::Value x);
mlir::Value emitCos(Emitter &e, mlir::Value x);

} // namespace deft::codegen::cpu
