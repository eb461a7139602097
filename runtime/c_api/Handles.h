#pragma once

#include <deft/attention.hpp>
#include <deft/deft.h>
#include <deft/gpu.hpp>
#include <deft/plan.hpp>
#include <deft/runtime.hpp>
#include <deft/sequence_tree.hpp>
#include <deft/tree.hpp>

#include <optional>
#include <string>

/// What the opaque handles are that several files look into.

struct deft_attention {
  deft::Attention attention;
};

struct deft_params {
  deft::Params params;
};

/// A tree of its own, or a look at that of sequences.
struct deft_tree {
  explicit deft_tree(deft::Tree tree) : own(std::move(tree)), seen(&*own) {}
  explicit deft_tree(const deft::Tree *of) : seen(of) {}
  deft_tree(const deft_tree &) = delete;
  deft_tree &operator=(const deft_tree &) = delete;

  std::optional<deft::Tree> own;
  const deft::Tree *seen;
};

struct deft_sequence_tree {
  explicit deft_sequence_tree(deft::SequenceTree of) : sequences(std::move(of)), tree(&sequences.tree()) {}

  deft::SequenceTree sequences;
  deft_tree tree;
};

struct deft_plan {
  deft::Plan plan;
};

struct deft_runtime {
  deft::Runtime runtime;
};

struct deft_gpu {
  deft::Gpu gpu;
};

struct deft_gpu_attention {
  explicit deft_gpu_attention(deft::GpuAttention of)
      : loaded(std::move(of)), attention{loaded.attention()}, gpu{loaded.gpu()} {}

  deft::GpuAttention loaded;
  deft_attention attention;
  deft_gpu gpu;
};

struct deft_gpu_plan {
  deft::GpuPlan plan;
  int gpu; ///< that it was made for
};

namespace deft::c {

/// A text that a caller may leave out.
inline std::string textOr(const char *text, const char *otherwise) { return text ? text : otherwise; }

inline const Params *paramsOf(const deft_params *params) { return params ? &params->params : nullptr; }

} // namespace deft::c
