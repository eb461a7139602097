#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Files of recorded workloads. There are two JSON formats:
///
/// `recorded-tree/1`, an observed search:
///   {"format": "recorded-tree/1", "name": "...", "columns": ["parent", "tokens", "first_step", "last_step"],
///    "trees": [{"nodes": [[-1, 1104, -1103, 0], [0, 3, 1, 3], ...]}, ...]}
/// A node grows by one token a step from first_step to last_step, so that tokens = last_step - first_step +
/// 1; one that ends at step 0 or before is a prompt. At step s, from 1 on, the queries are the nodes with
/// first_step <= s <= last_step. A parent is an earlier node, or -1, and stops growing before its children
/// start.
///
/// `token-tree/1`, speculative decoding:
///   {"format": "token-tree/1", "name": "...", "parents": [-1, 0, 0, 1],
///    "records": [{"prompt_characters": 3095, "accepted": [1, 4, 2]}, ...]}
/// parents[i] is the parent of guessed token i; token 0 is the last accepted one, below the sequence (-1).
/// Every token is a query at every step; after step i the sequence grows by accepted[i - 1] tokens.
///
/// Both may have `source` and `meaning`, texts for people.
namespace deft::workload {

struct RecordedNode {
  int parent, tokens, firstStep, lastStep;
};

struct RecordedTrees {
  std::vector<std::vector<RecordedNode>> trees;
};

struct TokenTreeRecords {
  struct Record {
    int promptCharacters = 0;
    std::vector<int> accepted; ///< after each step
  };
  std::vector<int> parents;
  std::vector<Record> records;
};

using RecordFile = std::variant<RecordedTrees, TokenTreeRecords>;

/// Strict: errors name the place, like `trees[0].nodes[3]`.
support::Result<RecordFile> parseRecordFile(std::string_view json);
support::Result<RecordFile> readRecordFile(const std::string &path);

} // namespace deft::workload
