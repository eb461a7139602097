#pragma once

#include <deft/attention.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

/// Which tokens a sparse layer reads, for attentions whose spec says `select`.
namespace deft {

/// For each list of each query, the positions of the tokens that a selecting run chose: room that runs fill
/// again and again, in a shape that does not follow from what is chosen. It serves all layers over the tree
/// as it was then; after any change of the tree another selecting run comes first. For one thread at a time,
/// but many sparse runs may read it at once.
class DEFT_API Selection {
public:
  /// For lists of `budget` tokens at most, which is one of the spec's (Attention::selects); none: the first
  /// of them.
  static Result<Selection> make(const Attention &attention, std::optional<int> budget = {});

  Selection(Selection &&) noexcept;
  Selection &operator=(Selection &&) noexcept;
  ~Selection();

  int budget() const;
  int lists() const;      ///< of a query: one, or one a KV head or query head
  int queryCount() const; ///< of the last selecting run; 0 before the first

  /// Positions on the query's path, counted from 0 at the root, rising: as many as were chosen. None where
  /// there is no such query or list.
  std::span<const std::int32_t> positions(int query, int list) const;
  /// All of them: [query][list][budget], -1 behind the last one of a list.
  std::span<const std::int32_t> allPositions() const;
  /// [query][list]
  std::span<const std::int32_t> counts() const;

  struct Impl;
  Impl &impl() { return *impl_; } ///< for the library itself
  const Impl &impl() const { return *impl_; }

private:
  explicit Selection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
