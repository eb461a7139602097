#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

/// Groups trees into buckets, with one config for each.
namespace deft::config_cache {

/// A bucket of trees that share one config. Numbers are rounded to the nearest power of two, so that round
/// sizes (32 queries, 4,096 tokens) lie in the middle of a bucket and not at its edge. Only tokens and nodes
/// that some query sees count.
struct TreeClass {
  static constexpr int kVersion = 1; ///< of the meaning of the numbers; part of the canonical string
  static constexpr int kDimensions = 5;
  static constexpr std::array<char, kDimensions> kLetters{'t', 'q', 's', 'd', 'f'}; ///< in text()

  int tokens = 0;  ///< log2 of the tokens
  int queries = 0; ///< log2 of the queries
  int sharing = 0; ///< log2 of the average number of queries that see a token
  int depth = 0;   ///< log2 of the levels; 0: one level
  int shorts = 0;  ///< quarters of the tokens in nodes that are shorter than a tile, 0 to 4

  auto operator<=>(const TreeClass &) const = default;

  /// "c1-t14-q6-s3-d2-f0": the key in files. Each class has exactly one text.
  std::string text() const;
  /// The class with this text; none for any other text, since classes of another version mean something else.
  static std::optional<TreeClass> parse(std::string_view text);

  std::array<int, kDimensions> numbers() const { return {tokens, queries, sharing, depth, shorts}; }
};

/// The position of a tree in each dimension, before rounding.
using Coordinates = std::array<double, TreeClass::kDimensions>;

/// The distance of two classes, with weights for how much a dimension affects the best config: 1 is twice the
/// queries, or twice the sharing.
double distance(const TreeClass &a, const TreeClass &b);

/// Whether no number differs by more than one, as after a small change of a tree.
bool areNeighbours(const TreeClass &a, const TreeClass &b);

/// The kind of requests that have such trees: for people only; no choice depends on it.
enum class TreeFamily { NoSharing, FewShot, Forest, MultiLevelPrompt, Reasoning, MultiDocument, Speculative };

TreeFamily familyOf(const TreeClass &treeClass);
std::string familyName(TreeFamily family); ///< "few-shot"

/// "about 16,384 tokens, 64 queries, each token seen by 8 of them, 3 to 5 levels, no short nodes".
std::string describe(const TreeClass &treeClass);

} // namespace deft::config_cache
