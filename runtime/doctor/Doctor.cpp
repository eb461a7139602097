#include "runtime/doctor/Doctor.h"

#include "compiler/target/Target.h"
#include "runtime/device/Device.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <filesystem>
#include <fstream>
#include <thread>

namespace deft::doctor {
namespace {

using nlohmann::json;

Finding failed(std::string name, const support::Error &error) {
  return {std::move(name), false, error.message, error.hint, json::object()};
}

Finding checkCompiler() {
#ifdef DEFT_LLVM_VERSION
  return {"compiler",
          true,
          "LLVM and MLIR " DEFT_LLVM_VERSION " are built in",
          {},
          {{"llvm", DEFT_LLVM_VERSION}}};
#else
  return {"compiler", false, "not built in: this deftc runs packages and cannot compile specs",
          "build with DEFT_ENABLE_COMPILER=ON, or make packages with `deftc build` on another machine",
          json::object()};
#endif
}

std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "an unnamed processor";
}

Finding checkCpu() {
  int level = 0;
  bool bf16 = false;
#if defined(__x86_64__)
  level = __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 0;
  bf16 = __builtin_cpu_supports("avx512bf16") != 0;
#endif
  const unsigned threads = std::thread::hardware_concurrency();
  const std::string model = cpuModel();
  Finding finding{"cpu",
                  level > 0,
                  model + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
                  {},
                  {{"model", model}, {"threads", threads}, {"isa_level", level}, {"avx512_bf16", bf16}}};
  if (level > 0)
    finding.text += ", x86-64-v" + std::to_string(level) + (bf16 ? " with AVX512_BF16" : "");
  else {
    finding.text += ", below x86-64-v3";
    finding.mend = "CPU kernels need AVX2, FMA and F16C; run on a GPU or on another machine";
  }
  return finding;
}

Finding checkGpu() {
  const auto driver = device::Driver::load();
  if (!driver)
    return failed("gpu", driver.error());
  Finding finding{"gpu", false, {}, {}, {{"driver_cuda", (*driver)->version()}, {"devices", json::array()}}};
  for (int ordinal = 0; ordinal < (*driver)->deviceCount(); ++ordinal) {
    const auto device = device::Device::open(*driver, ordinal);
    if (!finding.text.empty())
      finding.text += "; ";
    if (!device) {
      finding.text += device.error().message;
      finding.mend = device.error().hint;
      continue;
    }
    const device::DeviceFacts &facts = (*device)->facts();
    const target::Target *target = target::targetForDevice(facts.major, facts.minor);
    const std::string arch = target ? std::string(target->arch) : "none";
    finding.ok = finding.ok || target;
    finding.text += facts.name + ", compute capability " + std::to_string(facts.major) + "." +
                    std::to_string(facts.minor) + (target ? ", kernels for " + arch : ", no kernels for it") +
                    ", " + std::to_string(facts.multiprocessors) + " multiprocessors, " +
                    std::to_string(facts.memoryBytes >> 30) + " GiB";
    finding.details["devices"].push_back({{"name", facts.name},
                                          {"compute_capability", {facts.major, facts.minor}},
                                          {"arch", target ? json(arch) : json(nullptr)},
                                          {"multiprocessors", facts.multiprocessors},
                                          {"l2_bytes", facts.l2Bytes},
                                          {"memory_bytes", facts.memoryBytes}});
  }
  finding.text += "; driver for CUDA " + std::to_string((*driver)->version() / 1000) + "." +
                  std::to_string((*driver)->version() % 1000 / 10);
  return finding;
}

Finding checkNvrtc() {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return failed("nvrtc", nvrtc.error());
  Finding finding{
      "nvrtc",
      true,
      (*nvrtc)->version().text() + ", " + (*nvrtc)->path(),
      {},
      {{"version", (*nvrtc)->version().text()}, {"path", (*nvrtc)->path()}, {"archs", json::array()}}};
  std::string unknown;
  for (const target::Target &target : target::targets())
    if ((*nvrtc)->supports(target.arch))
      finding.details["archs"].push_back(target.arch);
    else
      unknown += (unknown.empty() ? "" : ", ") + std::string(target.arch);
  if (!unknown.empty()) {
    finding.text += ", too old for " + unknown;
    finding.mend = "a newer CUDA toolkit, or wheel `nvidia-cuda-nvrtc`, compiles for all";
  }
  return finding;
}

Finding checkCache() {
  const auto cache = module_cache::CubinCache::openDefault();
  if (const auto warning = cache->takeWarning())
    return {"cache",
            false,
            *warning,
            "set DEFT_CACHE_DIR to a folder of your own on a writable disk",
            {{"folder", cache->folder()}, {"writable", false}}};
  std::error_code ignored;
  const auto kernels = std::distance(std::filesystem::directory_iterator(cache->folder(), ignored), {});
  return {"cache",
          true,
          cache->folder() + ", writable, " + std::to_string(kernels) +
              (kernels == 1 ? " kernel" : " kernels"),
          {},
          {{"folder", cache->folder()}, {"writable", true}, {"kernels", kernels}}};
}

} // namespace

Report examine() {
  Report report;
  const Finding cpu = checkCpu(), gpu = checkGpu();
  report.findings = {checkCompiler(), cpu, gpu, checkNvrtc(), checkCache()};
  report.runsOnCpu = cpu.ok;
  report.runsOnGpu = gpu.ok;
  return report;
}

json toJson(const Report &report) {
  json object{{"deftc", DEFT_VERSION}, {"usable", report.isUsable()}};
  for (const Finding &finding : report.findings) {
    json &entry = object[finding.name] = finding.details;
    entry["ok"] = finding.ok;
    entry["text"] = finding.text;
    if (!finding.mend.empty())
      entry["mend"] = finding.mend;
  }
  return object;
}

} // namespace deft::doctor
