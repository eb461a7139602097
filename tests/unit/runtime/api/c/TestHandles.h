#pragma once

#include <deft/deft.h>

#include <gtest/gtest.h>

#include <memory>

/// Handles of C that end with their scope, and the tree and attention that most tests begin with.
namespace deft::c_test {

template <auto destroy> struct Destroy {
  template <typename T> void operator()(T *value) const { destroy(value); }
};
using AttentionHandle = std::unique_ptr<deft_attention, Destroy<deft_attention_destroy>>;
using ParamsHandle = std::unique_ptr<deft_params, Destroy<deft_params_destroy>>;
using TreeHandle = std::unique_ptr<deft_tree, Destroy<deft_tree_destroy>>;
using SequencesHandle = std::unique_ptr<deft_sequence_tree, Destroy<deft_sequence_tree_destroy>>;
using PlanHandle = std::unique_ptr<deft_plan, Destroy<deft_plan_destroy>>;
using RuntimeHandle = std::unique_ptr<deft_runtime, Destroy<deft_runtime_destroy>>;
using TunerHandle = std::unique_ptr<deft_tuner, Destroy<deft_tuner_destroy>>;
template <typename T> using Owned = std::unique_ptr<T, Destroy<deft_free>>;

/// What a call makes into its last argument; null and a failure of the test where it does not.
template <typename Handle, typename Call, typename... Args> Handle made(Call *call, Args... args) {
  typename Handle::pointer value = nullptr;
  EXPECT_EQ(call(args..., &value), DEFT_OK) << deft_error_text();
  return Handle(value);
}

/// All default.
template <typename T> T sized() {
  T value = {};
  value.size = sizeof value;
  return value;
}

#ifdef DEFT_TEST_PACKAGE
inline AttentionHandle loadAttention() {
  return made<AttentionHandle>(deft_attention_load_package, DEFT_TEST_PACKAGE, nullptr);
}
#endif

/// A prompt (node 0) and two branches, one after the other in the cache, with a query each.
inline TreeHandle twoBranches(int promptTokens, int branchTokens) {
  TreeHandle tree = made<TreeHandle>(deft_tree_make);
  EXPECT_EQ(deft_tree_add_root(tree.get(), promptTokens, 0, nullptr), DEFT_OK);
  for (int branch = 0; branch < 2; ++branch) {
    int32_t node = -1;
    EXPECT_EQ(deft_tree_add_child(tree.get(), 0, branchTokens, promptTokens + branch * branchTokens, &node),
              DEFT_OK);
    EXPECT_EQ(deft_tree_add_query(tree.get(), node, DEFT_WHOLE, nullptr), DEFT_OK);
  }
  return tree;
}

} // namespace deft::c_test
