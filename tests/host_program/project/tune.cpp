// Finds the fastest config for a kind of tree on this machine, and makes a plan with it.
#include <deft/deft.hpp>

#include <cstdio>

int main(int argc, char **argv) {
  const char *package = argc > 1 ? argv[1] : "my_model.deftpkg";
  auto tuner = deft::Tuner::make(deft::loadPackage(package).value(), {.budgetSeconds = 5}).value();

  deft::Tree tree; // a prompt of 300 tokens with four branches
  const int prompt = tree.addRoot(300, 0).value();
  for (int i = 0; i < 4; ++i)
    (void)tree.addQuery(tree.addChild(prompt, 20, 320 + 32 * i).value()).value();
  tuner.addTree(tree).value();

  const auto summary = tuner.run({.note = [](const std::string &line) { std::puts(line.c_str()); }}).value();
  for (const deft::TunedClass &one : summary.classes)
    std::printf("%s: %.2f times as fast as untuned\n", one.treeClass.c_str(), one.gain);
  const auto plan = deft::Plan::make(deft::loadPackage(package).value(), tree).value();
  std::printf("the plan's config is by rule %s\n", plan.choice().rule.c_str());
  return plan.choice().rule == "heuristic" ? 1 : 0; // what a budget cuts short counts as near by
}
