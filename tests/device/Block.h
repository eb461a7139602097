#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

/// A block of GPU threads on the host, so that tests execute what templates/deft says and compare it with
/// plain loops. Words.h has CUDA's words, ptx/deft/ptx the instructions, and device headers are read as they
/// are:
///
///   #include "tests/device/Words.h"
///   #include "deft/sm90/run_window.cuh"
///   EXPECT_EQ(runBlock({.threads = 32}, [&] { ... }), "");
///
/// Each thread is a fiber of the calling thread, and runs until it has to wait for others. Threads of the
/// operating system behind a barrier would do the same, but the lanes of a warp meet with every shuffle, each
/// time through the system's scheduler, in an order that nobody can repeat, and a lane that never comes would
/// hang the test. Fibers come in an order that a seed gives, and where none can go on, everybody is known who
/// waits, and for what.
///
/// Not told: races that need two lanes in the middle of a step, and what costs time. Products of wgmma are
/// there at once, copies land as late or as early as the seed says.
namespace deft::test {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
/// Of the thread that is running.
struct Place {
  Index thread, block, blocks;
};
inline Place place;

struct BlockShape {
  unsigned threads = 32;
  unsigned block = 0, blocks = 1;
  unsigned sharedBytes = 0; ///< dynamic
  /// 0: threads take turns in their order. Else their order is drawn anew each round; copies land at any time
  /// where it is odd, and when nobody can go on without them where it is even. Of each four seeds the last
  /// two let one warp after the other fall behind, as far as it can.
  unsigned seed = 0;
};

/// What went wrong: lanes that met at different words, a deadlock, memory written beyond the block's. Empty:
/// nothing.
std::string runBlock(const BlockShape &shape, const std::function<void()> &thread);
/// So many blocks, from the shape's on, which are a cluster: in turns, a round of each.
std::string runCluster(const BlockShape &shape, unsigned blocks, const std::function<void()> &thread);

/// What each lane of a warp has brought to a meeting. Good until the lane has been at the next one.
template <class T> class Lanes {
public:
  explicit Lanes(const std::byte *slots, std::size_t slotBytes) : slots_(slots), slotBytes_(slotBytes) {}
  const T &operator[](unsigned lane) const {
    return *reinterpret_cast<const T *>(slots_ + lane % 32 * slotBytes_);
  }

private:
  const std::byte *slots_;
  std::size_t slotBytes_;
};

/// The block that is running, for those who say what words mean.
class Block {
public:
  static constexpr unsigned kLanes = 32;
  static Block &now();
  ~Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  static unsigned lane() { return place.thread.x % kLanes; }

  /// Waits until all lanes of the warp have come, each with a value; `word` is what they all have to be at.
  template <class T> Lanes<T> meet(const char *word, const T &mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kSlotBytes && alignof(T) <= 16);
    std::byte *slots = slotsOfMeeting();
    std::memcpy(slots + lane() * kSlotBytes, &mine, sizeof mine);
    join(word);
    return Lanes<T>(slots, kSlotBytes);
  }
  void meet(const char *word) { meet(word, 0); }

  /// From here on the threads of the warp have so many registers. More in all than a launch has would leave
  /// warps waiting.
  void dealRegisters(int registers);

  /// A named barrier of so many threads.
  void arriveAtBarrier(int barrier, int threads, bool waits);
  void syncThreads();

  /// Until all threads of the cluster's blocks have come.
  void syncCluster();
  unsigned clusterRank() const { return rank_; }
  Block &ofCluster(unsigned rank) const;

  /// Lets everybody else go on for a while: for who looks at memory again and again.
  void giveWay();

  void initBarrier(unsigned address, int arrivals);
  void arrive(unsigned address, int arrivals);
  void expectBytes(unsigned address, int bytes);
  bool isComplete(unsigned address, unsigned parity);
  void wait(unsigned address, unsigned parity);

  /// Bytes, 16 or 4, that the thread copies into shared memory some time; a commit ends a group of them.
  void copyLater(unsigned to, const void *from, unsigned bytes);
  void commitCopies();
  /// Until at most so many groups are on their way.
  void awaitCopies(std::size_t pending);
  /// An arrival when the thread's copies so far have landed.
  void arriveAfterCopies(unsigned address);
  /// `land` some time, and then so many bytes of what the barrier expects.
  void copyByEngine(std::function<void()> land, unsigned address, int bytes);

  /// Shared memory by the address that instructions name.
  std::byte *shared(unsigned address, unsigned bytes);
  unsigned addressOf(const void *pointer);
  /// At a multiple of the alignment and, where it can be, of no larger one.
  char *dynamicShared(unsigned alignment);

  /// Ends the block.
  [[noreturn]] void fail(const std::string &what);

private:
  friend std::string runCluster(const BlockShape &, unsigned, const std::function<void()> &);
  static constexpr std::size_t kSlotBytes = 64;
  struct Fiber;
  struct Cluster {
    std::vector<std::unique_ptr<Block>> blocks;
    unsigned arrived = 0; ///< threads at the barrier of all
    unsigned phase = 0;
  };
  struct Warp {
    unsigned meetings = 0; ///< that are over
    int waiting = 0;
    const char *word = nullptr;
    int registers = 0;                                   ///< dealt to each thread; 0: none yet
    alignas(16) std::byte slots[2][kLanes * kSlotBytes]; ///< a lane is at most a meeting ahead
  };
  struct NamedBarrier {
    int arrived = 0, threads = 0;
    unsigned phase = 0;
  };
  struct Mbarrier {
    int arrivals = 0, missing = 0, bytes = 0;
    unsigned phase = 0;
  };
  struct Copy {
    unsigned to;
    const void *from;
    unsigned bytes;
    std::shared_ptr<bool> hasLanded; ///< a wait for its group or for a barrier, whichever is first
  };

  Block(const BlockShape &shape, unsigned rank, Cluster &cluster, const std::function<void()> &thread);
  void begin();
  /// Each thread that can go on has done so, or a copy has landed; whether anything happened.
  bool advance();
  std::string end();
  bool isDone() const;
  bool runRound();
  void chooseLateWarp();
  void resume(unsigned thread);
  void switchTo(Fiber &from, Fiber &to);
  static void enter();
  std::string whoWaits() const;

  std::byte *slotsOfMeeting();
  void join(const char *word);
  /// Lets others run until the counter is not `seen` any more.
  void waitWhile(const unsigned &counter, unsigned seen, const std::string &what);
  Mbarrier &barrierAt(unsigned address);
  void endPhaseIfDone(Mbarrier &barrier);
  void land(const std::vector<Copy> &copies);
  void landOne();

  const BlockShape shape_;
  const unsigned rank_;
  Cluster &cluster_;
  const std::function<void()> &thread_;
  std::mt19937 random_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte *sharedBase_ = nullptr; ///< address 0
  unsigned sharedBegin_ = 16;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Fiber> scheduler_;
  std::vector<Warp> warps_;
  std::array<NamedBarrier, 16> named_;
  std::map<unsigned, Mbarrier> mbarriers_;
  std::vector<std::deque<std::vector<Copy>>> groups_; ///< of each thread; the last one is not committed
  std::vector<std::function<void()>> inFlight_;
  int lateWarp_ = -1; ///< goes on only where no other one can
  unsigned roundsOfLateWarp_ = 0;
  bool isLanding_ = false;
  std::string failure_;
};

} // namespace deft::test
