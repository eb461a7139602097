#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include "compiler/config/ConfigJson.h"
#include "tests/support/LatentTensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(EntryTest, ComesBackAsItWasWritten) {
  Entry entry = someEntry();
  entry.keepsDefault = true;
  entry.config.cost.stepUs = 0.75;
  entry.provenance.note = "over \"night\"";
  const auto back = entryFromJson(toJson(entry), DeviceKey::Kind::Gpu);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(areEqual(*back, entry));
  EXPECT_EQ(back->signature, entry.signature);
  EXPECT_EQ(back->treeClass, entry.treeClass);
  EXPECT_EQ(back->measurement, entry.measurement);
  EXPECT_EQ(back->provenance, entry.provenance);
  EXPECT_TRUE(back->keepsDefault);
  EXPECT_DOUBLE_EQ(back->measurement.gain(), 1.25);
}

TEST(EntryTest, OneForACpuIsOfItsFamilyWhateverItsFileSays) {
  const Entry entry = someEntry();
  const auto back = entryFromJson(toJson(entry), DeviceKey::Kind::Cpu);
  ASSERT_TRUE(back) << back.error().message;
  for (const config::PhaseConfig &phase : back->config.phases)
    EXPECT_EQ(phase.family, config::Family::Cpu);
  EXPECT_EQ(toJson(*back), toJson(entry)); // of family sm80, which files of CPUs name
}

TEST(EntryTest, ItIsFreshByTheKernelsThatAreForItsTensors) {
  Entry entry = someEntry();
  EXPECT_TRUE(entry.isFresh(DeviceKey::Kind::Gpu));
  EXPECT_FALSE(entry.isFresh(DeviceKey::Kind::Cpu));
  entry.signature.tensors = test::latentTensors();
  EXPECT_FALSE(entry.isFresh(DeviceKey::Kind::Gpu));
  entry.provenance.kernelHash = kernelHash(DeviceKey::Kind::Gpu, test::latentTensors());
  EXPECT_TRUE(entry.isFresh(DeviceKey::Kind::Gpu));
}

TEST(EntryTest, ASearchThatWasCutShortSaysSoAndNoneIsTakenForOneThatWas) {
  Entry entry = someEntry();
  EXPECT_FALSE(toJson(entry).contains("complete")); // as files had it before there were others
  EXPECT_TRUE(entryFromJson(toJson(entry), DeviceKey::Kind::Gpu)->isComplete);
  entry.isComplete = false;
  EXPECT_EQ(toJson(entry)["complete"], false);
  EXPECT_FALSE(entryFromJson(toJson(entry), DeviceKey::Kind::Gpu)->isComplete);
  json wrong = toJson(entry);
  wrong["complete"] = "no";
  EXPECT_EQ(entryFromJson(wrong, DeviceKey::Kind::Gpu).error().message,
            "`complete` is neither true nor false");
}

TEST(EntryTest, WhatIsForSomeTreesSaysForWhich) {
  Entry entry = someEntry();
  const Coordinates there{14, 6.1, 3, 2, 0};
  EXPECT_TRUE(entry.isFor(there)); // for all
  EXPECT_TRUE(entry.isFor({}));
  entry.onlyFor = {{9, 9, 9, 9, 1}, {14.05, 6.15, 3, 2, 0}};
  const auto back = entryFromJson(toJson(entry), DeviceKey::Kind::Gpu);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->onlyFor, entry.onlyFor);
  EXPECT_TRUE(back->isFor(there));
  EXPECT_FALSE(back->isFor({}));
  EXPECT_FALSE(back->isFor(Coordinates{14, 6.3, 3, 2, 0}));
  EXPECT_TRUE(back->isFor(Coordinates{14, 6.3, 3, 2, 0}, 2));
  EXPECT_FALSE(toJson(entry).contains("within"));
  entry.within = 0.04; // of which `there` is 0.05 away
  const auto narrow = entryFromJson(toJson(entry), DeviceKey::Kind::Gpu);
  ASSERT_TRUE(narrow) << narrow.error().message;
  EXPECT_FALSE(narrow->isFor(there));
  EXPECT_TRUE(narrow->isFor(there, 2));
  entry.onlyFor.clear();
  entry.keepsDefault = true;
  EXPECT_FALSE(entry.isFor(there)); // nothing was tuned
}

TEST(EntryTest, EveryMissingOrForeignOrWrongFieldIsAnError) {
  const json good = toJson(someEntry()).flatten();
  ASSERT_GT(good.size(), 20U);
  for (const auto &[path, value] : good.items()) {
    SCOPED_TRACE(path);
    json less = good;
    less.erase(path);
    EXPECT_FALSE(entryFromJson(less.unflatten(), DeviceKey::Kind::Gpu));
    json other = good;
    other[path] = value.is_string() ? json(7) : json("seven");
    EXPECT_FALSE(entryFromJson(other.unflatten(), DeviceKey::Kind::Gpu));
  }
  json more = toJson(someEntry());
  more["measurement"]["tuned_ms"] = 1;
  EXPECT_THAT(entryFromJson(more, DeviceKey::Kind::Gpu).error().message, HasSubstr("tuned_ms"));
}

TEST(EntryTest, WhatCannotBeIsAnErrorThatSaysWhat) {
  const auto errorWith = [](const char *pointer, const json &value) {
    json entry = toJson(someEntry());
    entry[json::json_pointer(pointer)] = value;
    const auto read = entryFromJson(entry, DeviceKey::Kind::Gpu);
    return read ? std::string("was read") : read.error().message;
  };
  EXPECT_EQ(errorWith("/class", "c2-t14-q6-s3-d2-f0"), "`c2-t14-q6-s3-d2-f0` is no class of version c1");
  EXPECT_EQ(errorWith("/signature", "q32"), "`q32` is no signature of a variant");
  EXPECT_EQ(errorWith("/measurement/tuned_us", 0), "measurement: `tuned_us` is not a number above 0");
  EXPECT_EQ(errorWith("/measurement/untuned_us", -1), "measurement: `untuned_us` is not a number above 0");
  EXPECT_EQ(errorWith("/measurement/spread", -0.1), "measurement: `spread` is not a number of at least 0");
  EXPECT_EQ(errorWith("/measurement/trees", 0), "measurement: `trees` is 0, less than 1");
  EXPECT_EQ(errorWith("/keeps_default", 1), "`keeps_default` is neither true nor false");
  for (const json &wrong : {json(7), json::array(), json{{1, 2, 3, 4}}, json{{1, 2, 3, 4, "5"}}})
    EXPECT_EQ(errorWith("/only_for", wrong), "`only_for` is no list of 1 to 64 places of 5 numbers");
  EXPECT_EQ(errorWith("/within", 0.05), "`within` needs `only_for`");
  for (const json &wrong : {json("near"), json(0), json(-0.1), json(0.2), json()})
    EXPECT_EQ(errorWith("/within", wrong), "`within` is not a number above 0 and of at most 0.1");
  EXPECT_THAT(errorWith("/config/partition", "nodes"), HasSubstr("nodes"));
}

} // namespace
} // namespace deft::config_cache
