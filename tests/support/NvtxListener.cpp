#include <cstdio>
#include <cstdlib>
#include <string>

#include <nvtx3/nvToolsExt.h>

/// Stands where a profiler stands: NVTX loads it because NVTX_INJECTION64_PATH names it, and it appends a
/// line for each range of a domain to the file that DEFT_NVTX_HEARD names.

namespace {

void write(const std::string &line) {
  if (const char *path = std::getenv("DEFT_NVTX_HEARD"))
    if (std::FILE *file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", line.c_str());
      std::fclose(file);
    }
}

std::string nameOf(nvtxDomainHandle_t domain) { return *reinterpret_cast<const std::string *>(domain); }

nvtxDomainHandle_t NVTX_API createDomain(const char *name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name)); // for the process
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range) {
  write("push " + nameOf(domain) + " " + range->message.ascii);
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t domain) {
  write("pop " + nameOf(domain));
  return 0;
}

template <typename Function> NvtxFunctionPointer pointer(Function function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

} // namespace

extern "C" int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
      size <= NVTX_CBID_CORE2_DomainRangePop)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = pointer(createDomain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = pointer(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = pointer(pop);
  return 1;
}
