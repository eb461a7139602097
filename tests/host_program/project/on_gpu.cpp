// Attention on a GPU in a program that knows its driver and nothing of deftc but the installed library: a
// graph of one layer, replayed while branches grow. Every value in the cache is 1, so every output must be 1.
#include <deft/deft.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

/// The little of the driver that a program needs for memory, a stream and a graph; most have the CUDA
/// runtime.
struct Driver {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);

  template <typename... Args> void call(const char *name, Args... args) const {
    const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
    if (!function || function(args...) != 0) {
      std::fprintf(stderr, "%s failed\n", name);
      std::exit(1);
    }
  }

  /// Memory of the GPU that holds these bytes.
  void *upload(const void *from, std::size_t bytes) const {
    unsigned long long address = 0;
    call("cuMemAlloc_v2", &address, bytes);
    write(reinterpret_cast<void *>(address), from, bytes);
    return reinterpret_cast<void *>(address);
  }
  void write(void *to, const void *from, std::size_t bytes) const {
    call("cuMemcpyHtoDAsync_v2", reinterpret_cast<unsigned long long>(to), from, bytes, stream);
    call("cuStreamSynchronize", stream);
  }
  void read(void *to, void *from, std::size_t bytes) const {
    call("cuMemcpyDtoHAsync_v2", to, reinterpret_cast<unsigned long long>(from), bytes, stream);
    call("cuStreamSynchronize", stream);
  }

  void *stream = nullptr;
};

constexpr char kSpec[] = "attention mine { query_heads = 4; kv_heads = 2; head_dim = 64; }";

} // namespace

int main(int argc, char **argv) try {
  const auto found = deft::Gpu::list();
  if (!found) {
    std::printf("skipped: %s\n", found.error().message.c_str());
    const char *required = std::getenv("DEFT_REQUIRE_GPU");
    return required && std::strcmp(required, "1") == 0 ? 1 : 77;
  }
  const auto gpu = deft::Gpu::open(0).value();
  const auto attention = deft::GpuAttention::load(
                             gpu, (argc > 1 ? deft::loadPackage(argv[1]) : deft::compileSpec(kSpec)).value())
                             .value();

  Driver driver;
  void *context = nullptr;
  driver.call("cuDevicePrimaryCtxRetain", &context, 0);
  driver.call("cuCtxSetCurrent", context);
  driver.call("cuStreamCreate", &driver.stream, 1u);

  auto sequences = deft::SequenceTree::make({attention.attention().pageSize(), 64}).value();
  const int prompt = sequences.addRoot(100).value();
  std::vector<int> branches;
  for (int i = 0; i < 3; ++i) {
    branches.push_back(sequences.addChild(prompt, 5 + i).value());
    sequences.addQuery(branches.back()).value();
  }
  const std::uint16_t one = 0x3f80; // in bf16
  std::vector<std::uint16_t> q(3 * 4 * 64, one), cache(64 * 16 * 2 * 64, one), out(q.size());
  void *const qOnGpu = driver.upload(q.data(), 2 * q.size());
  void *const kOnGpu = driver.upload(cache.data(), 2 * cache.size());
  void *const vOnGpu = driver.upload(cache.data(), 2 * cache.size());
  void *const outOnGpu = driver.upload(out.data(), 2 * out.size());

  auto table = deft::GpuPageTable::make(gpu, 256).value();
  auto plan = deft::GpuPlan::make(attention, sequences.tree()).value();
  plan.reserve({.queries = 3, .items = 100, .runs = 300, .partials = 300}).value();
  table.upload(sequences, driver.stream).value();
  plan.upload(driver.stream).value();

  void *graph = nullptr, *executable = nullptr;
  driver.call("cuStreamBeginCapture_v2", driver.stream, 1);
  plan.run(attention, {.q = qOnGpu, .k = kOnGpu, .v = vOnGpu, .pageTable = table.data()}, {.out = outOnGpu},
           driver.stream)
      .value();
  driver.call("cuStreamEndCapture", driver.stream, &graph);
  driver.call("cuGraphInstantiateWithFlags", &executable, graph, 0ull);

  bool isRight = true;
  for (int step = 0; step < 20; ++step) {
    for (const int branch : branches)
      isRight = sequences.append(branch).value().empty() && isRight; // no copies to make
    plan.advance(sequences.tree()).value();
    table.upload(sequences, driver.stream).value();
    plan.upload(driver.stream).value();
    std::fill(out.begin(), out.end(), std::uint16_t{0});
    driver.write(outOnGpu, out.data(), 2 * out.size());
    driver.call("cuGraphLaunch", executable, driver.stream);
    driver.read(out.data(), outOnGpu, 2 * out.size());
    isRight = isRight && out == std::vector<std::uint16_t>(out.size(), one);
  }
  plan.checkReplays().value();
  std::printf("%s: %s\n", gpu.facts().name.c_str(), isRight ? "every output is 1" : "WRONG");
  return isRight ? 0 : 1;
} catch (const deft::BadResult &bad) {
  std::fprintf(stderr, "error: %s\n", bad.what());
  return 1;
}
