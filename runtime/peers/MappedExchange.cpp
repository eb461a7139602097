#include "runtime/peers/MappedExchange.h"

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<std::unique_ptr<GpuExchange>> MappedExchange::create(const std::shared_ptr<device::Device> &device,
                                                            const GpuGroup &group,
                                                            std::span<void *const> memories) {
  constexpr double kNanoseconds = 1e9;
  abi::PeersArgs args{};
  for (int rank = 0; rank < group.count; ++rank)
    args.ranks[rank] = static_cast<abi::PeerMemory *>(memories[static_cast<std::size_t>(rank)]);
  args.bufferBytes = exec::PeerMerge::bufferBytes(group.type, group.rows(), group.dim);
  args.count = group.count;
  args.rank = group.rank;
  args.heads = group.heads;
  args.dim = group.dim;
  args.mostNs = static_cast<unsigned long long>(group.timeoutSeconds * kNanoseconds);
  auto merge = exec::PeerMerge::create(device, group.type);
  if (!merge)
    return merge.error();
  return std::unique_ptr<GpuExchange>(new MappedExchange(std::move(*merge), args));
}

Result<std::unique_ptr<GpuExchange>> MappedExchange::create(const std::shared_ptr<device::Device> &device,
                                                            const GpuGroup &group, Memories memories,
                                                            Peers peers) {
  std::vector<void *> addresses;
  for (const auto &memory : memories)
    addresses.push_back(memory->address());
  auto made = create(device, group, addresses);
  if (made) {
    auto &exchange = static_cast<MappedExchange &>(**made);
    exchange.memories_ = std::move(memories);
    exchange.peers_.emplace(std::move(peers));
  }
  return made;
}

Result<void> MappedExchange::agree(const Agreement &own, const std::string &kind,
                                   std::span<const int> holders) {
  if (!peers_)
    return Error{ErrorCode::Usage,
                 "ranks in memory that the program has mapped cannot compare what they have",
                 "let ranks meet by a name or an id, or compare the hashes of an agreement"};
  return peers_->agree(own, kind, holders);
}

Result<void> MappedExchange::merge(const GpuMerge &merge, device::cu::Stream stream) {
  abi::PeersArgs args = args_;
  args.own = merge.own;
  args.ownLse = merge.ownLse;
  args.out = merge.out;
  args.lse = merge.lse;
  args.queries = merge.queries;
  args.headBegin = merge.headBegin;
  args.headCount = merge.headCount;
  return merge_.launch(args, stream);
}

} // namespace deft::peers
