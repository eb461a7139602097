#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline void cpAsync16(unsigned shared, const void *global) {
  test::Block::now().copyLater(shared, global, 16);
}
inline void cpAsync4(unsigned shared, const void *global) { test::Block::now().copyLater(shared, global, 4); }
inline void cpAsyncCommit() { test::Block::now().commitCopies(); }
template <int kPending> void cpAsyncWait() { test::Block::now().awaitCopies(kPending); }

} // namespace deft::ptx
