#include "tools/deftc/run/RunInputs.h"

#include "compiler/spec/Names.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/Numbers.h"
#include "runtime/exec/NpyReader.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/ScaledRow.h"
#include "runtime/exec/SizedParams.h"
#include "runtime/tree/StrictJson.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>

namespace deft::cli {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

std::string fileIn(const std::string &folder, const char *name) {
  return (std::filesystem::path(folder) / name).string();
}

/// The elements of a head's row in memory, as Inputs has them; `row` names it. What is not finite there, as a
/// number that the type has no room for, would make NaN of whole rows, of which no check can tell whether
/// they are right.
Result<void> store(std::span<const float> values, const spec::TensorType &type, std::byte *memory,
                   long long at, const std::string &path, const std::string &row) {
  const auto bytes = static_cast<std::size_t>(type.elementBytes());
  for (const float value : values) {
    const std::uint16_t bits = exec::fromFloat(value, type.dtype);
    if (!std::isfinite(exec::toFloat(bits, type.dtype)))
      return Error{ErrorCode::Diagnostics,
                   "`" + path + "` holds " + support::significant(value, 6) + " in " + row +
                       ", which is not a finite number of type " + spec::toString(type.dtype),
                   ""};
    std::memcpy(memory + static_cast<std::size_t>(at++) * bytes, &bits, bytes);
  }
  return {};
}

/// The same of a row of K with `scales`, which k_scales.npy holds.
Result<void> storeScaled(std::span<const float> values, std::span<const float> scales,
                         const spec::Tensors &tensors, std::byte *memory, long long at,
                         const std::string &path, const std::string &row) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!std::isfinite(scales[i]) || scales[i] == 0)
      return Error{ErrorCode::Diagnostics,
                   "the scales of `" + path + "` hold " + support::significant(scales[i], 6) + " in " + row +
                       ", a scale is finite and not 0",
                   ""};
    exec::setScale(tensors, memory, at, static_cast<int>(i) * tensors.scaleColumns, scales[i]);
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(exec::setKeyElement(tensors, memory, at, static_cast<int>(i), values[i])))
      return Error{ErrorCode::Diagnostics,
                   "`" + path + "` holds " + support::significant(values[i], 6) + " in " + row +
                       ", which divided by its scale is not a finite number of type " +
                       spec::toString(tensors.k.dtype),
                   ""};
  return {};
}

/// K or V, token after token in the order of the nodes. `scales`: where K's are; empty: there are none.
Result<void> readTokens(Context &context, const std::string &path, const spec::Variant &variant,
                        const spec::TensorType &type, const abi::CacheLayout &layout,
                        const tree::KvTree &tree, exec::Inputs &inputs,
                        exec::AlignedVector<std::uint16_t> &elements, const std::string &scales = {}) {
  auto file = exec::NpyReader::open(path, {{tree.tokens(), variant.kvHeads, type.dim},
                                           "tokens of the tree, KV heads, columns of the spec"});
  if (!file)
    return file.error();
  const spec::Tensors &tensors = variant.tensors;
  std::optional<exec::NpyReader> scaleFile;
  std::vector<float> rowScales;
  if (!scales.empty()) {
    rowScales.resize(static_cast<std::size_t>(tensors.v.dim / tensors.scaleColumns));
    auto opened = exec::NpyReader::open(
        scales, {{tree.tokens(), variant.kvHeads, static_cast<long long>(rowScales.size())},
                 "tokens of the tree, KV heads, scales of the spec"});
    if (!opened)
      return opened.error();
    scaleFile = std::move(*opened);
  }
  Progress progress(context, "reading " + std::filesystem::path(path).filename().string());
  auto *memory = reinterpret_cast<std::byte *>(elements.data());
  std::vector<float> row(static_cast<std::size_t>(type.dim));
  long long done = 0;
  for (const tree::Node &node : tree.nodes()) {
    for (int t = 0; t < node.tokens; ++t)
      for (int head = 0; head < variant.kvHeads; ++head) {
        if (auto read = file->read(row); !read)
          return read;
        if (scaleFile)
          if (auto read = scaleFile->read(rowScales); !read)
            return read;
        const long long at =
            exec::elementOf(layout, inputs.pageTable.data(), variant.cache.pageSize, node.location + t, head);
        const std::string name = "token " + std::to_string(done + t) + ", kv head " + std::to_string(head);
        auto stored = scaleFile ? storeScaled(row, rowScales, tensors, memory, at, path, name)
                                : store(row, type, memory, at, path, name);
        if (!stored)
          return stored;
      }
    progress.at(done += node.tokens, tree.tokens());
  }
  return {};
}

Result<void> readQueries(const std::string &path, const spec::Variant &variant, exec::Inputs &inputs) {
  const spec::TensorType &type = variant.tensors.q;
  auto file = exec::NpyReader::open(path, {{inputs.queryCount, variant.queryHeads, type.dim},
                                           "queries of the tree, query heads, columns of the spec"});
  if (!file)
    return file.error();
  std::vector<float> row(static_cast<std::size_t>(variant.queryHeads) * type.dim);
  inputs.q.resize(row.size() * static_cast<std::size_t>(inputs.queryCount));
  for (int query = 0; query < inputs.queryCount; ++query) {
    if (auto read = file->read(row); !read)
      return read;
    for (int head = 0; head < variant.queryHeads; ++head) {
      const auto dim = static_cast<std::size_t>(type.dim), first = static_cast<std::size_t>(head) * dim;
      const std::string name = "query " + std::to_string(query) + ", head " + std::to_string(head);
      if (auto stored =
              store(std::span(row).subspan(first, dim), type, reinterpret_cast<std::byte *>(inputs.q.data()),
                    inputs.queryAt(variant, query, head), path, name);
          !stored)
        return stored;
    }
  }
  return {};
}

/// A number as a dump has it; JSON has no infinity, which only a default can be.
std::optional<float> numberOf(const json &one) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (one == "inf" || one == "-inf")
    return one == "inf" ? kInfinity : -kInfinity;
  if (!one.is_number() || !std::isfinite(one.get<float>()))
    return std::nullopt;
  return one.get<float>();
}

/// A parameter's values as a dump has them, always a list, of any length where a tree decides on it; none:
/// they are not such a list.
std::optional<exec::ParamValue> valueOf(const json &list, const spec::Param &param, int length) {
  if (!list.is_array() || (!param.isSizedByRun() && list.size() != static_cast<std::size_t>(length)))
    return std::nullopt;
  exec::ParamValue value;
  for (const json &one : list) {
    using Whole = std::numeric_limits<std::int32_t>;
    const std::optional<float> number = numberOf(one);
    if (param.type == spec::ScalarType::F32 && number) {
      value.f32.push_back(*number);
    } else if (param.type != spec::ScalarType::F32 && one.is_number_integer() && one >= Whole::min() &&
               one <= Whole::max()) {
      value.i32.push_back(one.get<std::int32_t>());
    } else {
      return std::nullopt;
    }
  }
  return value;
}

/// The `params` of spec.json, an empty object where there is no such file.
Result<json> paramsOf(const std::string &path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::error_code none;
  if (!std::filesystem::exists(path, none))
    return json::object();
  const auto text = support::readFile(path, kMostBytes);
  if (!text)
    return text.error();
  const auto document = tree::parseStrictJson(*text);
  if (!document)
    return Error{ErrorCode::Diagnostics, "`" + path + "`: " + document.error().message, ""};
  if (!document->is_object() || !document->contains("params") || !document->at("params").is_object())
    return Error{ErrorCode::Diagnostics, "`" + path + "` was not written by --dump: it has no `params`", ""};
  return document->at("params");
}

/// All that stands there is of the variant: a name that is not would be a value that nobody uses.
Result<void> checkNames(const json &dumped, const std::string &path, const spec::Variant &variant) {
  for (const auto &[name, value] : dumped.items())
    if (const auto known = exec::paramIndex(variant, name); !known)
      return Error{ErrorCode::Diagnostics, "`" + path + "`: " + known.error().message, known.error().hint};
  return {};
}

} // namespace

Result<void> readsInputs(Context &context, const std::string &folder) {
  for (const char *name : {"tree.json", "spec.json", "q.npy", "k.npy", "k_scales.npy", "v.npy"})
    if (auto read = context.files.reads(fileIn(folder, name)); !read)
      return read;
  return {};
}

Result<std::vector<exec::ParamValue>> dumpedParams(Context &context, const std::string &folder,
                                                   const spec::Variant &variant,
                                                   const std::vector<std::string> &assignments) {
  if (auto read = readsParams(context, assignments); !read)
    return read.error();
  const std::string path = fileIn(folder, "spec.json");
  const auto dumped = paramsOf(path);
  if (!dumped)
    return dumped.error();
  if (auto known = checkNames(*dumped, path, variant); !known)
    return known.error();
  auto values = exec::bindKnownParams(variant, assignments);
  if (!values)
    return values.error();
  for (std::size_t i = 0; i < variant.params.size(); ++i) {
    const spec::Param &param = variant.params[i];
    const bool isGiven = std::any_of(assignments.begin(), assignments.end(), [&](const std::string &one) {
      return one.starts_with(param.name + "=");
    });
    exec::ParamValue &value = (*values)[i];
    if (!isGiven && dumped->contains(param.name)) {
      const int length = exec::paramLength(variant, param);
      const auto read = valueOf(dumped->at(param.name), param, length);
      if (!read)
        return Error{ErrorCode::Diagnostics,
                     "`" + path + "`: parameter `" + param.name + "` is not a list of " +
                         (param.isSizedByRun() ? "" : std::to_string(length) + " ") + "finite numbers, as " +
                         exec::paramTypeName(param) + " has them",
                     ""};
      value = *read;
    }
    if (value.f32.empty() && value.i32.empty() && !param.isSizedByRun())
      return exec::bindParams(variant, assignments); // says which one, and how it is given
  }
  return values;
}

Result<exec::Inputs> readInputs(Context &context, const std::string &folder, const spec::Variant &variant,
                                const tree::KvTree &tree, const tree::CachePlacement &placement,
                                std::vector<exec::ParamValue> params) {
  // Those of no token at all: a pool of NaN.
  exec::Inputs inputs = exec::makeRandomInputs(variant, tree::KvTree(), placement, {}, 0);
  inputs.params = exec::placeSizedParams(variant, tree, placement, std::move(params), 0);
  inputs.queryCount = static_cast<int>(tree.queries().size());
  if (auto read = readQueries(fileIn(folder, "q.npy"), variant, inputs); !read)
    return read.error();
  const spec::Tensors &tensors = variant.tensors;
  if (auto read = readTokens(context, fileIn(folder, "k.npy"), variant, tensors.k, inputs.cache.k, tree,
                             inputs, inputs.k, tensors.hasScales() ? fileIn(folder, "k_scales.npy") : "");
      !read)
    return read.error();
  if (tensors.valueInKey) // v.npy repeats what is in k.npy
    return inputs;
  if (auto read = readTokens(context, fileIn(folder, "v.npy"), variant, tensors.v, inputs.cache.v, tree,
                             inputs, inputs.v);
      !read)
    return read.error();
  return inputs;
}

} // namespace deft::cli
