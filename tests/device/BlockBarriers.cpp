#include "tests/device/Block.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

/// Where threads wait for each other, and for copies.
namespace deft::test {

std::byte *Block::slotsOfMeeting() {
  Warp &warp = warps_[place.thread.x / kLanes];
  return warp.slots[warp.meetings % 2];
}

void Block::join(const char *word) {
  Warp &warp = warps_[place.thread.x / kLanes];
  if (warp.waiting > 0 && std::strcmp(warp.word, word) != 0)
    fail(std::string("is at ") + word + " while other lanes of its warp are at " + warp.word);
  warp.word = word;
  if (++warp.waiting == static_cast<int>(kLanes)) {
    warp.waiting = 0;
    ++warp.meetings;
  } else {
    waitWhile(warp.meetings, warp.meetings, word);
  }
}

void Block::arriveAtBarrier(int number, int threads, bool waits) {
  NamedBarrier &barrier = named_.at(static_cast<std::size_t>(number));
  const std::string name = "barrier " + std::to_string(number);
  if (barrier.arrived > 0 && barrier.threads != threads)
    fail(name + " is for " + std::to_string(barrier.threads) + " threads here, for " +
         std::to_string(threads) + " there");
  barrier.threads = threads;
  const unsigned phase = barrier.phase;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.phase;
  } else if (waits) {
    waitWhile(barrier.phase, phase, name);
  }
}

void Block::syncThreads() { arriveAtBarrier(0, static_cast<int>(shape_.threads), true); }

void Block::syncCluster() {
  const unsigned phase = cluster_.phase;
  if (++cluster_.arrived == cluster_.blocks.size() * shape_.threads) {
    cluster_.arrived = 0;
    ++cluster_.phase;
  } else {
    waitWhile(cluster_.phase, phase, "the cluster's barrier");
  }
}

Block &Block::ofCluster(unsigned rank) const {
  if (rank >= cluster_.blocks.size())
    now().fail("a cluster of " + std::to_string(cluster_.blocks.size()) + " has no block " +
               std::to_string(rank));
  return *cluster_.blocks[rank];
}

Block::Mbarrier &Block::barrierAt(unsigned address) {
  const auto found = mbarriers_.find(address);
  if (found == mbarriers_.end())
    fail("no mbarrier was set up at address " + std::to_string(address));
  return found->second;
}

void Block::initBarrier(unsigned address, int arrivals) {
  shared(address, 8);
  mbarriers_[address] = {arrivals, arrivals, 0, 0};
}

void Block::endPhaseIfDone(Mbarrier &barrier) {
  if (barrier.missing == 0 && barrier.bytes == 0) {
    barrier.missing = barrier.arrivals;
    ++barrier.phase;
  }
}

void Block::arrive(unsigned address, int arrivals) {
  Mbarrier &barrier = barrierAt(address);
  barrier.missing -= arrivals;
  if (barrier.missing < 0)
    fail("the mbarrier at address " + std::to_string(address) + " expects fewer arrivals");
  endPhaseIfDone(barrier);
}

void Block::expectBytes(unsigned address, int bytes) { barrierAt(address).bytes += bytes; }

bool Block::isComplete(unsigned address, unsigned parity) { return (barrierAt(address).phase & 1) != parity; }

void Block::wait(unsigned address, unsigned parity) {
  const Mbarrier &barrier = barrierAt(address);
  if ((barrier.phase & 1) == parity)
    waitWhile(barrier.phase, barrier.phase, "the mbarrier at address " + std::to_string(address));
}

// --- copies ------------------------------------------------------------------------------------------

void Block::land(const std::vector<Copy> &copies) {
  for (const Copy &copy : copies)
    if (!std::exchange(*copy.hasLanded, true))
      std::memcpy(shared(copy.to, copy.bytes), copy.from, copy.bytes);
}

void Block::landOne() {
  const std::size_t which = shape_.seed == 0 ? 0 : random_() % inFlight_.size();
  const std::function<void()> landing = std::move(inFlight_[which]);
  inFlight_.erase(inFlight_.begin() + static_cast<std::ptrdiff_t>(which));
  isLanding_ = true;
  try {
    landing();
  } catch (const std::runtime_error &error) {
    failure_ = error.what();
  }
  isLanding_ = false;
}

void Block::copyLater(unsigned to, const void *from, unsigned bytes) {
  if (to % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    fail("a copy of " + std::to_string(bytes) + " bytes begins inside of " + std::to_string(bytes) +
         " bytes");
  shared(to, bytes);
  groups_[place.thread.x].back().push_back({to, from, bytes, std::make_shared<bool>(false)});
}

void Block::commitCopies() { groups_[place.thread.x].emplace_back(); }

void Block::awaitCopies(std::size_t pending) {
  auto &groups = groups_[place.thread.x];
  for (; groups.size() - 1 > pending; groups.pop_front())
    land(groups.front());
}

void Block::arriveAfterCopies(unsigned address) {
  barrierAt(address);
  auto &groups = groups_[place.thread.x];
  std::vector<Copy> all; // which groups have still to be waited for
  for (std::vector<Copy> &group : groups) {
    std::erase_if(group, [](const Copy &copy) { return *copy.hasLanded; });
    all.insert(all.end(), group.begin(), group.end());
  }
  inFlight_.emplace_back([this, all = std::move(all), address] {
    land(all);
    arrive(address, 1);
  });
}

void Block::copyByEngine(std::function<void()> land, unsigned address, int bytes) {
  inFlight_.emplace_back([this, land = std::move(land), address, bytes] {
    land();
    Mbarrier &barrier = barrierAt(address);
    barrier.bytes -= bytes;
    endPhaseIfDone(barrier);
  });
}

// --- shared memory -----------------------------------------------------------------------------------

std::byte *Block::shared(unsigned address, unsigned bytes) {
  if (address < sharedBegin_ || address + bytes > sharedBegin_ + shape_.sharedBytes)
    fail("shared memory of " + std::to_string(shape_.sharedBytes) + " bytes has no " + std::to_string(bytes) +
         " bytes at its byte " + std::to_string(static_cast<long long>(address) - sharedBegin_));
  return sharedBase_ + address;
}

unsigned Block::addressOf(const void *pointer) {
  return static_cast<unsigned>(static_cast<const std::byte *>(pointer) - sharedBase_);
}

char *Block::dynamicShared(unsigned alignment) {
  sharedBegin_ = alignment;
  return reinterpret_cast<char *>(sharedBase_ + sharedBegin_);
}

} // namespace deft::test
