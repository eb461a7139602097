#include "runtime/c_api/Dtypes.h"
#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Sized.h"
#include "runtime/c_api/Texts.h"

using namespace deft::c;

namespace {

deft::Result<deft::CompileOptions> optionsOf(const deft_compile_options *given) {
  const auto options = readSized("deft_compile_options", given);
  if (!options)
    return options.error();
  return deft::CompileOptions{.attention = textOr(options->attention, ""),
                              .name = textOr(options->name, "spec"),
                              .importFolder = textOr(options->import_folder, "")};
}

deft::Result<deft::SourceKind> sourceKindOf(std::int32_t kind) {
  switch (kind) {
  case DEFT_SOURCE_IR:
    return deft::SourceKind::Ir;
  case DEFT_SOURCE_CUDA:
    return deft::SourceKind::Cuda;
  case DEFT_SOURCE_SPEC:
    return deft::SourceKind::Spec;
  default:
    return usage("the kind of source is " + std::to_string(kind) +
                 ", not DEFT_SOURCE_IR, DEFT_SOURCE_CUDA or DEFT_SOURCE_SPEC");
  }
}

} // namespace

deft_status deft_attention_compile(const char *text, const deft_compile_options *options,
                                   deft_attention **attention) {
  return make(__func__, {{"text", text}}, attention, [&]() -> deft::Result<deft::Attention> {
    const auto known = optionsOf(options);
    return known ? deft::compileSpec(text, *known) : known.error();
  });
}

deft_status deft_attention_compile_file(const char *path, const deft_compile_options *options,
                                        deft_attention **attention) {
  return make(__func__, {{"path", path}}, attention, [&]() -> deft::Result<deft::Attention> {
    const auto known = optionsOf(options);
    return known ? deft::compileSpecFile(path, *known) : known.error();
  });
}

deft_status deft_attention_load_package(const char *path, const char *name, deft_attention **attention) {
  return make(__func__, {{"path", path}}, attention,
              [&] { return deft::loadPackage(path, textOr(name, "")); });
}

void deft_attention_destroy(deft_attention *attention) { delete attention; }

deft_status deft_attention_get_facts(const deft_attention *handle, deft_attention_facts *facts) {
  return call(__func__, {{"attention", handle}, {"facts", facts}}, [&] {
    const deft::Attention &attention = handle->attention;
    const deft::CacheStrides strides = attention.strides();
    deft_attention_facts known{};
    known.name = attention.name().c_str();
    known.query_heads = attention.queryHeads();
    known.kv_heads = attention.kvHeads();
    known.head_dim = attention.headDim();
    known.page_size = attention.pageSize();
    known.dtype = dtypeOf(attention.dtype());
    known.output_dtype = dtypeOf(attention.outputDtype());
    known.has_lse = attention.hasLse();
    known.param_count = static_cast<std::int32_t>(attention.params().size());
    known.page_stride = strides.page;
    known.token_stride = strides.token;
    known.head_stride = strides.head;
    known.key_dim = attention.k().dim;
    known.value_dim = attention.v().dim;
    known.query_dtype = dtypeOf(attention.q().dtype);
    known.key_dtype = dtypeOf(attention.k().dtype);
    known.value_dtype = dtypeOf(attention.v().dtype);
    known.value_in_key = attention.valueInKey();
    known.sees_path = attention.seesPath();
    return writeSized("deft_attention_facts", known, facts);
  });
}

deft_status deft_attention_get_param(const deft_attention *attention, int32_t index, deft_param_info *info) {
  return call(__func__, {{"attention", attention}, {"info", info}}, [&]() -> deft::Result<void> {
    const auto &params = attention->attention.params();
    if (index < 0 || static_cast<std::size_t>(index) >= params.size())
      return usage("there is no parameter " + std::to_string(index) + ", `" + attention->attention.name() +
                   "` has " + std::to_string(params.size()));
    const deft::ParamInfo &param = params[static_cast<std::size_t>(index)];
    deft_param_info known{};
    known.name = param.name.c_str();
    known.dtype = param.isF32 ? DEFT_F32 : DEFT_I32;
    known.length = param.length;
    known.is_array = param.isArray;
    known.has_default = param.hasDefault;
    known.sized_by = param.isOfTokens    ? DEFT_SIZED_BY_TOKENS
                     : param.isOfQueries ? DEFT_SIZED_BY_QUERIES
                                         : DEFT_SIZED_BY_SPEC;
    known.elements = param.elements;
    return writeSized("deft_param_info", known, info);
  });
}

deft_status deft_attention_get_source(const deft_attention *attention, int32_t kind,
                                      const deft_source_options *options, char **text) {
  return giveText(
      __func__, {{"attention", attention}, {"text", text}}, text, [&]() -> deft::Result<std::string> {
        const auto known = readSized("deft_source_options", options);
        if (!known)
          return known.error();
        const auto named = sourceKindOf(kind);
        if (!named)
          return named.error();
        return attention->attention.source(*named, {.architecture = textOr(known->architecture, "sm_90a"),
                                                    .phase = textOr(known->phase, "")});
      });
}
