#pragma once

#include <cstdint>
#include <random>
#include <vector>

/// Trees of drafts, like those of speculative decoders.
namespace deft::test {

/// The parent of each draft; -1: the request. A parent may have a larger number than its child.
using DraftParents = std::vector<int>;

/// `count` drafts, each below a draft with less than `width` children at a depth below `depth`; parents near
/// the request are more likely.
DraftParents draftTree(int count, int depth, int width, std::mt19937 &random);

/// JetSpec's trees have 128 or 255 drafts, EAGLE's have 60.
inline DraftParents jetSpecTree(int budget, std::mt19937 &random) { return draftTree(budget, 20, 7, random); }
inline DraftParents eagleTree(std::mt19937 &random) { return draftTree(60, 7, 10, random); }
DraftParents draftChain(int count);
inline DraftParents draftStar(int count) { return DraftParents(static_cast<std::size_t>(count), -1); }

/// The same tree with permuted numbers.
DraftParents renumbered(const DraftParents &parents, std::mt19937 &random);

/// A chain, a star or a tree of `count` drafts, in any order.
DraftParents draftTreeOf(int count, std::mt19937 &random);
/// Any of these, or something in between, with 1 to `most` drafts.
DraftParents anyDraftTree(int most, std::mt19937 &random);

/// Whether draft i sees draft j, which holds for itself and for all of its ancestors.
bool doesSee(const DraftParents &parents, int i, int j);
int depthOf(const DraftParents &parents, int draft);

/// Rows of (rows + 31) / 32 words for `rows` drafts. Rows without a draft, and bits of drafts that do not
/// exist, are random.
std::vector<std::uint32_t> maskOf(const DraftParents &parents, int rows, std::mt19937 &random);

} // namespace deft::test
