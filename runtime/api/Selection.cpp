#include "runtime/api/SelectionImpl.h"

#include "runtime/api/AttentionImpl.h"
#include "runtime/api/Convert.h"

namespace deft {

Selection::Selection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Selection::Selection(Selection &&) noexcept = default;
Selection &Selection::operator=(Selection &&) noexcept = default;
Selection::~Selection() = default;

Result<Selection> Selection::make(const Attention &attention, std::optional<int> budget) {
  return api::guarded([&]() -> Result<Selection> {
    const spec::Variant &variant = attention.impl().variant();
    const int chosen = budget.value_or(variant.select ? variant.select->defaultBudget() : 0);
    if (auto checked = exec::checkBudget(variant, chosen); !checked)
      return api::toPublic(checked.error());
    auto impl = std::make_unique<Impl>();
    impl->budget = chosen;
    impl->lists = variant.lists();
    return Selection(std::move(impl));
  });
}

int Selection::budget() const { return impl_->budget; }
int Selection::lists() const { return impl_->lists; }
int Selection::queryCount() const { return impl_->chosen.queries; }

std::span<const std::int32_t> Selection::positions(int query, int list) const {
  if (query < 0 || query >= queryCount() || list < 0 || list >= lists())
    return {};
  return impl_->chosen.of(query, list);
}
std::span<const std::int32_t> Selection::allPositions() const { return impl_->chosen.positions; }
std::span<const std::int32_t> Selection::counts() const { return impl_->chosen.counts; }

} // namespace deft
