#include "runtime/plan/HeldSlots.h"

#include <cassert>
#include <cstddef>

namespace deft::plan {

namespace {

constexpr int kBits = 32;

/// Makes the words of one request.
class SlotsOf {
public:
  SlotsOf(const tree::DraftedRequest &request, const DraftRoom &room) : own_(request), room_(room) {}

  HeldSlots::OfRequest make(std::vector<unsigned> &words) const {
    const bool isPacked = room_.ranks->layout() == tree::RankLayout::Interleaved;
    HeldSlots::OfRequest made;
    made.spread = !isPacked ? abi::kInPlace : room_.mayJoin ? abi::kJoined : abi::kPacked;
    made.location = isPacked ? room_.ranks->heldBefore(own_.location) : own_.location;
    made.begin = static_cast<int>(words.size());
    made.mostGain = mostGain();
    made.mostGainRuns = 0;
    made.areAny = false;
    const int slots = made.mostGain + own_.count;
    words.resize(words.size() + static_cast<std::size_t>((slots + kBits - 1) / kBits));
    int held = 0; // before the slot
    for (int slot = 0; slot < slots; ++slot) {
      if (holderOf(slot) != room_.ranks->rank())
        continue;
      words[static_cast<std::size_t>(made.begin + slot / kBits)] |= 1u << slot % kBits;
      const int location = made.location + (isPacked ? held : slot);
      if (!made.areAny)
        made.first = location;
      if (slot < made.mostGain && (slot == 0 || holderOf(slot - 1) != room_.ranks->rank()))
        ++made.mostGainRuns;
      if (slot < own_.count)
        made.end = location + 1;
      made.areAny = true;
      ++held;
    }
    if (made.spread == abi::kJoined && made.mostGainRuns > 1)
      made.mostGainRuns = 1;
    return made;
  }

private:
  int holderOf(int slot) const { return room_.ranks->holderOf(/*node=*/-1, own_.location + slot); }
  int mostGain() const {
    for (int slot = own_.count; slot < own_.count + room_.mostGain; ++slot)
      if (holderOf(slot) == tree::Ranks::kNobody)
        return slot - own_.count;
    return room_.mostGain;
  }

  const tree::DraftedRequest &own_;
  const DraftRoom &room_;
};

} // namespace

HeldSlots HeldSlots::of(std::span<const tree::DraftedRequest> requests, const DraftRoom &room) {
  assert(!room.ranks || room.ranks->layout() != tree::RankLayout::ByNode);
  HeldSlots slots;
  for (const tree::DraftedRequest &own : requests) {
    if (!room.ranks) {
      slots.requests.push_back({.location = own.location,
                                .mostGain = room.mostGain,
                                .first = own.location,
                                .end = own.location + own.count});
      continue;
    }
    slots.requests.push_back(SlotsOf(own, room).make(slots.words));
    slots.standIns.resize(static_cast<std::size_t>(own.firstQuery + own.count),
                          slots.requests.back().areAny ? 1 : 0);
  }
  return slots;
}

} // namespace deft::plan
