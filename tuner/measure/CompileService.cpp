#include "tuner/measure/CompileService.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/module_cache/CompileKernels.h"
#include "tuner/measure/MeasureService.h"

namespace deft::measure {

using support::Result;

namespace {

class CompileService : public Service {
public:
  CompileService(const codegen::cuda::VariantSource &source, const target::Target &target,
                 std::shared_ptr<const nvrtc::Nvrtc> nvrtc)
      : source_(source), target_(target), nvrtc_(std::move(nvrtc)),
        cache_(module_cache::CubinCache::openDefault()) {}

  Result<Message> handle(const Message &request) override {
    const auto config = config::configFromJson(request.head.at("config"), config::DeviceKind::Gpu);
    if (!config)
      return config.error();
    const auto kernels = module_cache::compileKernels(cache_.get(), *nvrtc_, source_, *config, target_);
    if (!kernels)
      return kernels.error();
    Message answer{nlohmann::json::object(), {}};
    packKernels(*kernels, answer);
    return answer;
  }

private:
  const codegen::cuda::VariantSource &source_;
  const target::Target &target_;
  std::shared_ptr<const nvrtc::Nvrtc> nvrtc_;
  std::unique_ptr<module_cache::CubinCache> cache_;
};

} // namespace

Result<std::unique_ptr<Service>> makeCompileService(const codegen::cuda::VariantSource &source,
                                                    const target::Target &target) {
  auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  return std::unique_ptr<Service>(std::make_unique<CompileService>(source, target, std::move(*nvrtc)));
}

} // namespace deft::measure
