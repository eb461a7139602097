#include "compiler/codegen/cpu/KernelEmitter.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;

Fetches::Fetches(const KernelContext &context, const Pass &pass, Value there)
    : context_(context), fetch_(pass.fetch), there_(there) {
  const auto pointer = [&](std::size_t offset) {
    return context.e.field(context.e.pointerType(), pass.call, offset);
  };
  const spec::TensorType &k = context.tensors.k, &v = context.tensors.v;
  keys_ = {pointer(offsetof(abi::CpuAttendCall, nextK)),
           pointer(offsetof(abi::CpuAttendCall, nextKeyOffsets)), k.rowBytes(), k.elementBytes()};
  values_ = {pointer(offsetof(abi::CpuAttendCall, nextV)),
             pointer(offsetof(abi::CpuAttendCall, nextValueOffsets)), v.rowBytes(), v.elementBytes()};
}

/// `count` lines of a token, from `element` on; none of a token that is not below `limit`, whose offset is
/// not there to be read either.
void Fetches::addLines(const Cache &cache, Value token, Value element, int count, Value limit) {
  Emitter &e = context_.e;
  Value last = e.max(e.sub(limit, e.i64(1)), e.i64(0));
  Value offset = e.loadAt(e.i64Type(), cache.offsets, e.min(token, last));
  const mlir::Type bits = e.builder().getIntegerType(8 * static_cast<unsigned>(cache.elementBytes));
  Value address = e.at(cache.base, bits, element ? e.add(offset, element) : offset);
  Value first = e.select(e.compare(CmpIPredicate::slt, token, limit), address, there_);
  for (int line = 0; line < count; ++line)
    lines_.push_back(e.at(first, bits, e.i64(line * cache.elementsPerLine())));
}

void Fetches::add(const Cache &cache, Value token, int tokens, Value limit) {
  for (int t = 0; t < tokens; ++t)
    addLines(cache, context_.e.add(token, context_.e.i64(t)), {}, cache.linesPerToken(), limit);
}

void Fetches::addShare(const Cache &cache, Value token, int tokens, Value step, int steps) {
  Emitter &e = context_.e;
  const int lines = cache.linesPerToken(), all = tokens * lines, each = (all + steps - 1) / steps;
  const int parts = std::max(lines / each, 1); // steps that share a token
  if (all == each * steps && each % lines == 0) {
    add(cache, e.add(token, e.mul(step, e.i64(each / lines))), each / lines, fetch_);
    return;
  }
  if (all == each * steps && parts * each == lines && std::has_single_bit(static_cast<unsigned>(parts))) {
    Value nth = e.shr(step, std::countr_zero(static_cast<unsigned>(parts)));
    Value part = e.bitAnd(step, e.i64(parts - 1));
    addLines(cache, e.add(token, nth), e.mul(part, e.i64(each * cache.elementsPerLine())), each, fetch_);
    return;
  }
  for (int i = 0; i < each; ++i) {
    Value line = e.min(e.add(e.mul(step, e.i64(each)), e.i64(i)), e.i64(all - 1));
    // line / lines, exact for numbers this small
    Value nth = e.shr(e.mul(line, e.i64((1 << 16) / lines + 1)), 16);
    Value element = e.mul(e.sub(line, e.mul(nth, e.i64(lines))), e.i64(cache.elementsPerLine()));
    addLines(cache, e.add(token, nth), element, 1, fetch_);
  }
}

void Fetches::ask(int part, int parts) const {
  const int count = static_cast<int>(lines_.size());
  for (int line = part * count / parts; line < (part + 1) * count / parts; ++line)
    context_.e.prefetch(lines_[static_cast<std::size_t>(line)]);
}

} // namespace deft::codegen::cpu
