#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

/// Trees in buckets: one config is kept for each.
namespace deft::config_cache {

/// The bucket of trees for which one config is kept. Numbers are rounded to the nearest power of two, so that
/// round sizes (32 queries, 4,096 tokens) lie in the middle of a bucket and not at its edge. Only tokens and
/// nodes that some query sees count.
struct TreeClass {
  static constexpr int kVersion = 1; ///< of the meaning of the numbers; part of the canonical string
  static constexpr int kDimensions = 5;
  static constexpr std::array<char, kDimensions> kLetters{'t', 'q', 's', 'd', 'f'}; ///< in text()

  int tokens = 0;  ///< log2 of the tokens
  int queries = 0; ///< log2 of the queries
  int sharing = 0; ///< log2 of how many queries see a token, in the mean
  int depth = 0;   ///< log2 of the levels: 0 is one level
  int shorts = 0;  ///< quarters of the tokens that lie in nodes shorter than a tile, 0 to 4

  auto operator<=>(const TreeClass &) const = default;

  /// "c1-t14-q6-s3-d2-f0": the key in files. No other text stands for this class.
  std::string text() const;
  /// The class whose text() this is; none for any other text: another version's class means something else.
  static std::optional<TreeClass> parse(std::string_view text);

  std::array<int, kDimensions> numbers() const { return {tokens, queries, sharing, depth, shorts}; }
};

/// Where a tree stands in each dimension, before it is rounded.
using Coordinates = std::array<double, TreeClass::kDimensions>;

/// How far apart two classes are, weighted by how much a step in a dimension matters to the best config: 1 is
/// twice the queries, or twice the sharing.
double distance(const TreeClass &a, const TreeClass &b);

/// No number differs by more than one. A small change of a tree stays within that.
bool areNeighbours(const TreeClass &a, const TreeClass &b);

/// What requests such trees look like: a reading of a class for people, nothing is decided by it.
enum class TreeFamily { NoSharing, FewShot, Forest, MultiLevelPrompt, Reasoning, MultiDocument, Speculative };

TreeFamily familyOf(const TreeClass &treeClass);
std::string familyName(TreeFamily family); ///< "few-shot"

/// "about 16,384 tokens, 64 queries, each token seen by 8 of them, 3 to 5 levels, no short nodes".
std::string describe(const TreeClass &treeClass);

} // namespace deft::config_cache
