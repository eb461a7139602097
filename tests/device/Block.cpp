#include "tests/device/Block.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <ucontext.h>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace deft::test {

namespace {

Block *running = nullptr;
constexpr std::size_t kStackBytes =
    512 * 1024;                              ///< kernels hold hundreds of registers, and sanitizers pad them
constexpr unsigned kGuardBytes = 4096;       ///< behind shared memory: nobody may write there
constexpr auto kUnwritten = std::byte{0xff}; ///< no number in any float

/// Ends a thread whose block has failed.
struct Ended {};

/// Memory of fibers that are done, for the next block's. With memory of the system's for each, SelectTest
/// takes a fifth longer under the address sanitizer.
std::vector<std::unique_ptr<char[]>> stacks;

std::unique_ptr<char[]> takeStack() {
  if (stacks.empty())
    return std::unique_ptr<char[]>(new char[kStackBytes]); // pages that are not touched cost nothing
  std::unique_ptr<char[]> stack = std::move(stacks.back());
  stacks.pop_back();
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack.get(), kStackBytes);
#endif
  return stack;
}

} // namespace

struct Block::Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  bool isDone = false;
  const unsigned *counter = nullptr; ///< null: can go on
  unsigned seen = 0;
  std::string waitsFor;
#if defined(__SANITIZE_ADDRESS__)
  void *fakeStack = nullptr;
  const void *bottom = nullptr;
  std::size_t bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void *tsan = nullptr;
#endif

  bool canRun() const { return !isDone && (!counter || *counter != seen); }
};

Block &Block::now() { return *running; }

Block::Block(const BlockShape &shape, unsigned rank, Cluster &cluster, const std::function<void()> &thread)
    : shape_(shape), rank_(rank), cluster_(cluster), thread_(thread), random_(shape.seed),
      warps_((shape.threads + kLanes - 1) / kLanes),
      groups_(shape.threads, std::deque<std::vector<Copy>>(1)) {
  // Room for the largest alignment that is asked for; addresses begin at a multiple of all of them.
  constexpr unsigned kAlignment = 1024;
  std::size_t bytes = kAlignment + shape.sharedBytes + kGuardBytes + kAlignment;
  memory_ = std::make_unique<std::byte[]>(bytes);
  std::fill_n(memory_.get(), bytes, kUnwritten);
  void *base = memory_.get();
  sharedBase_ = static_cast<std::byte *>(std::align(kAlignment, 1, base, bytes));
}

Block::~Block() {
  for (auto &fiber : fibers_)
    stacks.push_back(std::move(fiber->stack));
#if defined(__SANITIZE_THREAD__)
  for (auto &fiber : fibers_)
    __tsan_destroy_fiber(fiber->tsan);
#endif
}

std::string runBlock(const BlockShape &shape, const std::function<void()> &thread) {
  return runCluster(shape, 1, thread);
}

std::string runCluster(const BlockShape &shape, unsigned blocks, const std::function<void()> &thread) {
  Block::Cluster cluster;
  for (unsigned rank = 0; rank < blocks; ++rank) {
    BlockShape own = shape;
    own.block += rank;
    own.seed += shape.seed != 0 ? 2 * rank : 0;
    cluster.blocks.emplace_back(new Block(own, rank, cluster, thread));
  }
  const auto forEach = [&](auto &&f) {
    for (const auto &block : cluster.blocks)
      f(*(running = block.get()));
    running = nullptr;
  };
  std::string failure;
  forEach([](Block &block) { block.begin(); });
  for (bool isAnybodyLeft = true; isAnybodyLeft && failure.empty();) {
    isAnybodyLeft = false;
    bool hasAdvanced = false;
    forEach([&](Block &block) {
      if (block.isDone() || !failure.empty())
        return;
      isAnybodyLeft = true;
      hasAdvanced |= block.advance();
      failure = block.failure_;
    });
    if (isAnybodyLeft && !hasAdvanced && failure.empty())
      forEach([&](Block &block) { failure += "nobody can go on: " + block.whoWaits(); });
  }
  forEach([&](Block &block) {
    block.failure_ = failure;
    const std::string own = block.end();
    if (failure.empty())
      failure = own;
  });
  return failure;
}

// --- fibers ------------------------------------------------------------------------------------------

void Block::enter() {
  Block &block = now();
  Fiber &self = *block.fibers_[place.thread.x];
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_->bottom, &block.scheduler_->bytes);
#endif
  try {
    if (!block.failure_.empty())
      throw Ended{};
    block.thread_();
    for (std::vector<Copy> &group : block.groups_[place.thread.x])
      block.land(group);
    self.isDone = true;
  } catch (const Ended &) { // what the thread held is gone by now
    self.isDone = true;
  }
  block.switchTo(self, *block.scheduler_);
}

void Block::switchTo(Fiber &from, Fiber &to) {
#if defined(__SANITIZE_ADDRESS__)
  const bool leavesForGood = from.isDone;
  __sanitizer_start_switch_fiber(leavesForGood ? nullptr : &from.fakeStack, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(from.fakeStack, &bottom, &bytes);
#endif
}

void Block::resume(unsigned thread) {
  Fiber &fiber = *fibers_[thread];
  fiber.counter = nullptr;
  place = {{thread}, {shape_.block}, {shape_.blocks}};
  switchTo(*scheduler_, fiber);
}

bool Block::runRound() {
  std::vector<unsigned> order(shape_.threads);
  std::iota(order.begin(), order.end(), 0u);
  if (shape_.seed != 0)
    std::shuffle(order.begin(), order.end(), random_);
  chooseLateWarp();
  bool hasRun = false;
  for (const bool isLateOneHeld : {true, false}) {
    for (unsigned thread : order) {
      if (!fibers_[thread]->canRun() || (isLateOneHeld && static_cast<int>(thread / kLanes) == lateWarp_))
        continue;
      resume(thread);
      hasRun = true;
      if (!failure_.empty())
        return true;
    }
    if (hasRun)
      break;
  }
  return hasRun;
}

/// Where each thread has its turn in each round, warps stay so close to each other that a barrier which is
/// missing between them is not missed.
void Block::chooseLateWarp() {
  constexpr unsigned kMostRounds = 400; // several tiles
  if (shape_.seed % 4 < 2 || roundsOfLateWarp_-- > 0)
    return;
  lateWarp_ = static_cast<int>(random_() % warps_.size());
  roundsOfLateWarp_ = 1 + random_() % kMostRounds;
}

void Block::begin() {
  scheduler_ = std::make_unique<Fiber>();
#if defined(__SANITIZE_THREAD__)
  scheduler_->tsan = __tsan_get_current_fiber();
#endif
  for (unsigned thread = 0; thread < shape_.threads; ++thread) {
    Fiber &fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
    fiber.stack = takeStack();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber.context, &Block::enter, 0);
#if defined(__SANITIZE_ADDRESS__)
    fiber.bottom = fiber.stack.get();
    fiber.bytes = kStackBytes;
#endif
#if defined(__SANITIZE_THREAD__)
    fiber.tsan = __tsan_create_fiber(0);
#endif
  }
}

bool Block::isDone() const {
  return std::all_of(fibers_.begin(), fibers_.end(), [](const auto &fiber) { return fiber->isDone; });
}

bool Block::advance() {
  const bool hasRun = runRound();
  if (inFlight_.empty() || (hasRun && (shape_.seed % 2 == 0 || random_() % 4 != 0)))
    return hasRun;
  landOne();
  return true;
}

std::string Block::end() {
  for (unsigned thread = 0; thread < shape_.threads && !failure_.empty(); ++thread)
    if (!fibers_[thread]->isDone)
      resume(thread); // to its end
  while (failure_.empty() && !inFlight_.empty())
    landOne();
  if (!failure_.empty())
    return failure_;
  for (const NamedBarrier &barrier : named_)
    if (barrier.arrived != 0)
      return "threads have arrived at a barrier that nobody completes";
  const std::byte *guard = sharedBase_ + sharedBegin_ + shape_.sharedBytes;
  if (!std::all_of(guard, guard + kGuardBytes, [](std::byte b) { return b == kUnwritten; }))
    return "something was written behind the block's shared memory";
  return "";
}

std::string Block::whoWaits() const {
  std::map<std::string, std::vector<unsigned>> threads;
  for (unsigned thread = 0; thread < shape_.threads; ++thread)
    if (!fibers_[thread]->isDone)
      threads[fibers_[thread]->waitsFor].push_back(thread);
  std::ostringstream text;
  for (const auto &[what, waiting] : threads)
    text << (text.str().empty() ? "" : "; ") << waiting.size() << " threads, thread " << waiting.front()
         << " first, wait for " << what;
  return text.str();
}

void Block::fail(const std::string &what) {
  if (isLanding_)
    throw std::runtime_error("a copy lands: " + what); // no thread is running
  failure_ = "thread " + std::to_string(place.thread.x) + ": " + what;
  throw Ended{};
}

void Block::giveWay() {
  const Place mine = place;
  Fiber &self = *fibers_[mine.thread.x];
  self.counter = nullptr;
  switchTo(self, *scheduler_);
  place = mine;
  if (!failure_.empty())
    throw Ended{};
}

void Block::dealRegisters(int registers) {
  meet("setmaxnreg");
  warps_[place.thread.x / kLanes].registers = registers;
  int dealt = 0;
  for (const Warp &warp : warps_) {
    if (warp.registers == 0)
      return;
    dealt += warp.registers;
  }
  // Kernels of 256 threads and fewer leave room for a second block; the registers come in eights.
  constexpr int kOfMultiprocessor = 1 << 16, kTwoBlocks = 256, kEight = 8;
  const int each = shape_.threads <= kTwoBlocks
                       ? kOfMultiprocessor / 2 / kTwoBlocks
                       : kOfMultiprocessor / static_cast<int>(shape_.threads) / kEight * kEight;
  if (dealt > each * static_cast<int>(warps_.size()))
    fail("setmaxnreg deals " + std::to_string(dealt) +
         " registers to a thread of each warp, the launch has " +
         std::to_string(each * static_cast<int>(warps_.size())) + ": some warps wait forever");
}

void Block::waitWhile(const unsigned &counter, unsigned seen, const std::string &what) {
  const Place mine = place;
  Fiber &self = *fibers_[mine.thread.x];
  while (counter == seen) {
    self.counter = &counter;
    self.seen = seen;
    self.waitsFor = what;
    switchTo(self, *scheduler_);
    place = mine;
    if (!failure_.empty())
      throw Ended{};
  }
}

} // namespace deft::test
