#include "runtime/api/Attention.h"

#include "compiler/support/Render.h"
#include "runtime/api/Dtypes.h"
#include "runtime/api/Sized.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Params.h"
#include "specs/Embedded.h"

#include <deft/c/selection.h>

using namespace deft;
using namespace deft::api;

namespace {

using NewAttention = Result<std::unique_ptr<deft_attention>>;

NewAttention finish(Result<program::Program> program) {
  if (!program)
    return program.error();
  auto kernel = program->cpuKernel();
  if (!kernel && !program->isPackaged())
    return kernel.error();
  return std::make_unique<deft_attention>(
      std::make_shared<const Attention>(std::move(*program), std::move(kernel)));
}

NewAttention compile(spec::ImportedFile file, const spec::ImportResolver &resolver,
                     const deft_compile_options &options) {
  support::DiagnosticSink sink;
  auto loaded = program::checkSpec(std::move(file), resolver, sink);
  if (sink.hasErrors()) {
    std::string text = support::renderDiagnostics(loaded->sources, sink);
    while (text.ends_with('\n'))
      text.pop_back();
    return Error{support::ErrorCode::Diagnostics, std::move(text), ""};
  }
  for (spec::Variant &variant : loaded->variants)
    variant.title = textOr(options.title, "");
  return finish(
      program::Program::fromSpec(std::move(loaded), textOr(options.attention, ""), "choose one by its name"));
}

/// As callers count them: a C struct's `sized_by`.
std::int32_t sizedBy(const spec::Param &param) {
  return param.isOfTokens()                            ? DEFT_SIZED_BY_TOKENS
         : param.shape == spec::Param::Shape::PerQuery ? DEFT_SIZED_BY_QUERIES
                                                       : DEFT_SIZED_BY_SPEC;
}

} // namespace

deft_status deft_attention_compile(const char *text, const deft_compile_options *options,
                                   deft_attention **attention) {
  return make({{"text", text}}, attention, [&]() -> NewAttention {
    const auto known = readSized("deft_compile_options", options);
    if (!known)
      return known.error();
    const std::string name = textOr(known->name, "spec"), folder = textOr(known->import_folder, "");
    const spec::ImportResolver find = specs::importResolver(folder);
    const auto resolver = [&](const std::string &importer, const std::string &path) {
      // The text's name says nothing of where it lies.
      return find(importer == name ? folder + "/text" : importer, path);
    };
    return compile({name, text}, resolver, *known);
  });
}

deft_status deft_attention_compile_file(const char *path, const deft_compile_options *options,
                                        deft_attention **attention) {
  return make({{"path", path}}, attention, [&]() -> NewAttention {
    const auto known = readSized("deft_compile_options", options);
    if (!known)
      return known.error();
    auto file = program::readSpec(path);
    if (!file)
      return file.error();
    const spec::ImportResolver resolver = specs::importResolverOf(file->name);
    return compile(std::move(*file), resolver, *known);
  });
}

deft_status deft_attention_load_package(const char *path, const char *name, deft_attention **attention) {
  return make({{"path", path}}, attention, [&] {
    return finish(program::Program::fromPackage(path, textOr(name, ""), "choose one by its name"));
  });
}

void deft_attention_destroy(deft_attention *attention) { delete attention; }

deft_status deft_attention_get_facts(const deft_attention *attention, deft_attention_facts *facts) {
  return call({{"attention", attention}, {"facts", facts}}, [&] {
    const spec::Variant &variant = attention->variant();
    const abi::CacheLayout layout = exec::cacheLayoutsOf(variant).k;
    const spec::Tensors &tensors = variant.tensors;
    deft_attention_facts known{};
    known.name = variant.name.c_str();
    known.query_heads = variant.queryHeads;
    known.kv_heads = variant.kvHeads;
    known.head_dim = known.key_dim = tensors.k.dim;
    known.value_dim = tensors.v.dim;
    known.page_size = variant.cache.pageSize;
    known.query_dtype = dtypeOf(tensors.q.dtype);
    known.dtype = known.key_dtype = dtypeOf(tensors.k.dtype);
    known.value_dtype = dtypeOf(tensors.v.dtype);
    known.output_dtype = dtypeOf(tensors.out.dtype);
    known.has_lse = variant.withLse;
    known.param_count = static_cast<std::int32_t>(variant.params.size());
    known.page_stride = layout.pageStride;
    known.token_stride = layout.tokenStride;
    known.head_stride = layout.headStride;
    known.value_in_key = tensors.valueInKey;
    known.scale_columns = tensors.scaleColumns;
    known.byte_products = tensors.byteProducts;
    known.sees_path = variant.bound == spec::MaskBound::Path;
    return writeSized("deft_attention_facts", known, facts);
  });
}

deft_status deft_attention_get_param(const deft_attention *attention, int32_t index, deft_param_info *info) {
  return call({{"attention", attention}, {"info", info}}, [&]() -> Result<void> {
    const spec::Variant &variant = attention->variant();
    if (index < 0 || static_cast<std::size_t>(index) >= variant.params.size())
      return usage("there is no parameter " + std::to_string(index) + ", " + variant.called() + " has " +
                   std::to_string(variant.params.size()));
    const spec::Param &param = variant.params[static_cast<std::size_t>(index)];
    deft_param_info known{};
    known.name = param.name.c_str();
    known.dtype = param.type == spec::ScalarType::F32 ? DEFT_F32 : DEFT_I32;
    known.length = exec::paramLength(variant, param);
    known.is_array = param.shape != spec::Param::Shape::Scalar;
    known.has_default = param.defaultValue.has_value();
    known.sized_by = sizedBy(param);
    known.elements = variant.elementsOf(param);
    return writeSized("deft_param_info", known, info);
  });
}

deft_status deft_attention_get_selection(const deft_attention *attention, deft_selection_info *info) {
  static_assert(static_cast<int>(spec::SelectBy::KvHead) == DEFT_SELECT_BY_KV_HEAD &&
                static_cast<int>(spec::SelectBy::QueryHead) == DEFT_SELECT_BY_QUERY_HEAD &&
                static_cast<int>(spec::SelectBy::Query) == DEFT_SELECT_BY_QUERY &&
                static_cast<int>(spec::SelectBy::Caller) == DEFT_SELECT_BY_CALLER);
  return call({{"attention", attention}, {"info", info}}, [&] {
    deft_selection_info known{};
    if (const auto &select = attention->variant().select) {
      known.budgets = select->budget.values.data();
      known.budget_count = select->budget.values.size();
      known.by = static_cast<std::int32_t>(select->by);
      known.keep_first = select->keepFirst;
      known.keep_last = select->keepLast;
    }
    return writeSized("deft_selection_info", known, info);
  });
}

deft_status deft_attention_get_source(const deft_attention *attention, int32_t kind,
                                      const deft_source_options *options, char **text) {
  return giveText({{"attention", attention}, {"text", text}}, text, [&]() -> Result<std::string> {
    const auto known = readSized("deft_source_options", options);
    if (!known)
      return known.error();
    switch (kind) {
    case DEFT_SOURCE_IR:
      return attention->of->program.irText();
    case DEFT_SOURCE_CUDA:
      return attention->of->program.cudaText(textOr(known->architecture, "sm_90a"), textOr(known->phase, ""));
    case DEFT_SOURCE_SPEC:
      return std::string(attention->of->program.specText());
    default:
      return wrong("kind", "is " + std::to_string(kind) + ", not between 0 and 2");
    }
  });
}
