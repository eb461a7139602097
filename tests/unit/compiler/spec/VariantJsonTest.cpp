#include "compiler/spec/VariantJson.h"

#include "tests/unit/compiler/spec/SpecTesting.h"

#include <nlohmann/json.hpp>

#include <set>

namespace deft::spec::testing {
namespace {

const char *const kRich =
    "attention rich { query_heads = 12; kv_heads = 4; head_dim = 96; dtype = f16; output = bf16 with lse;"
    "  kv_cache = paged(page_size = 8, order = hnd); scale = 0.1;"
    "  param cap : f32 = 30.0; param n : i32; param slope : f32[query_heads]; param rate : i32[kv_heads];"
    "  mask = tree && (kv_pos > q_pos - n || head % 3 == 0 && !(depth < 2));"
    "  score = kv_pos == 0 ? -inf : cap * tanh(s / cap) + slope[head] * rate[kv_head] - query;"
    "  schedule { partition = tune(union, node); chunk = 64;"
    "    phase wide when rows > 8 { tile_q = tune(16, 32); warps = 2; } phase rest otherwise { stages = 2; "
    "tile_kv = 32; } } }";

nlohmann::json richJson() { return nlohmann::json::parse(toJson(compile(kRich).only()).dump()); }

TEST(VariantJsonTest, RoundTripChangesNothing) {
  for (const std::string &spec :
       {std::string(kRich), attention(""),
        attention("kv_cache = contiguous; normalize = sigmoid(1 - q_pos);"),
        attention("mask = false; schedule { }"),
        attention("query = x_half * x_rms + dim; output = sin(x) * cos(q_pos);"),
        attention("param doc : i32[tokens]; param own : f32[queries];"
                  "mask = doc[token] == own[query]; query = x * own[query];"),
        attention("param g : f32[kv_heads]; key = x_pair * cos(pos) * g[kv_head];")}) {
    Compiled compiled = compile(spec);
    std::string text = toJson(compiled.only()).dump();
    auto read = variantFromJson(nlohmann::json::parse(text));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(toJson(*read).dump(), text);
  }
}

TEST(VariantJsonTest, ReadsEveryMember) {
  auto read = variantFromJson(richJson());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->name, "rich");
  EXPECT_EQ(read->cache.order, PageOrder::Hnd);
  EXPECT_EQ(read->params.at(3).shape, Param::Shape::PerKvHead);
  EXPECT_EQ(describe(*read, *read->score),
            "(select:f32 (eq:bool kv_pos 0) -inff (sub:f32 (add:f32 (mul:f32 cap (tanh:f32 (div:f32 s cap))) "
            "(mul:f32 slope[] (to_f32:f32 rate[]))) (to_f32:f32 query)))");
  EXPECT_EQ(read->schedule->phases.at(0).rowsAbove, 8);
  EXPECT_EQ(read->schedule->phases.at(1).stages->values, std::vector<int>{2});
}

TEST(VariantJsonTest, ATokensElementIsReadByMasksAndScoresAlone) {
  const auto json = nlohmann::json::parse(
      toJson(compile(attention("param doc : f32[tokens]; score = s * doc[token]; query = x + 1;")).only())
          .dump());
  ASSERT_TRUE(variantFromJson(json).ok());
  for (const char *root : {"query", "sink", "output"}) {
    nlohmann::json wrong = json;
    wrong[root] = json["score"];
    const auto read = variantFromJson(wrong);
    ASSERT_FALSE(read.ok()) << root;
    EXPECT_EQ(read.error().message, "`" + std::string(root) + "` reads a name that it may not");
  }
}

TEST(VariantJsonTest, AQuerysElementIsNoLogitOfASink) {
  auto json = nlohmann::json::parse(
      toJson(compile(attention("param own : f32[queries]; score = s + own[query];")).only()).dump());
  ASSERT_TRUE(variantFromJson(json).ok());
  for (std::size_t i = 0; i < json["exprs"].size(); ++i)
    if (json["exprs"][i]["op"] == "param_element")
      json["sink"] = i;
  EXPECT_FALSE(variantFromJson(json).ok());
}

/// Walks all values of a JSON tree, with a way to put another in each one's place.
void forEachValue(nlohmann::json &root, nlohmann::json &value,
                  const std::function<void(nlohmann::json &)> &visit) {
  visit(value);
  if (value.is_structured())
    for (auto &item : value)
      forEachValue(root, item, visit);
}

TEST(VariantJsonTest, AnyValueReplacedIsAnErrorOrAVariantThatHolds) {
  nlohmann::json root = richJson();
  const std::vector<nlohmann::json> wrongs = {nullptr,
                                              -1,
                                              0,
                                              1,
                                              7,
                                              1000000007,
                                              1e30,
                                              "",
                                              "x",
                                              "bool",
                                              "f32",
                                              "neg",
                                              true,
                                              nlohmann::json::array(),
                                              nlohmann::json::object()};
  int rejected = 0, accepted = 0;
  forEachValue(root, root, [&](nlohmann::json &value) {
    nlohmann::json original = value;
    for (const nlohmann::json &wrong : wrongs) {
      value = wrong;
      auto read = variantFromJson(root);
      read.ok() ? ++accepted : ++rejected;
      if (!read.ok()) {
        EXPECT_FALSE(read.error().message.empty());
      } else {
        auto again = variantFromJson(nlohmann::json::parse(toJson(*read).dump()));
        EXPECT_TRUE(again.ok());
      }
    }
    value = original;
  });
  EXPECT_GT(rejected, 1000);
  EXPECT_GT(accepted, 10);
}

TEST(VariantJsonTest, TensorsAreReadEachForItself) {
  Variant variant = compile(kRich).only();
  variant.tensors = {{DType::BF16, 576}, {DType::F16, 576}, {DType::F16, 512}, {DType::BF16, 512}, true};
  const auto read = variantFromJson(nlohmann::json::parse(toJson(variant).dump()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->tensors, variant.tensors);
  Variant changed = compile(attention("key = 2 * x;")).only();
  changed.tensors.valueInKey = true;
  EXPECT_EQ(variantFromJson(nlohmann::json::parse(toJson(changed).dump())).error().message,
            "`key` would change the V that lies in K");
  variant.tensors.v.dim = 96;
  const auto wrong = variantFromJson(nlohmann::json::parse(toJson(variant).dump()));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "v has dim 96 and out 512, which is a sum of it");
}

TEST(VariantJsonTest, ASinkIsReadBackAndCheckedAgain) {
  const Variant variant =
      compile(
          attention("param a : f32[query_heads]; normalize = softmax with sink(a[head]); score = s * q_pos;"))
          .only();
  nlohmann::json json = nlohmann::json::parse(toJson(variant).dump());
  const auto read = variantFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sink, variant.sink);
  json["sink"] = *variant.score;
  EXPECT_EQ(variantFromJson(json).error().message, "`sink` reads a name that it may not");
  json["sink"] = *variant.sink;
  json["normalize"] = "sigmoid";
  EXPECT_EQ(variantFromJson(json).error().message, "sigmoid has no sink");
}

TEST(VariantJsonTest, ABoundIsWrittenWhereItIsNotTheUsualOne) {
  EXPECT_FALSE(toJson(compile(attention("mask = tree;")).only()).contains("bound"));
  nlohmann::json json =
      nlohmann::json::parse(toJson(compile(attention("mask = path && kv_pos > 3;")).only()).dump());
  const auto read = variantFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->bound, MaskBound::Path);
  json["select"] = nlohmann::json::parse(
      R"({"budget": {"values": [64], "tunable": false}, "by": "query", "keep_first": 0, "keep_last": 0})");
  EXPECT_EQ(variantFromJson(json).error().message, "an attention bound by `path` selects nothing");
  json["bound"] = "root";
  EXPECT_FALSE(variantFromJson(json).ok());
}

TEST(VariantJsonTest, ASelectionIsReadBackAndCheckedAgain) {
  const Variant variant =
      compile(attention("select { budget = tune(64, 16); by = query_head; keep_first = 1; keep_last = 2; }"))
          .only();
  nlohmann::json json = nlohmann::json::parse(toJson(variant).dump());
  const auto read = variantFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read->select);
  EXPECT_EQ(read->select->budget.values, (std::vector<int>{64, 16}));
  EXPECT_EQ(read->select->by, SelectBy::QueryHead);
  EXPECT_EQ(read->select->keepFirst, 1);
  EXPECT_EQ(read->select->keepLast, 2);
  json["select"]["keep_last"] = 16;
  EXPECT_EQ(variantFromJson(json).error().message, "`budget` is below `keep_first` + `keep_last`");
  json["select"].erase("budget");
  EXPECT_FALSE(variantFromJson(json).ok());
}

TEST(VariantJsonTest, ListsByCallerAreReadBackAndCheckedAgain) {
  const Variant variant = compile(attention("score = s + head; select { budget = 16; by = caller; }")).only();
  nlohmann::json json = nlohmann::json::parse(toJson(variant).dump());
  const auto read = variantFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->readsGivenLists());
  json["select"]["keep_last"] = 1;
  EXPECT_EQ(variantFromJson(json).error().message, "lists by `caller` keep no tokens");
  json = nlohmann::json::parse(
      toJson(compile(attention("score = s + kv_pos; select { budget = 16; }")).only()).dump());
  json["select"]["by"] = "caller";
  EXPECT_EQ(variantFromJson(json).error().message, "lists by `caller` have no positions of tokens");
}

TEST(VariantJsonTest, AnyMemberLeftOutIsAnErrorUnlessItIsOptional) {
  std::set<std::string> optional = {"mask", "score", "sigmoid_bias", "schedule"};
  nlohmann::json whole = richJson();
  for (auto &[key, value] : whole.items()) {
    nlohmann::json part = whole;
    part.erase(key);
    EXPECT_EQ(variantFromJson(part).ok(), optional.count(key) == 1) << key;
  }
}

TEST(VariantJsonTest, ParametersOfOneNameAreRefused) {
  nlohmann::json json = richJson();
  json["params"][1]["name"] = json["params"][0]["name"];
  const auto read = variantFromJson(json);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "two parameters are named `cap`");
}

TEST(VariantJsonTest, AnotherVersionSaysSo) {
  nlohmann::json json = richJson();
  json["version"] = 2;
  auto read = variantFromJson(json);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "the variant has version 2, this deftc reads version 3");
}

// Rules P6, H9.
TEST(VariantJsonTest, FactorsOfValuesAreKept) {
  const Variant variant = compile(attention("param vs : f32[tokens, kv_heads]; param gate : f32[query_heads];"
                                            "value = x * vs[token, kv_head]; score = s * gate[head];"))
                              .only();
  nlohmann::json json = nlohmann::json::parse(toJson(variant).dump());
  const auto read = variantFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->params[0].shape, Param::Shape::PerTokenAndHead);
  EXPECT_EQ(read->valueFactor, variant.valueFactor);
  json["value_factor"] = json["score"];
  EXPECT_EQ(variantFromJson(json).error().message, "`value_factor` reads a name that it may not");
}

// Rule H4.
TEST(VariantJsonTest, HooksOfElementsAreCheckedAgain) {
  nlohmann::json json = nlohmann::json::parse(
      toJson(compile(attention("query = x_half; output = 2 * x; score = 2 * s;")).only()).dump());
  ASSERT_TRUE(variantFromJson(json).ok());
  for (const auto &[key, from] :
       {std::pair("output", "query"), std::pair("score", "query"), std::pair("query", "score"),
        std::pair("output", "score"), std::pair("sink", "output")}) {
    nlohmann::json wrong = json;
    wrong[key] = json[from];
    EXPECT_EQ(variantFromJson(wrong).error().message,
              "`" + std::string(key) + "` reads a name that it may not");
  }
}

} // namespace
} // namespace deft::spec::testing
