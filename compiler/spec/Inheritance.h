#pragma once

#include "compiler/spec/ParsedFiles.h"
#include "compiler/spec/Reporter.h"

namespace deft::spec {

/// A property or declaration, and the attention that contains it.
template <typename T> struct Inherited {
  const T *item = nullptr;
  const AstAttention *owner = nullptr;
};

/// An attention with everything that it inherits: for each name, the nearest definition.
struct MergedAttention {
  const AstAttention *attention = nullptr;
  std::vector<const AstAttention *> chain; ///< the attention first, then its ancestors
  std::map<std::string, Inherited<AstProperty>, std::less<>> properties;
  std::map<std::string, Inherited<AstDeclaration>, std::less<>> declarations;
  std::vector<Inherited<AstDeclaration>>
      order; ///< ancestors' first; an overriding one takes the first one's place

  Inherited<AstProperty> property(std::string_view key) const {
    auto found = properties.find(key);
    return found == properties.end() ? Inherited<AstProperty>{} : found->second;
  }
  bool isOwn(const AstAttention *owner) const { return owner == attention; }
};

/// None if the chain of ancestors is broken, which is reported.
std::optional<MergedAttention> mergeAttention(const ParsedFiles &parsed, const AstAttention &attention,
                                              Reporter &reporter);

} // namespace deft::spec
