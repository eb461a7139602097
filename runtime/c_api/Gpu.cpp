#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Made.h"
#include "runtime/c_api/Sized.h"

using namespace deft::c;

namespace {

/// But the texts.
deft_gpu_facts numbersOf(const deft::GpuFacts &facts) {
  deft_gpu_facts known{};
  known.size = sizeof known;
  known.memory_bytes = facts.memoryBytes;
  known.index = facts.index;
  known.capability_major = facts.major;
  known.capability_minor = facts.minor;
  known.multiprocessors = facts.multiprocessors;
  return known;
}

} // namespace

deft_status deft_gpu_list(deft_gpus **gpus) {
  clearPlace(gpus);
  return call(__func__, {{"gpus", gpus}}, [&]() -> deft::Result<void> {
    const auto all = deft::Gpu::list();
    if (!all)
      return all.error();
    Made<deft_gpus> made;
    auto **const each = made.add<deft_gpu_facts *>(all->size());
    for (std::size_t i = 0; i < all->size(); ++i) {
      each[i] = made.add<deft_gpu_facts>();
      *each[i] = numbersOf((*all)[i]);
      each[i]->name = made.text((*all)[i].name);
      each[i]->architecture = made.text((*all)[i].architecture);
    }
    made->size = sizeof(deft_gpus);
    made->count = all->size();
    made->gpus = each;
    *gpus = made.release();
    return {};
  });
}

deft_status deft_gpu_open(int32_t index, deft_gpu **gpu) {
  return make(__func__, {}, gpu, [&] { return deft::Gpu::open(index); });
}

void deft_gpu_destroy(deft_gpu *gpu) { delete gpu; }

deft_status deft_gpu_get_facts(const deft_gpu *gpu, deft_gpu_facts *facts) {
  return call(__func__, {{"gpu", gpu}, {"facts", facts}}, [&] {
    const deft::GpuFacts &own = gpu->gpu.facts();
    deft_gpu_facts known = numbersOf(own);
    known.name = own.name.c_str();
    known.architecture = own.architecture.c_str();
    return writeSized("deft_gpu_facts", known, facts);
  });
}
