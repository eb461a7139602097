#include "runtime/api/Checks.h"
#include "runtime/api/Gpu.h"
#include "runtime/api/SequenceTree.h"
#include "runtime/exec/cuda/DevicePageTable.h"

#include <limits>
#include <span>

using namespace deft::api;

struct deft_gpu_page_table {
  std::unique_ptr<deft::exec::DevicePageTable> table;
};

deft_status deft_gpu_page_table_make(const deft_gpu *gpu, int32_t pages, deft_gpu_page_table **table) {
  return make({{"gpu", gpu}}, table, [&]() -> Result<std::unique_ptr<deft_gpu_page_table>> {
    if (auto checked = checkRange("pages", pages, 0, std::numeric_limits<int32_t>::max()); !checked)
      return checked.error();
    auto made = deft::exec::DevicePageTable::create(gpu->device, pages);
    if (!made)
      return made.error();
    return std::make_unique<deft_gpu_page_table>(std::move(*made));
  });
}

void deft_gpu_page_table_destroy(deft_gpu_page_table *table) { delete table; }

deft_status deft_gpu_page_table_upload(deft_gpu_page_table *table, const deft_sequence_tree *sequences,
                                       deft_gpu_stream stream) {
  return call({{"table", table}, {"sequences", sequences}},
              [&] { return table->table->upload(sequences->sequences.pool(), streamOf(stream)); });
}

deft_status deft_gpu_page_table_upload_entries(deft_gpu_page_table *table, int32_t first,
                                               const int32_t *entries, size_t count, deft_gpu_stream stream) {
  return call({{"table", table}}, [&]() -> Result<void> {
    if (auto checked = checkArray("entries", entries, count); !checked)
      return checked;
    return table->table->upload(std::span(entries, count), first, streamOf(stream));
  });
}

const int32_t *deft_gpu_page_table_data(const deft_gpu_page_table *table) {
  return ask<const int32_t *>({"table", table}, nullptr, [&] { return table->table->data(); });
}
