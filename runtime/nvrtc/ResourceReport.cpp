#include "runtime/nvrtc/ResourceReport.h"

#include <cctype>
#include <charconv>
#include <optional>

namespace deft::nvrtc {
namespace {

/// The number that stands before `words`, as in "96 bytes stack frame".
std::optional<int> numberBefore(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos)
    return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])))
    --begin;
  int value = 0;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + at, value);
  if (error != std::errc() || end != line.data() + at)
    return std::nullopt;
  return value;
}

std::optional<std::string> entryName(std::string_view line) {
  constexpr std::string_view kMarker = "Compiling entry function '";
  const std::size_t at = line.find(kMarker);
  if (at == std::string_view::npos)
    return std::nullopt;
  line.remove_prefix(at + kMarker.size());
  const std::size_t end = line.find('\'');
  if (end == std::string_view::npos)
    return std::nullopt;
  return std::string(line.substr(0, end));
}

} // namespace

std::vector<KernelResources> parseResources(std::string_view log) {
  std::vector<KernelResources> kernels;
  std::optional<KernelResources> current;
  bool sawFrame = false; // "Function properties" of called functions stand between the entry's own lines
  while (!log.empty()) {
    const std::size_t newline = log.find('\n');
    const std::string_view line = log.substr(0, newline);
    log.remove_prefix(newline == std::string_view::npos ? log.size() : newline + 1);

    if (auto name = entryName(line)) {
      current = KernelResources{.entry = *name};
      sawFrame = false;
      continue;
    }
    if (!current)
      continue;
    const auto stack = numberBefore(line, " bytes stack frame");
    const auto stores = numberBefore(line, " bytes spill stores");
    const auto loads = numberBefore(line, " bytes spill loads");
    if (stack && stores && loads) {
      current->stackBytes += *stack;
      current->spillStoreBytes += *stores;
      current->spillLoadBytes += *loads;
      sawFrame = true;
      continue;
    }
    if (const auto registers = numberBefore(line, " registers")) {
      current->registers = *registers;
      current->staticSharedBytes = numberBefore(line, " bytes smem").value_or(0);
      if (sawFrame)
        kernels.push_back(*current);
      current.reset();
    }
  }
  return kernels;
}

} // namespace deft::nvrtc
