#pragma once

#include <cstdint>
#include <random>
#include <vector>

/// Trees of drafts as speculative decoders make them.
namespace deft::test {

/// The parent of each draft; -1: the request itself. A parent may have the larger number.
using DraftParents = std::vector<int>;

/// So many drafts, each below one that has less than `width` children and is less than `depth` drafts deep,
/// and the sooner the nearer to the request.
DraftParents draftTree(int count, int depth, int width, std::mt19937 &random);

/// JetSpec's trees are of 128 or 255 drafts, EAGLE's of 60.
inline DraftParents jetSpecTree(int budget, std::mt19937 &random) { return draftTree(budget, 20, 7, random); }
inline DraftParents eagleTree(std::mt19937 &random) { return draftTree(60, 7, 10, random); }
DraftParents draftChain(int count);
inline DraftParents draftStar(int count) { return DraftParents(static_cast<std::size_t>(count), -1); }

/// The same tree with other numbers.
DraftParents renumbered(const DraftParents &parents, std::mt19937 &random);

/// A chain, a star or a tree of so many drafts, in any order.
DraftParents draftTreeOf(int count, std::mt19937 &random);
/// Any of these, or something between, with at most so many drafts, at least one.
DraftParents anyDraftTree(int most, std::mt19937 &random);

/// Whether draft i sees draft j: itself, and all above it.
bool doesSee(const DraftParents &parents, int i, int j);
int depthOf(const DraftParents &parents, int draft);

/// Rows of (rows + 31) / 32 words for so many drafts; those without a draft have random bits, as have bits of
/// drafts that there are not.
std::vector<std::uint32_t> maskOf(const DraftParents &parents, int rows, std::mt19937 &random);

} // namespace deft::test
