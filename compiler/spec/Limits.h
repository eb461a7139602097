#pragma once

#include <cstddef>

/// The limits of the language (rules L1 to L11 of LANGUAGE.md). They bound time, memory and stack for any input.
namespace deft::spec {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxFiles = 64;
constexpr int kMaxImportDepth = 16;
constexpr std::size_t kMaxNameLength = 64;
constexpr int kMaxNesting = 200;          ///< of an expression as written; a chain of n operators is n deep
constexpr int kMaxCallDepth = 1000;       ///< of an expression with its `let`s and functions followed
constexpr std::size_t kMaxOperations = 4096; ///< of an attention, after substitution
constexpr std::size_t kMaxSteps = std::size_t{1} << 14; ///< expression nodes visited for one attention
constexpr std::size_t kMaxAttentions = 256;
constexpr std::size_t kMaxFunctions = 1024;
constexpr int kMaxInheritance = 16;
constexpr std::size_t kMaxParams = 32;
constexpr std::size_t kMaxArguments = 16;
constexpr std::size_t kMaxPhases = 8;
constexpr std::size_t kMaxTuneValues = 64;

} // namespace deft::spec
