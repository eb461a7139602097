#include "compiler/codegen/cpu/KernelEmitter.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace deft::codegen::cpu {

using mlir::Value;
using mlir::arith::CmpIPredicate;

Fetches::Fetches(const KernelContext &context, const Pass &pass, Value there)
    : context_(context), nextOffsets_(context.e.field(context.e.pointerType(), pass.call,
                                                      offsetof(abi::CpuAttendCall, nextOffsets))),
      fetch_(pass.fetch), there_(there) {}

/// `count` lines of a token, from `element` on.
void Fetches::addLines(Value base, Value token, Value element, int count, Value limit) {
  Emitter &e = context_.e;
  Value offset = e.loadAt(e.i64Type(), nextOffsets_, token);
  Value address = e.at(base, e.i16Type(), element ? e.add(offset, element) : offset);
  Value first = e.select(e.compare(CmpIPredicate::slt, token, limit), address, there_);
  for (int line = 0; line < count; ++line)
    lines_.push_back(e.at(first, e.i16Type(), e.i64(line * kLineElements)));
}

void Fetches::add(Value base, Value token, int tokens, Value limit) {
  for (int t = 0; t < tokens; ++t)
    addLines(base, context_.e.add(token, context_.e.i64(t)), {}, context_.linesPerToken(), limit);
}

void Fetches::addShare(Value base, Value token, int tokens, Value step, int steps) {
  Emitter &e = context_.e;
  const int lines = context_.linesPerToken(), all = tokens * lines, each = (all + steps - 1) / steps;
  const int parts = std::max(lines / each, 1); // steps that share a token
  if (all == each * steps && each % lines == 0) {
    add(base, e.add(token, e.mul(step, e.i64(each / lines))), each / lines, fetch_);
    return;
  }
  if (all == each * steps && parts * each == lines && std::has_single_bit(static_cast<unsigned>(parts))) {
    Value nth = e.shr(step, std::countr_zero(static_cast<unsigned>(parts)));
    Value part = e.bitAnd(step, e.i64(parts - 1));
    addLines(base, e.add(token, nth), e.mul(part, e.i64(each * kLineElements)), each, fetch_);
    return;
  }
  for (int i = 0; i < each; ++i) {
    Value line = e.min(e.add(e.mul(step, e.i64(each)), e.i64(i)), e.i64(all - 1));
    // line / lines, exact for numbers this small
    Value nth = e.shr(e.mul(line, e.i64((1 << 16) / lines + 1)), 16);
    Value element = e.mul(e.sub(line, e.mul(nth, e.i64(lines))), e.i64(kLineElements));
    addLines(base, e.add(token, nth), element, 1, fetch_);
  }
}

void Fetches::ask(int part, int parts) const {
  const int count = static_cast<int>(lines_.size());
  for (int line = part * count / parts; line < (part + 1) * count / parts; ++line)
    context_.e.prefetch(lines_[static_cast<std::size_t>(line)]);
}

} // namespace deft::codegen::cpu
