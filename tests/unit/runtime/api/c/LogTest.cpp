#include "tests/unit/runtime/api/c/TestHandles.h"

#include <string>
#include <vector>

using namespace deft::c_test;

namespace {

struct Told {
  std::vector<std::string> kinds, texts;
};

void note(void *context, const deft_log_message *message) {
  auto *told = static_cast<Told *>(context);
  EXPECT_EQ(message->size, sizeof(deft_log_message));
  told->kinds.emplace_back(message->kind_name);
  told->texts.emplace_back(message->text);
}

TEST(CLogTest, TellsAListenerUntilThereIsNone) {
  const AttentionHandle attention = loadAttention();
  const TreeHandle tree = twoBranches(40, 6);
  Told told;
  auto listener = sized<deft_log_listener>();
  listener.context = &told;
  listener.message = note;
  ASSERT_EQ(deft_set_log(&listener), DEFT_OK) << deft_error_text();
  listener = {}; // it was copied
  (void)made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  ASSERT_EQ(deft_set_log(nullptr), DEFT_OK);
  (void)made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), nullptr);
  EXPECT_EQ(told.kinds, std::vector<std::string>{"plan"});
  ASSERT_EQ(told.texts.size(), 1u);
  EXPECT_NE(told.texts[0].find("2 queries"), std::string::npos) << told.texts[0];
}

TEST(CLogTest, AStructWithoutASizeIsRefused) {
  deft_log_listener listener = {};
  EXPECT_EQ(deft_set_log(&listener), DEFT_USAGE);
}

TEST(CLogTest, NvtxSaysWhetherThereIsAny) { EXPECT_EQ(deft_set_nvtx(1), deft_set_nvtx(0)); }

} // namespace
