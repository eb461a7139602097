#include "compiler/support/NearestName.h"
#include "tuner/workload/Recipes.h"

#include <algorithm>

namespace deft::workload {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error noPart(const std::string &part, const std::string &key, const std::vector<std::string> &parts) {
  return {ErrorCode::Usage,
          "parameter `" + part + "." + key + "` is for `" + part + "`, which is no part of this mixture",
          support::didYouMean(part, parts)};
}

Parameter partsParameter() {
  return {"parts", "few_shot+beam_search+token_tree+grpo+no_sharing",
          "workloads with + between them, each in its own tree"};
}

/// The parts in order; a finished part stays in the tree and has no more queries.
class Mixture : public Generator {
public:
  explicit Mixture(std::vector<std::unique_ptr<Generator>> parts) : parts_(std::move(parts)) {}

  void start(Editor &editor) override {
    for (auto &part : parts_)
      part->start(editor);
  }
  void advance(int step, Editor &editor) override {
    for (auto &part : parts_)
      if (step <= part->steps())
        part->advance(step, editor);
  }
  int steps() const override {
    int most = 0;
    for (const auto &part : parts_)
      most = std::max(most, part->steps());
    return most;
  }

private:
  std::vector<std::unique_ptr<Generator>> parts_;
};

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    pieces.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos)
      return pieces;
    begin = end + 1;
  }
}

} // namespace

Description mixtureDescription() {
  return {"mixture",
          "several workloads side by side in one forest",
          {partsParameter(), {"PART.KEY", "", "a parameter of one of the parts, like few_shot.branches=8"}}};
}

Result<std::unique_ptr<Generator>> makeMixture(const GivenParameters &given, std::uint64_t seed) {
  GivenParameters own;
  std::vector<std::pair<std::string, GivenParameters>> perPart;
  for (const auto &[key, value] : given) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos)
      own.emplace_back(key, value);
    else
      perPart.push_back({key.substr(0, dot), {{key.substr(dot + 1), value}}});
  }
  const auto parameters = Parameters::make("mixture", own, {partsParameter()});
  if (!parameters)
    return parameters.error();

  const std::vector<std::string> names = split(parameters->text("parts"), '+');
  for (const auto &[part, values] : perPart)
    if (std::find(names.begin(), names.end(), part) == names.end())
      return noPart(part, values.front().first, names);
  Random random(seed);
  std::vector<std::unique_ptr<Generator>> parts;
  for (const std::string &name : names) {
    std::vector<std::string> known;
    const Recipe *recipe = nullptr;
    for (const Recipe &candidate : generatedRecipes()) {
      known.push_back(candidate.description.name);
      if (candidate.description.name == name)
        recipe = &candidate;
    }
    if (recipe == nullptr)
      return Error{ErrorCode::Usage, "`" + name + "` cannot be a part of a mixture",
                   support::didYouMean(name, known)};
    GivenParameters values;
    for (const auto &[part, one] : perPart)
      if (part == name)
        values.push_back(one.front());
    auto part = makeFrom(*recipe, values, random.seed());
    if (!part)
      return part.error();
    parts.push_back(std::move(*part));
  }
  return std::unique_ptr<Generator>(std::make_unique<Mixture>(std::move(parts)));
}

} // namespace deft::workload
