#include "tools/deftc/RunInput.h"

#include "tools/deftc/SpecInput.h"

namespace deft::cli {

support::Result<jit::Program> openProgram(Context &context, std::string path, std::string variantName) {
  if (const std::size_t hash = path.rfind('#'); hash != std::string::npos && variantName.empty()) {
    variantName = path.substr(hash + 1);
    path.resize(hash);
  }
  if (jit::Program::isPackage(path))
    return jit::Program::fromPackage(path, variantName, kHowToChoose);
  auto spec = loadSpec(context, path);
  if (!spec)
    return spec.error();
  return jit::Program::fromSpec(*spec, variantName, kHowToChoose);
}

} // namespace deft::cli
