#include "tools/deftc/run/RunDump.h"

#include "compiler/spec/VariantJson.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/exec/NpyWriter.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/ScaledRow.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/common/Progress.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// The living nodes in preorder under new numbers, which count without holes as a tree file wants it.
struct Numbering {
  tree::KvTree tree;
  std::vector<int> oldNode; ///< of each node of `tree`
};

Result<Numbering> renumber(const tree::KvTree &tree) {
  Numbering result;
  std::vector<int> newNode(tree.nodes().size(), -1);
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node)) {
    const tree::Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    const int parent = own.parent < 0 ? -1 : newNode[static_cast<std::size_t>(own.parent)];
    auto added = result.tree.addNode(parent, own.tokens);
    if (!added)
      return added.error();
    newNode[static_cast<std::size_t>(node)] = *added;
    result.oldNode.push_back(node);
  }
  for (const tree::Query &query : tree.queries()) {
    const auto position =
        query.position == tree::Query::kWhole ? std::nullopt : std::optional(query.position);
    if (auto added = result.tree.addQuery(newNode[static_cast<std::size_t>(query.node)], position); !added)
      return added.error();
  }
  return result;
}

class Dump {
public:
  Dump(Context &context, const std::string &folder, const spec::Variant &variant, const tree::KvTree &tree,
       const exec::Inputs &inputs, const exec::Outputs &outputs)
      : context_(context), folder_(folder), variant_(variant), tree_(tree), inputs_(inputs),
        outputs_(outputs) {}

  Result<void> write() {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
      return Error{ErrorCode::Environment, "cannot make the folder `" + folder_ + "`: " + error.message(),
                   ""};
    const auto numbered = renumber(tree_);
    if (!numbered)
      return numbered.error();
    if (auto written = tree::writeTreeFile(folder_ + "/tree.json", numbered->tree); !written)
      return written;
    if (auto written = writeSpec(*numbered); !written)
      return written;
    const long long queries = static_cast<long long>(tree_.queries().size());
    if (auto written = writeRows("q", inputs_.q, variant_.tensors.q, queries); !written)
      return written;
    if (auto written = writeRows("out", outputs_.out, variant_.tensors.out, queries); !written)
      return written;
    const spec::Tensors &tensors = variant_.tensors;
    const Cache k{inputs_.k.data(), inputs_.cache.k, tensors.k, true};
    if (auto written = writeTokens("k", k, *numbered); !written)
      return written;
    if (auto written = writeScales(k, *numbered); !written)
      return written;
    if (auto written = writeTokens(
            "v", {inputs_.values(variant_).data(), inputs_.cache.v, tensors.v, tensors.valueInKey},
            *numbered);
        !written)
      return written;
    return writeLse(queries);
  }

private:
  Result<exec::NpyWriter> open(const std::string &name, const std::vector<long long> &shape) const {
    return exec::NpyWriter::create(folder_ + "/" + name + ".npy", shape);
  }

  /// As other programs read it: values for each token of the tree, as in k.npy, and for each of its queries.
  exec::ParamValue valueOf(std::size_t param, const Numbering &numbered) const {
    const exec::ParamValue &value = inputs_.params[param];
    if (variant_.params[param].isOfTokens()) {
      const auto each = static_cast<std::size_t>(variant_.elementsOf(variant_.params[param]));
      return {ofTokens(value.f32, each, numbered), ofTokens(value.i32, each, numbered)};
    }
    exec::ParamValue result = value;
    if (variant_.params[param].isSizedByRun()) { // the queries of one of several steps
      result.f32.resize(std::min(value.f32.size(), tree_.queries().size()));
      result.i32.resize(std::min(value.i32.size(), tree_.queries().size()));
    }
    return result;
  }

  template <class T>
  std::vector<T> ofTokens(const std::vector<T> &slots, std::size_t each, const Numbering &numbered) const {
    std::vector<T> values;
    for (const int node : numbered.oldNode) {
      const tree::Node &own = tree_.nodes()[static_cast<std::size_t>(node)];
      for (int t = 0; t < own.tokens && !slots.empty(); ++t) {
        const auto slot = static_cast<std::size_t>(
            exec::cacheSlotOf(inputs_.pageTable.data(), variant_.cache.pageSize, own.location + t));
        for (std::size_t one = 0; one < each; ++one)
          values.push_back(slots[slot * each + one]);
      }
    }
    return values;
  }

  Result<void> writeSpec(const Numbering &numbered) const {
    nlohmann::ordered_json params = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < variant_.params.size(); ++i) {
      const exec::ParamValue value = valueOf(i, numbered);
      nlohmann::ordered_json &list = params[variant_.params[i].name] = value.i32;
      for (const float number : value.f32)
        list.push_back(std::isinf(number) ? nlohmann::ordered_json(number > 0 ? "inf" : "-inf")
                                          : nlohmann::ordered_json(number));
    }
    const nlohmann::ordered_json json = {{"spec", spec::toJson(variant_)}, {"params", params}};
    return support::writeFileAtomically(folder_ + "/spec.json", json.dump(1) + "\n");
  }

  /// K or V.
  struct Cache {
    const void *memory;
    const abi::CacheLayout &layout;
    const spec::TensorType &type;
    bool isKeys; ///< or lies in K's memory
  };

  Result<void> writeRows(const std::string &name, const std::vector<std::uint16_t> &bits,
                         const spec::TensorType &type, long long queries) const {
    auto file = open(name, {queries, variant_.queryHeads, type.dim});
    if (!file)
      return file.error();
    const auto count = static_cast<std::size_t>(queries) * variant_.queryHeads * type.dim;
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = exec::toFloat(bits[i], type.dtype);
    file->append(values);
    return file->close();
  }

  Result<void> writeTokens(const std::string &name, const Cache &cache, const Numbering &numbered) const {
    const auto &[dtype, dim] = cache.type;
    return writeTokens(name, cache, numbered, dim, [&](long long at, int d) {
      return cache.isKeys ? exec::keyElement(variant_.tensors, cache.memory, at, d)
                          : exec::toFloat(exec::bitsAt(cache.memory, at + d, dtype), dtype);
    });
  }

  /// Of a latent cache that has them, without which k.npy is not to be stored again.
  Result<void> writeScales(const Cache &k, const Numbering &numbered) const {
    const spec::Tensors &tensors = variant_.tensors;
    if (!tensors.hasScales()) {
      std::error_code ignored; // of an earlier dump
      std::filesystem::remove(folder_ + "/k_scales.npy", ignored);
      return {};
    }
    return writeTokens("k_scales", k, numbered, tensors.v.dim / tensors.scaleColumns,
                       [&](long long at, int scale) {
                         return exec::scaleOf(tensors, k.memory, at, scale * tensors.scaleColumns);
                       });
  }

  /// `element(at, d)`: of the row that begins at element `at`.
  template <class Element>
  Result<void> writeTokens(const std::string &name, const Cache &cache, const Numbering &numbered, int dim,
                           const Element &element) const {
    auto file = open(name, {numbered.tree.tokens(), variant_.kvHeads, dim});
    if (!file)
      return file.error();
    Progress progress(context_, "writing " + name + ".npy");
    long long done = 0;
    std::vector<float> token(static_cast<std::size_t>(variant_.kvHeads) * static_cast<std::size_t>(dim));
    for (const int node : numbered.oldNode) {
      const tree::Node &own = tree_.nodes()[static_cast<std::size_t>(node)];
      for (int t = 0; t < own.tokens; ++t) {
        for (int head = 0; head < variant_.kvHeads; ++head) {
          const long long at = exec::elementOf(cache.layout, inputs_.pageTable.data(),
                                               variant_.cache.pageSize, own.location + t, head);
          for (int d = 0; d < dim; ++d)
            token[static_cast<std::size_t>(head * dim + d)] = element(at, d);
        }
        file->append(token);
      }
      progress.at(done += own.tokens, numbered.tree.tokens());
    }
    return file->close();
  }

  Result<void> writeLse(long long queries) const {
    if (!variant_.withLse) {
      std::error_code ignored; // of an earlier dump
      std::filesystem::remove(folder_ + "/lse.npy", ignored);
      return {};
    }
    auto file = open("lse", {queries, variant_.queryHeads});
    if (!file)
      return file.error();
    file->append(outputs_.lse);
    return file->close();
  }

  Context &context_;
  const std::string &folder_;
  const spec::Variant &variant_;
  const tree::KvTree &tree_;
  const exec::Inputs &inputs_;
  const exec::Outputs &outputs_;
};

} // namespace

Result<void> checkDump(Context &context, const std::string &folder) {
  if (folder.empty())
    return {};
  if (auto writable = support::checkWritableFolder(folder); !writable)
    return writable;
  std::error_code none;
  const bool isThere = std::filesystem::exists(folder, none);
  for (const char *name : {"tree.json", "spec.json", "q.npy", "k.npy", "k_scales.npy", "v.npy", "out.npy",
                           "lse.npy", "selected.npy", "sparse_out.npy"}) {
    const std::string file = (std::filesystem::path(folder) / name).string();
    if (auto free = context.files.writes(file); !free)
      return free;
    if (auto writable = isThere ? support::checkWritable(file) : Result<void>(); !writable)
      return writable;
  }
  return {};
}

Result<void> dumpRun(Context &context, const std::string &folder, const spec::Variant &variant,
                     const tree::KvTree &tree, const exec::Inputs &inputs, const exec::Outputs &outputs) {
  return Dump(context, folder, variant, tree, inputs, outputs).write();
}

} // namespace deft::cli
