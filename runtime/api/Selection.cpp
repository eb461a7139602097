#include "runtime/api/SelectionImpl.h"

#include "runtime/api/AttentionImpl.h"
#include "runtime/api/Convert.h"

#include <algorithm>

namespace deft {

using api::usage;

Selection::Selection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Selection::Selection(Selection &&) noexcept = default;
Selection &Selection::operator=(Selection &&) noexcept = default;
Selection::~Selection() = default;

Result<void> api::checkBudget(const spec::Variant &variant, int budget) {
  if (!variant.select)
    return usage("`" + variant.name + "` selects nothing", "write `select { budget = 4096; }` in the spec");
  const std::vector<int> &known = variant.select->budget.values;
  if (std::find(known.begin(), known.end(), budget) != known.end())
    return {};
  std::string list;
  for (const int one : known)
    list += (list.empty() ? "" : ", ") + std::to_string(one);
  return usage("a budget of " + std::to_string(budget) + " is none of `" + variant.name + "`'s: " + list);
}

Result<Selection> Selection::make(const Attention &attention, std::optional<int> budget) {
  return api::guarded([&]() -> Result<Selection> {
    const spec::Variant &variant = attention.impl().variant();
    const int chosen = budget.value_or(variant.select ? variant.select->defaultBudget() : 0);
    if (auto checked = api::checkBudget(variant, chosen); !checked)
      return checked.error();
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
