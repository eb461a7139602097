#include "tests/support/FakeKernels.h"

#include <atomic>
#include <cstring>

/// Both ends of an exchange by messages (templates/deft/merge_slices.cuh).
namespace deft::fake_cuda {

namespace {

/// Where the parts of a message of so many rows lie.
struct Message {
  char *outs;
  float *lses;
  unsigned long long *run;

  Message(void *memory, long long rows, long long rowBytes)
      : outs(static_cast<char *>(memory)), lses(reinterpret_cast<float *>(outs + rows * rowBytes)),
        run(reinterpret_cast<unsigned long long *>(lses + (rows + 1) / 2 * 2)) {}
};

long long rowBytesOf(const abi::SlicesArgs &args, exec::StateType type) {
  return static_cast<long long>(args.dim) * exec::bytesOf(type);
}

bool isGivenUp(const abi::SlicesArgs &args, unsigned long long run) {
  return args.state->broken != 0 && args.state->broken < run;
}

} // namespace

void packSlices(const abi::SlicesArgs &args, exec::StateType type) {
  const unsigned long long run = args.state->runs + 1;
  if (isGivenUp(args, run))
    return;
  const long long rowBytes = rowBytesOf(args, type);
  for (int rank = 0; rank < args.count; ++rank) {
    const auto [begin, count] = args.slices[rank];
    const Message message(args.messages[rank], static_cast<long long>(args.queries) * count, rowBytes);
    for (long long query = 0; query < args.queries; ++query) {
      const long long from = query * args.heads + begin, to = query * count;
      std::memcpy(message.outs + to * rowBytes, static_cast<const char *>(args.own) + from * rowBytes,
                  static_cast<std::size_t>(count * rowBytes));
      std::memcpy(message.lses + to, args.ownLse + from, static_cast<std::size_t>(count) * sizeof(float));
    }
    *message.run = run;
  }
  std::atomic_ref(args.watch->begun).store(run);
}

void mergeSlices(const abi::SlicesArgs &args, exec::StateType type) {
  const unsigned long long run = ++args.state->runs;
  if (isGivenUp(args, run)) {
    std::atomic_ref(args.watch->ended).store(run);
    return;
  }
  exec::PartsOfRows parts;
  unsigned long long missing = 0;
  for (int rank = 0; rank < args.count; ++rank) {
    const Message message(args.messages[rank], static_cast<long long>(args.queries) * args.heads,
                          rowBytesOf(args, type));
    if (*message.run != run)
      missing |= 1ULL << rank;
    parts.outs.push_back(message.outs);
    parts.lses.push_back(message.lses);
  }
  if (missing != 0) {
    args.state->broken = run;
    args.watch->missed = run;
    std::atomic_ref(args.watch->missing).store(missing);
  } else {
    parts.queries = args.queries;
    parts.heads = args.heads;
    parts.dim = args.dim;
    parts.headBegin = args.headBegin;
    parts.headCount = args.headCount;
    exec::mergeHeads(parts, type, args.out, args.lse);
  }
  std::atomic_ref(args.watch->ended).store(run);
}

} // namespace deft::fake_cuda
