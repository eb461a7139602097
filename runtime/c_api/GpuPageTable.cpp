#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Handles.h"

#include <span>

using namespace deft::c;

struct deft_gpu_page_table {
  deft::GpuPageTable table;
};

deft_status deft_gpu_page_table_make(const deft_gpu *gpu, int32_t pages, deft_gpu_page_table **table) {
  return make(__func__, {{"gpu", gpu}}, table, [&] { return deft::GpuPageTable::make(gpu->gpu, pages); });
}

void deft_gpu_page_table_destroy(deft_gpu_page_table *table) { delete table; }

deft_status deft_gpu_page_table_upload(deft_gpu_page_table *table, const deft_sequence_tree *sequences,
                                       deft_gpu_stream stream) {
  return call(__func__, {{"table", table}, {"sequences", sequences}},
              [&] { return table->table.upload(sequences->sequences, stream); });
}

deft_status deft_gpu_page_table_upload_entries(deft_gpu_page_table *table, int32_t first,
                                               const int32_t *entries, size_t count, deft_gpu_stream stream) {
  return call(__func__, {{"table", table}, {"entries", entries}},
              [&] { return table->table.upload(std::span(entries, count), stream, first); });
}

const int32_t *deft_gpu_page_table_data(const deft_gpu_page_table *table) {
  return ask<const int32_t *>(__func__, {"table", table}, nullptr, [&] { return table->table.data(); });
}
