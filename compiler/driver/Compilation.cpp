#include "compiler/driver/Compilation.h"

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cuda/hooks/HookEmitter.h"
#include "compiler/support/NearestName.h"
#include "compiler/transforms/Import.h"
#include "compiler/transforms/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>

namespace deft::driver {

using support::Error;
using support::ErrorCode;
using support::Result;

struct Compilation::Impl {
  // One thread: a variant is too small to gain from a pool, and making one costs more than all the passes.
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> imported, optimized;
  codegen::cuda::VariantSource source; ///< without hooks

  dialect::AttentionOp attention() const {
    return *const_cast<Impl *>(this)->optimized->getOps<dialect::AttentionOp>().begin();
  }
};

Compilation::Compilation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Compilation::Compilation(Compilation &&) noexcept = default;
Compilation &Compilation::operator=(Compilation &&) noexcept = default;
Compilation::~Compilation() = default;

static mlir::Location locate(mlir::MLIRContext *context, const support::SourceManager &sources,
                             support::SourceRange range) {
  if (range.file >= sources.fileCount())
    return mlir::UnknownLoc::get(context);
  support::LineColumn place = sources.lineColumn(range.file, range.begin);
  return mlir::FileLineColLoc::get(context, sources.name(range.file), place.line, place.column);
}

Result<Compilation> Compilation::create(const spec::Variant &variant, const support::SourceManager &sources) {
  auto impl = std::make_unique<Impl>();
  impl->source = codegen::cuda::VariantSource::of(variant);
  mlir::MLIRContext *context = &impl->context;
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(context, [&](mlir::Diagnostic &diagnostic) {
    messages += (messages.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  transforms::loadDialects(*context);
  impl->imported = mlir::ModuleOp::create(mlir::UnknownLoc::get(context));
  transforms::importVariant(*impl->imported, variant,
                            [&](support::SourceRange range) { return locate(context, sources, range); });
  bool isRight = mlir::succeeded(mlir::verify(*impl->imported));
  if (isRight) {
    impl->optimized = impl->imported->clone();
    isRight = mlir::succeeded(transforms::optimize(*impl->optimized));
  }
  if (!isRight)
    return Error{ErrorCode::Internal, "attention " + variant.called() + " makes wrong IR: " + messages,
                 "this is a bug of deftc"};
  return Compilation(std::move(impl));
}

std::string Compilation::irText(Stage stage) const {
  mlir::ModuleOp module = stage == Stage::Imported ? *impl_->imported : *impl_->optimized;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text + "\n";
}

namespace {

/// Keeps the IR as it is when the wanted pass has run, and the names of all that run.
class AfterPass : public mlir::PassInstrumentation {
public:
  AfterPass(std::string wanted, std::string &text, std::vector<std::string> &names)
      : wanted_(std::move(wanted)), text_(text), names_(names) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *operation) override {
    const std::string name = pass->getArgument().str();
    if (!name.empty() && std::find(names_.begin(), names_.end(), name) == names_.end())
      names_.push_back(name);
    if (name != wanted_ || !text_.empty())
      return;
    mlir::Operation *top = operation;
    while (top->getParentOp())
      top = top->getParentOp();
    llvm::raw_string_ostream stream(text_);
    top->print(stream);
    stream << '\n';
  }

private:
  std::string wanted_;
  std::string &text_;
  std::vector<std::string> &names_;
};

} // namespace

Result<std::string> Compilation::irAfter(const std::string &pass) const {
  mlir::OwningOpRef<mlir::ModuleOp> module = impl_->imported->clone();
  mlir::PassManager manager(module->getContext());
  std::string text, list;
  std::vector<std::string> names;
  manager.addInstrumentation(std::make_unique<AfterPass>(pass, text, names));
  transforms::buildOptimizePipeline(manager);
  if (mlir::failed(manager.run(*module)))
    return Error{ErrorCode::Internal, "the passes failed", "this is a bug of deftc"};
  if (!text.empty())
    return text;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  const std::string nearest = support::didYouMean(pass, names);
  return Error{ErrorCode::Usage, "no pass is called `" + pass + "`",
               nearest.empty() ? "it is one of " + list : nearest};
}

Result<codegen::cuda::VariantSource> Compilation::cudaVariantSource() const {
  auto hooks = codegen::cuda::emitHooks(impl_->attention());
  if (!hooks)
    return std::move(hooks).error();
  codegen::cuda::VariantSource source = impl_->source;
  source.hooks = std::move(*hooks);
  return source;
}

namespace {
using CpuText = Result<std::string> (*)(dialect::AttentionOp, const codegen::cpu::CpuTarget &);

Result<std::string> onCpuTarget(CpuText make, dialect::AttentionOp attention, int isaLevel) {
  auto target = isaLevel == 0 ? codegen::cpu::CpuTarget::host() : codegen::cpu::CpuTarget::level(isaLevel);
  if (!target)
    return target.error();
  return make(attention, *target);
}
} // namespace

Result<std::string> Compilation::llvmText(int isaLevel) const {
  return onCpuTarget(codegen::cpu::llvmText, impl_->attention(), isaLevel);
}
Result<std::string> Compilation::cpuAsm(int isaLevel) const {
  return onCpuTarget(codegen::cpu::asmText, impl_->attention(), isaLevel);
}
Result<std::string> Compilation::cpuObject(int isaLevel) const {
  return onCpuTarget(codegen::cpu::objectCode, impl_->attention(), isaLevel);
}

Result<std::shared_ptr<const abi::CpuKernel>> Compilation::jitCpuKernel() const {
  return codegen::cpu::jit(impl_->attention());
}

Result<std::string> Compilation::linkCpuObjects(const std::vector<std::string> &objects) {
  return codegen::cpu::linkSharedObject(objects);
}

} // namespace deft::driver
