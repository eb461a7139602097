#include "runtime/api/AttentionImpl.h"

#include "compiler/support/Render.h"
#include "runtime/api/Convert.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Params.h"
#include "specs/Embedded.h"

namespace deft {

namespace {

TensorType toPublic(const spec::TensorType &tensor) {
  static_assert(static_cast<int>(spec::DType::F16) == static_cast<int>(DType::F16) &&
                static_cast<int>(spec::DType::BF16) == static_cast<int>(DType::BF16) &&
                static_cast<int>(spec::DType::F8E4M3) == static_cast<int>(DType::F8E4M3) &&
                static_cast<int>(spec::DType::F8E5M2) == static_cast<int>(DType::F8E5M2));
  return {static_cast<DType>(tensor.dtype), tensor.dim};
}

std::vector<ParamInfo> describeParams(const spec::Variant &variant) {
  std::vector<ParamInfo> params;
  for (const spec::Param &param : variant.params)
    params.push_back({param.name, param.type == spec::ScalarType::F32, exec::paramLength(variant, param),
                      param.shape != spec::Param::Shape::Scalar, param.defaultValue.has_value(),
                      param.isOfTokens(), param.shape == spec::Param::Shape::PerQuery,
                      variant.elementsOf(param)});
  return params;
}

std::optional<SelectionInfo> describeSelect(const spec::Variant &variant) {
  const std::optional<spec::SelectSpec> &select = variant.select;
  if (!select)
    return std::nullopt;
  return SelectionInfo{select->budget.values, static_cast<SelectBy>(select->by), select->keepFirst,
                       select->keepLast};
}

Result<Attention> finish(support::Result<program::Program> program) {
  if (!program)
    return api::toPublic(program.error());
  auto kernel = program->cpuKernel();
  if (!kernel && !program->isPackaged())
    return api::toPublic(kernel.error());
  auto impl =
      std::make_shared<Attention::Impl>(Attention::Impl{std::move(*program), std::move(kernel), {}, {}});
  impl->params = describeParams(impl->variant());
  impl->selects = describeSelect(impl->variant());
  impl->bounds = spec::visibleBounds(impl->variant());
  return Attention(std::move(impl));
}

constexpr char kHowToChoose[] = "choose one with CompileOptions::attention";

Result<Attention> compile(spec::ImportedFile file, const spec::ImportResolver &resolver,
                          const std::string &attention) {
  support::DiagnosticSink sink;
  auto loaded = program::checkSpec(std::move(file), resolver, sink);
  if (sink.hasErrors()) {
    std::string text = support::renderDiagnostics(loaded->sources, sink);
    while (text.ends_with('\n'))
      text.pop_back();
    return Error{ErrorCode::Diagnostics, std::move(text), ""};
  }
  return finish(program::Program::fromSpec(std::move(loaded), attention, kHowToChoose));
}

} // namespace

Attention::Attention(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const std::string &Attention::name() const { return impl_->variant().name; }
int Attention::queryHeads() const { return impl_->variant().queryHeads; }
int Attention::kvHeads() const { return impl_->variant().kvHeads; }
TensorType Attention::q() const { return toPublic(impl_->variant().tensors.q); }
TensorType Attention::k() const { return toPublic(impl_->variant().tensors.k); }
TensorType Attention::v() const { return toPublic(impl_->variant().tensors.v); }
TensorType Attention::out() const { return toPublic(impl_->variant().tensors.out); }
bool Attention::valueInKey() const { return impl_->variant().tensors.valueInKey; }
bool Attention::seesPath() const { return impl_->variant().bound == spec::MaskBound::Path; }
int Attention::headDim() const { return k().dim; }
DType Attention::dtype() const { return k().dtype; }
DType Attention::outputDtype() const { return out().dtype; }
bool Attention::hasLse() const { return impl_->variant().withLse; }
int Attention::pageSize() const { return exec::pageSizeOf(impl_->variant()); }
const std::vector<ParamInfo> &Attention::params() const { return impl_->params; }
const std::optional<SelectionInfo> &Attention::selects() const { return impl_->selects; }

CacheStrides Attention::strides() const {
  const abi::CacheLayout layout = exec::cacheLayoutsOf(impl_->variant()).k;
  return {layout.pageStride, layout.tokenStride, layout.headStride};
}

Result<std::string> Attention::source(SourceKind kind, const SourceOptions &options) const {
  return api::guarded([&]() -> Result<std::string> {
    switch (kind) {
    case SourceKind::Ir:
      return api::toPublic(impl_->program.irText());
    case SourceKind::Cuda:
      return api::toPublic(impl_->program.cudaText(options.architecture, options.phase));
    case SourceKind::Spec:
      return std::string(impl_->program.specText());
    }
    return api::usage("the kind of source is " + std::to_string(static_cast<int>(kind)) +
                      ", not between 0 and 2");
  });
}

Result<Attention> compileSpec(std::string_view text, const CompileOptions &options) {
  return api::guarded([&]() -> Result<Attention> {
    const spec::ImportResolver find = specs::importResolver(options.importFolder);
    const auto resolver = [&](const std::string &importer, const std::string &path) {
      // The text's name says nothing of where it lies.
      return find(importer == options.name ? options.importFolder + "/text" : importer, path);
    };
    return compile({options.name, std::string(text)}, resolver, options.attention);
  });
}

Result<Attention> compileSpecFile(const std::string &path, const CompileOptions &options) {
  return api::guarded([&]() -> Result<Attention> {
    auto file = program::readSpec(path);
    if (!file)
      return api::toPublic(file.error());
    const spec::ImportResolver resolver = specs::importResolverOf(file->name);
    return compile(std::move(*file), resolver, options.attention);
  });
}

Result<Attention> loadPackage(const std::string &path, const std::string &attention) {
  return api::guarded([&] {
    return finish(
        program::Program::fromPackage(path, attention, "choose one by the second argument of loadPackage"));
  });
}

bool hasCompiler() {
#ifdef DEFT_HAS_COMPILER
  return true;
#else
  return false;
#endif
}

const char *version() { return DEFT_VERSION; }

} // namespace deft
