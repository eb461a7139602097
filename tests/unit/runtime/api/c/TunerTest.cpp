#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/api/c/TestHandles.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace deft::c_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

class TunerTest : public testing::Test {
protected:
  deft_tune_options few() const {
    auto options = sized<deft_tune_options>();
    options.device = DEFT_TUNE_CPU;
    options.candidates = 3;
    options.threads = 1;
    options.note = "a test";
    return options;
  }
  TunerHandle tuner(const deft_tune_options &options) const {
    auto tuner = made<TunerHandle>(deft_tuner_make, attention.get(), &options);
    EXPECT_EQ(deft_tuner_add_tree(tuner.get(), tree.get(), nullptr, 0), DEFT_OK);
    return tuner;
  }

  module_cache::TestFolder folder;
  test::SetVariable cache{"DEFT_CACHE_DIR", folder.path("cache")};
  AttentionHandle attention = loadAttention();
  TreeHandle tree = twoBranches(40, 9);
};

/// What a listener hears.
struct Heard {
  int progress = 0;
  int mostMeasured = 0;
  std::vector<std::string> notes;
  int32_t cancels = 0;
};

deft_tune_listener listenerTo(Heard &heard) {
  return {.size = sizeof(deft_tune_listener),
          .context = &heard,
          .progress =
              [](void *context, const deft_tune_progress *progress) {
                auto *const heard = static_cast<Heard *>(context);
                ++heard->progress;
                heard->mostMeasured = std::max(heard->mostMeasured, progress->measured);
                EXPECT_STRNE(progress->stage, "");
              },
          .note = [](void *context,
                     const char *line) { static_cast<Heard *>(context)->notes.emplace_back(line); },
          .is_cancelled = [](void *context) { return static_cast<Heard *>(context)->cancels; }};
}

TEST_F(TunerTest, WhatItFindsIsWhatLaterPlansAreMadeWith) {
  const TunerHandle tuning = tuner(few());
  Heard heard;
  const deft_tune_listener listener = listenerTo(heard);
  const auto summary = made<Owned<deft_tune_summary>>(deft_tuner_run, tuning.get(), &listener);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->end, DEFT_TUNE_COMPLETE);
  EXPECT_GT(heard.progress, 3);
  EXPECT_EQ(heard.mostMeasured, 3);
  EXPECT_THAT(heard.notes, Contains(HasSubstr("combinations")));
  ASSERT_EQ(summary->class_count, 1U);
  const deft_tuned_class &one = *summary->classes[0];
  EXPECT_EQ(one.is_done, 1);
  EXPECT_EQ(one.candidates, 3);
  EXPECT_THAT(one.config, HasSubstr("\"partition\""));
  EXPECT_THAT(summary->config_file, HasSubstr(folder.path("cache")));

  auto options = sized<deft_plan_options>();
  options.workers = 1;
  const AttentionHandle later = loadAttention();
  const auto plan = made<PlanHandle>(deft_plan_make, later.get(), tree.get(), &options);
  const auto choice = made<Owned<deft_config_choice>>(deft_plan_get_choice, plan.get());
  EXPECT_STREQ(choice->rule, "exact");
  EXPECT_STREQ(choice->tree_class, one.tree_class);
}

TEST_F(TunerTest, ShardsBecomeOneResult) {
  const std::string journals[] = {folder.path("0.jsonl"), folder.path("1.jsonl")};
  const TreeHandle larger = twoBranches(400, 9);
  for (int32_t shard = 0; shard < 2; ++shard) {
    deft_tune_options options = few();
    options.shard_count = 2;
    options.shard = shard;
    options.journal = journals[shard].c_str();
    const TunerHandle tuning = tuner(options);
    ASSERT_EQ(deft_tuner_add_tree(tuning.get(), larger.get(), nullptr, 0), DEFT_OK);
    const auto summary = made<Owned<deft_tune_summary>>(deft_tuner_run, tuning.get(), nullptr);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->class_count, 1U);
    EXPECT_STREQ(summary->config_file, "");
  }
  const char *const paths[] = {journals[1].c_str(), journals[0].c_str()};
  const auto summary =
      made<Owned<deft_tune_summary>>(deft_tune_merge_shards, paths, std::size_t{2}, nullptr, 0);
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->class_count, 2U);
  EXPECT_EQ(summary->classes[0]->is_done + summary->classes[1]->is_done, 2);
  EXPECT_EQ(summary->warning_count, 0U);
  EXPECT_GT(summary->measured, 0);
  EXPECT_THAT(summary->config_file, HasSubstr(folder.path("cache")));

  deft_tune_summary *none = nullptr;
  EXPECT_EQ(deft_tune_merge_shards(paths, 1, nullptr, 0, &none), DEFT_ENVIRONMENT);
  EXPECT_THAT(deft_error_text(), HasSubstr("there is no journal of shard 0/2"));
  const auto partly =
      made<Owned<deft_tune_summary>>(deft_tune_merge_shards, paths, std::size_t{1}, nullptr, 1);
  ASSERT_TRUE(partly);
  EXPECT_EQ(partly->warning_count, 1U);
  const char *const nothing[] = {nullptr};
  EXPECT_EQ(deft_tune_merge_shards(nothing, 1, nullptr, 0, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("journals[0] is null"));
  EXPECT_EQ(deft_tune_merge_shards(nullptr, 1, nullptr, 0, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("journals is null"));
  EXPECT_EQ(deft_tune_merge_shards(nullptr, 0, nullptr, 0, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("there is no journal to merge"));
  EXPECT_EQ(deft_tune_merge_shards(paths, 2, nullptr, 0, nullptr), DEFT_USAGE);
}

TEST_F(TunerTest, TheCallerMayEndIt) {
  const TunerHandle tuning = tuner(few());
  Heard heard;
  heard.cancels = 1;
  const deft_tune_listener listener = listenerTo(heard);
  const auto summary = made<Owned<deft_tune_summary>>(deft_tuner_run, tuning.get(), &listener);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->end, DEFT_TUNE_CANCELLED);
}

TEST_F(TunerTest, WhatACallbackThrowsDoesNotPass) {
  const TunerHandle tuning = tuner(few());
  auto listener = sized<deft_tune_listener>();
  listener.is_cancelled = [](void *) -> int32_t { throw std::runtime_error("not mine"); };
  deft_tune_summary *summary = nullptr;
  EXPECT_EQ(deft_tuner_run(tuning.get(), &listener, &summary), DEFT_INTERNAL);
  EXPECT_EQ(summary, nullptr);
}

TEST_F(TunerTest, WrongOptionsAndNamesAreNamed) {
  deft_tune_options options = few();
  options.device = 99;
  deft_tuner *none = nullptr;
  EXPECT_EQ(deft_tuner_make(attention.get(), &options, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("device is 99"));
  const TunerHandle tuning = tuner(few());
  EXPECT_EQ(deft_tuner_add_workload(tuning.get(), "few_shots"), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("few_shot"));
  EXPECT_EQ(deft_tuner_add_workload(tuning.get(), "few_shot:prompt=60,branches=3,step=2"), DEFT_OK);
  const AttentionHandle other = loadAttention();
  const auto params = made<ParamsHandle>(deft_params_make, other.get());
  EXPECT_EQ(deft_tuner_set_params(tuning.get(), params.get()), DEFT_USAGE);
}

TEST_F(TunerTest, FamiliesEndWithNull) {
  std::vector<std::string> families;
  for (int32_t i = 0; const char *family = deft_tuner_family(i); ++i)
    families.emplace_back(family);
  EXPECT_THAT(families, Contains("few_shot"));
  EXPECT_EQ(deft_tuner_family(-1), nullptr);
}

} // namespace
} // namespace deft::c_test
