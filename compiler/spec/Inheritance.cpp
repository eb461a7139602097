#include "compiler/spec/Inheritance.h"

#include "compiler/spec/Limits.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

namespace deft::spec {
namespace {

bool collectChain(const ParsedFiles &parsed, MergedAttention &merged, Reporter &reporter) {
  const AstAttention *current = merged.attention;
  merged.chain.push_back(current);
  while (current->base) {
    const Ident &base = *current->base;
    auto found = parsed.attentions.find(base.text);
    if (found == parsed.attentions.end()) {
      std::vector<std::string> names;
      for (const auto &[name, attention] : parsed.attentions)
        if (attention != current)
          names.push_back(name);
      reporter.error(base.range, "unknown attention `" + base.text + "`")
          .withHint(support::didYouMean(base.text, names));
      return false;
    }
    current = found->second;
    if (std::find(merged.chain.begin(), merged.chain.end(), current) != merged.chain.end()) {
      reporter.error(base.range, "`" + base.text + "` inherits from itself");
      return false;
    }
    if (static_cast<int>(merged.chain.size()) > kMaxInheritance) {
      reporter.error(merged.attention->name.range,
                     "inheritance is deeper than the limit of " + std::to_string(kMaxInheritance));
      return false;
    }
    merged.chain.push_back(current);
  }
  return true;
}

void addOwnItems(MergedAttention &merged, const AstAttention &owner, Reporter &reporter) {
  for (const AstProperty &property : owner.properties) {
    Inherited<AstProperty> &slot = merged.properties[property.key.text];
    if (slot.owner == &owner) {
      reporter.error(property.key.range, "`" + property.key.text + "` is given twice")
          .withNote(slot.item->key.range, "it is given here first");
      continue;
    }
    slot = {&property, &owner};
    if (property.key.text == "head_dim") // both dims: it replaces what ancestors give of either (rule A10)
      for (const char *key : {"key_dim", "value_dim"})
        if (const auto found = merged.properties.find(key);
            found != merged.properties.end() && found->second.owner != &owner)
          merged.properties.erase(found);
  }
  for (const AstDeclaration &declaration : owner.declarations) {
    const Ident &name = declaredName(declaration);
    Inherited<AstDeclaration> &slot = merged.declarations[name.text];
    if (slot.owner == &owner) {
      reporter.error(name.range, "`" + name.text + "` is defined twice")
          .withNote(declaredName(*slot.item).range, "it is defined here first");
      continue;
    }
    auto place = std::find_if(merged.order.begin(), merged.order.end(),
                              [&](const auto &known) { return known.item == slot.item; });
    slot = {&declaration, &owner};
    if (place != merged.order.end())
      *place = slot;
    else
      merged.order.push_back(slot);
  }
}

} // namespace

std::optional<MergedAttention> mergeAttention(const ParsedFiles &parsed, const AstAttention &attention,
                                              Reporter &reporter) {
  MergedAttention merged;
  merged.attention = &attention;
  reporter.setInheritance(nullptr, nullptr);
  if (!collectChain(parsed, merged, reporter))
    return std::nullopt;
  for (auto owner = merged.chain.rbegin(); owner != merged.chain.rend(); ++owner)
    addOwnItems(merged, **owner, reporter);
  return merged;
}

} // namespace deft::spec
