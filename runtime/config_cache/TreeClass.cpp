#include "runtime/config_cache/TreeClass.h"

#include <charconv>
#include <cmath>
#include <cstdint>

namespace deft::config_cache {
namespace {

struct Dimension {
  char letter;
  int TreeClass::*member;
  double weight; ///< of one step, in distance()
};

/// Tokens, depth and short nodes move the best chunk a little; queries and sharing decide which tiles pay.
constexpr std::array<Dimension, TreeClass::kDimensions> kTable{{
    {TreeClass::kLetters[0], &TreeClass::tokens, 0.5},
    {TreeClass::kLetters[1], &TreeClass::queries, 1},
    {TreeClass::kLetters[2], &TreeClass::sharing, 1},
    {TreeClass::kLetters[3], &TreeClass::depth, 0.5},
    {TreeClass::kLetters[4], &TreeClass::shorts, 0.5},
}};

constexpr int kMostLog2 = 62;

std::string power(int log2) {
  std::string digits = std::to_string(std::uint64_t{1} << log2);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string counted(int log2, const char *one, const char *many) {
  return power(log2) + " " + (log2 == 0 ? one : many);
}

/// The levels that are rounded to a power of two: 3 to 5 to 4.
std::string levels(int log2) {
  const auto first = static_cast<int>(std::floor(std::exp2(log2 - 0.5))) + 1;
  const auto last = static_cast<int>(std::floor(std::exp2(log2 + 0.5)));
  if (first >= last)
    return std::to_string(last) + (last == 1 ? " level" : " levels");
  return std::to_string(first) + " to " + std::to_string(last) + " levels";
}

} // namespace

std::string TreeClass::text() const {
  std::string text = "c" + std::to_string(kVersion);
  for (const Dimension &dimension : kTable)
    text += std::string("-") + dimension.letter + std::to_string(this->*dimension.member);
  return text;
}

std::optional<TreeClass> TreeClass::parse(std::string_view text) {
  TreeClass result;
  std::string_view rest = text;
  const auto skip = [&](std::string_view word) {
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  };
  if (!skip("c" + std::to_string(kVersion)))
    return std::nullopt;
  for (const Dimension &dimension : kTable) {
    int &number = result.*dimension.member;
    if (!skip(std::string("-") + dimension.letter))
      return std::nullopt;
    const auto [last, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (failure != std::errc() || number < 0 || number > kMostLog2)
      return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(last - rest.data()));
  }
  // Leading zeros and the like would be a second text for the same class.
  if (!rest.empty() || result.shorts > 4 || result.text() != text)
    return std::nullopt;
  return result;
}

double distance(const TreeClass &a, const TreeClass &b) {
  double sum = 0;
  for (const Dimension &dimension : kTable)
    sum += dimension.weight * std::abs(a.*dimension.member - b.*dimension.member);
  return sum;
}

bool areNeighbours(const TreeClass &a, const TreeClass &b) {
  for (const Dimension &dimension : kTable)
    if (std::abs(a.*dimension.member - b.*dimension.member) > 1)
      return false;
  return true;
}

/// By the shape alone, so a tree may read as another family than the one that made it: the first steps of a
/// tree of thoughts look few-shot, and are.
TreeFamily familyOf(const TreeClass &treeClass) {
  const auto &[tokens, queries, sharing, depth, shorts] = treeClass;
  if (sharing == 0)
    return TreeFamily::NoSharing;
  if (depth <= 1) // one or two levels: whether most queries see most tokens
    return queries - sharing <= 2 ? TreeFamily::FewShot : TreeFamily::Forest;
  if (queries >= 4 && sharing >= queries) // what the queries do not share is a handful of tokens
    return TreeFamily::Speculative;
  if (queries <= 4 || depth >= 3)
    return TreeFamily::Reasoning;
  constexpr int kDocumentLog2 = 10; // tokens that there are for each query
  return tokens - queries >= kDocumentLog2 ? TreeFamily::MultiDocument : TreeFamily::MultiLevelPrompt;
}

std::string familyName(TreeFamily family) {
  switch (family) {
  case TreeFamily::NoSharing:
    return "no sharing";
  case TreeFamily::FewShot:
    return "few-shot";
  case TreeFamily::Forest:
    return "forest";
  case TreeFamily::MultiLevelPrompt:
    return "multi-level prompt";
  case TreeFamily::Reasoning:
    return "reasoning";
  case TreeFamily::MultiDocument:
    return "multi-document";
  case TreeFamily::Speculative:
    return "speculative";
  }
  return "";
}

std::string describe(const TreeClass &treeClass) {
  static constexpr std::array kShares{"no short nodes", "a quarter in short nodes", "half in short nodes",
                                      "three quarters in short nodes", "short nodes only"};
  return "about " + counted(treeClass.tokens, "token", "tokens") + ", " +
         counted(treeClass.queries, "query", "queries") + ", a token seen by " + power(treeClass.sharing) +
         ", " + levels(treeClass.depth) + ", " + kShares[static_cast<std::size_t>(treeClass.shorts)];
}

} // namespace deft::config_cache
