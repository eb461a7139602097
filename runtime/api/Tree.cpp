#include "runtime/api/TreeImpl.h"

#include "runtime/api/Convert.h"
#include "runtime/tree/TreeFile.h"

namespace deft {

namespace {

/// A change of the tree, and of the stamp by which plans see it.
template <typename Change> auto change(Tree::Impl &impl, Change &&make) {
  auto result = api::guarded([&] { return api::toPublic(make(impl.change())); });
  impl.noteChange();
  return result;
}

} // namespace

Tree::Tree() : impl_(std::make_unique<Impl>()) {}
Tree::Tree(const Tree &other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Tree::Tree(Tree &&) noexcept = default;
Tree &Tree::operator=(const Tree &other) { return *this = Tree(other); }
Tree &Tree::operator=(Tree &&) noexcept = default;
Tree::~Tree() = default;

Result<Tree> Tree::parse(std::string_view json) {
  return api::guarded([&]() -> Result<Tree> {
    auto parsed = tree::parseTreeDocument(json);
    if (!parsed)
      return api::toPublic(parsed.error());
    if (!parsed->hasLocations)
      parsed->tree.forgetPlaces();
    Tree result;
    result.impl_ = std::make_unique<Impl>(std::move(parsed->tree));
    return result;
  });
}

std::string Tree::json() const { return tree::formatTree(impl_->tree()); }

Result<int> Tree::addRoot(int tokens, int location) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.addNode(-1, tokens, location); });
}

Result<int> Tree::addChild(int parent, int tokens, int location) {
  if (parent < 0)
    return api::usage("node " + std::to_string(parent) + " cannot be a parent", "addRoot adds a root");
  return change(*impl_, [&](tree::KvTree &tree) { return tree.addNode(parent, tokens, location); });
}

Result<void> Tree::append(int leaf, int tokens) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.append(leaf, tokens); });
}

Result<int> Tree::fork(int node, std::optional<int> position) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.fork(node, position); });
}

Result<void> Tree::prune(int node) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.prune(node); });
}

Result<std::vector<Stretch>> Tree::accept(int sequence, int last) {
  auto accepted = change(*impl_, [&](tree::KvTree &tree) { return tree.accept(sequence, last); });
  if (!accepted)
    return accepted.error();
  std::vector<Stretch> stretches;
  for (const tree::Stretch &stretch : *accepted)
    stretches.push_back({stretch.location, stretch.tokens});
  return stretches;
}

Result<void> Tree::place(int node, int location) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.place(node, location); });
}

Result<int> Tree::addQuery(int node, std::optional<int> position) {
  if (position == Query::kWhole)
    position.reset();
  return change(*impl_, [&](tree::KvTree &tree) { return tree.addQuery(node, position); });
}

Result<void> Tree::removeQuery(int query) {
  return change(*impl_, [&](tree::KvTree &tree) { return tree.removeQuery(query); });
}

Result<void> Tree::setQueries(std::span<const Query> queries) {
  return change(*impl_, [&](tree::KvTree &tree) {
    const std::vector<tree::Query> own = toInternal(queries);
    return tree.setQueries(own);
  });
}

void Tree::clearQueries() {
  impl_->change().clearQueries();
  impl_->noteChange();
}

bool Tree::isAlive(int node) const { return impl_->tree().isAlive(node); }

Node Tree::node(int node) const {
  if (!isAlive(node))
    return {0, 0, 0, 0, 0};
  const tree::Node &own = impl_->tree().nodes()[static_cast<std::size_t>(node)];
  return {own.parent, own.tokens, own.location, own.depth, own.position};
}

std::vector<int> Tree::nodesInPreorder() const {
  std::vector<int> nodes;
  for (int node = impl_->tree().firstRoot(); node >= 0; node = impl_->tree().nextInPreorder(node))
    nodes.push_back(node);
  return nodes;
}

int Tree::queryCount() const { return static_cast<int>(impl_->tree().queries().size()); }

Query Tree::query(int query) const {
  if (query < 0 || query >= queryCount())
    return {-1, 0};
  const tree::Query &own = impl_->tree().queries()[static_cast<std::size_t>(query)];
  return {own.node, own.position};
}

int Tree::pathTokens(int query) const {
  if (query < 0 || query >= queryCount())
    return 0;
  return impl_->tree().pathTokens(impl_->tree().queries()[static_cast<std::size_t>(query)]);
}

std::int64_t Tree::tokens() const { return impl_->tree().tokens(); }

} // namespace deft
