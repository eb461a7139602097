#pragma once

#include "tools/deftc/common/SpecInput.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class Option;
} // namespace CLI

/// `deftc emit --as KIND`: each part of the compiler adds the kinds that it can print.
namespace deft::cli {

struct EmitKind {
  std::string name; ///< as in `--as name`
  std::string what; ///< a few words for the help
  std::function<support::Result<std::string>(const LoadedSpec &, const spec::Variant &)> emit;
  bool wholeFile = false; ///< shows the file; the variant need not be chosen and is its first
  bool binary = false;    ///< not for a terminal
};

struct EmitterTable {
  std::vector<EmitKind> kinds;
  std::function<std::string()> configFile = [] { return std::string(); }; ///< that a kind reads; empty: none
  /// Options that only some kinds know, with the names of these.
  std::vector<std::pair<CLI::Option *, std::vector<std::string>>> options;

  void add(EmitKind kind) { kinds.push_back(std::move(kind)); }
};

// Options that only some kinds know are added to `emit` and to the table by those who read them; bind them to
// memory that lives as long as the emitter (a shared_ptr held by its lambda).
void addFrontEndEmitters(CLI::App &emit, EmitterTable &table); // ast, json
void addCudaEmitters(CLI::App &emit, EmitterTable &table);     // cuda, ptx, cubin; with the compiler only
void addCompilerEmitters(CLI::App &emit, EmitterTable &table); // ir, llvm, asm; with the compiler only

} // namespace deft::cli
