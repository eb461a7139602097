#include "runtime/api/SequenceTreeImpl.h"

#include "runtime/api/Convert.h"

namespace deft {

namespace {

/// A change of the sequences, and of the stamp by which plans see it.
template <typename Change> auto change(SequenceTree::Impl &impl, Change &&make) {
  auto result = api::guarded([&] { return api::toPublic(make(impl.sequences)); });
  impl.view.mutableImpl().noteChange();
  return result;
}

Result<std::vector<TokenCopy>> toPublic(const Result<std::vector<tree::TokenCopy>> &copies) {
  if (!copies)
    return copies.error();
  std::vector<TokenCopy> result;
  for (const tree::TokenCopy &copy : *copies)
    result.push_back({copy.from, copy.to, copy.tokens});
  return result;
}

std::vector<tree::NodeTokens> ofTree(std::span<const NodeTokens> tokens) {
  std::vector<tree::NodeTokens> own;
  for (const NodeTokens &some : tokens)
    own.push_back({some.node, some.first, some.tokens});
  return own;
}

} // namespace

SequenceTree::SequenceTree(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SequenceTree::SequenceTree(SequenceTree &&) noexcept = default;
SequenceTree &SequenceTree::operator=(SequenceTree &&) noexcept = default;
SequenceTree::~SequenceTree() = default;

Result<SequenceTree> SequenceTree::make(const PoolOptions &options) {
  return api::guarded([&]() -> Result<SequenceTree> {
    auto sequences = tree::SequenceTree::make({options.pageSize, options.pages});
    if (!sequences)
      return api::toPublic(sequences.error());
    return SequenceTree(std::make_unique<Impl>(std::move(*sequences)));
  });
}

const Tree &SequenceTree::tree() const { return impl_->view; }
std::span<const int> SequenceTree::pageTable() const { return impl_->sequences.pool().pageTable(); }
std::int64_t SequenceTree::freePages() const { return impl_->sequences.pool().freePages(); }

std::int64_t SequenceTree::slot(int node, int index) const {
  const tree::KvTree &tree = impl_->sequences.tree();
  if (!tree.isAlive(node))
    return -1;
  const tree::Node &own = tree.nodes()[static_cast<std::size_t>(node)];
  return index < 0 || index >= own.tokens ? -1 : impl_->sequences.pool().slotOf(own.location + index);
}

Result<int> SequenceTree::addRoot(int tokens) {
  return change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.addNode(-1, tokens); });
}

Result<int> SequenceTree::addChild(int parent, int tokens) {
  if (parent < 0)
    return api::usage("node " + std::to_string(parent) + " cannot be a parent", "addRoot adds a root");
  return change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.addNode(parent, tokens); });
}

Result<std::vector<int>> SequenceTree::addTokenTree(int sequence, std::span<const int> parents) {
  return change(*impl_,
                [&](tree::SequenceTree &sequences) { return sequences.addTokenTree(sequence, parents); });
}

Result<std::vector<TokenCopy>> SequenceTree::append(int leaf, int tokens) {
  return toPublic(
      change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.append(leaf, tokens); }));
}

Result<int> SequenceTree::fork(int node, std::optional<int> position) {
  return change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.fork(node, position); });
}

Result<void> SequenceTree::prune(int node) {
  return change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.prune(node); });
}

Result<std::vector<TokenCopy>> SequenceTree::accept(int sequence, int last) {
  return toPublic(
      change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.accept(sequence, last); }));
}

// What is polluted changes no plan, so these leave the stamp alone.
Result<void> SequenceTree::pollute(std::span<const NodeTokens> tokens) {
  return api::guarded([&] { return api::toPublic(impl_->sequences.pollute(ofTree(tokens))); });
}

std::vector<NodeTokens> SequenceTree::polluted() const {
  std::vector<NodeTokens> found;
  for (const tree::NodeTokens &some : impl_->sequences.polluted())
    found.push_back({some.node, some.first, some.tokens});
  return found;
}

Result<void> SequenceTree::correct(std::span<const NodeTokens> tokens) {
  return api::guarded([&] { return api::toPublic(impl_->sequences.correct(ofTree(tokens))); });
}

Result<int> SequenceTree::addQuery(int node, std::optional<int> position) {
  if (position == Query::kWhole)
    position.reset();
  return change(*impl_, [&](tree::SequenceTree &sequences) { return sequences.addQuery(node, position); });
}

Result<void> SequenceTree::setQueries(std::span<const Query> queries) {
  return change(*impl_, [&](tree::SequenceTree &sequences) {
    const std::vector<tree::Query> own = toInternal(queries);
    return sequences.setQueries(own);
  });
}

void SequenceTree::clearQueries() {
  impl_->sequences.clearQueries();
  impl_->view.mutableImpl().noteChange();
}

} // namespace deft
