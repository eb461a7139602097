#include "runtime/config_cache/Provenance.h"

#include "compiler/kernels/Family.h"
#include "compiler/support/Hash.h"
#include "runtime/nvrtc/Templates.h"
#include "runtime/tree/StrictJson.h"
#include "templates/deft/cpu_abi.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <utility>

namespace deft::config_cache {

using nlohmann::json;
using support::Result;

json toJson(const Provenance &provenance) {
  return {{"deftc_version", provenance.deftcVersion},
          {"kernel_hash", provenance.kernelHash},
          {"date", provenance.date},
          {"driver", provenance.driver},
          {"note", provenance.note}};
}

Result<Provenance> provenanceFromJson(const json &object) {
  if (auto checked =
          tree::checkKeys(object, "provenance", {"deftc_version", "kernel_hash", "date", "driver", "note"});
      !checked)
    return checked.error();
  Provenance provenance;
  const auto read = [&](const char *key, std::string &out) -> Result<void> {
    auto text = tree::readString(object[key], std::string("provenance ") + key);
    if (!text)
      return text.error();
    out = std::move(*text);
    return {};
  };
  for (const auto &done :
       {read("deftc_version", provenance.deftcVersion), read("kernel_hash", provenance.kernelHash),
        read("date", provenance.date), read("driver", provenance.driver), read("note", provenance.note)})
    if (!done)
      return done.error();
  return provenance;
}

std::string codeOf(std::string_view text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "//")
      at = std::min(text.find('\n', at), text.size());
    else if (const char c = text[at++]; std::isspace(static_cast<unsigned char>(c)) == 0)
      code += c;
  }
  return code;
}

namespace {

constexpr std::size_t kDigits = 16;

/// Of the code of all device headers that a text includes, directly or through others.
std::string hashOfReached(const std::string &text) {
  support::Sha256 hash;
  for (const nvrtc::TemplateHeader &header : nvrtc::reachedHeaders(text)) {
    const std::string code = codeOf(header.text);
    hash.update(std::string(header.name) + " " + std::to_string(code.size()) + "\n");
    hash.update(code);
  }
  return hash.finishHex().substr(0, kDigits);
}

std::string includeOf(const kernels::Family &family) {
  return "#include \"deft/attend_" + std::string(family.name) + ".cuh\"\n";
}

constexpr const char *kIncludeMerge = "#include \"deft/merge.cuh\"\n";

std::string hashOfKernels(DeviceKey::Kind kind, const spec::Tensors &tensors) {
  if (kind == DeviceKey::Kind::Cpu) {
    // The code generator has no text to hash where it is not built in; packages carry its code by this
    // version.
    support::Sha256 hash;
    hash.update("cpu kernels " + std::to_string(abi::kCpuKernelVersion) + " of deftc " DEFT_VERSION);
    return hash.finishHex().substr(0, kDigits);
  }
  std::string all;
  for (const kernels::Family *family : kernels::families())
    if (family->device == kind && readsValuesOf(*family, tensors)) {
      all += includeOf(*family);
      if (tensors.byteProducts && family->multipliesBytes) // as codegen::cuda::instantiateAttend does
        all += "#include \"deft/" + std::string(family->name) + "/eight_bit_products.cuh\"\n";
    }
  return hashOfReached(all + kIncludeMerge);
}

} // namespace

const std::string &kernelHash(DeviceKey::Kind kind, const spec::Tensors &tensors) {
  // What it hashes is a part of this program, and every entry of a file is compared with it.
  if (kind == DeviceKey::Kind::Cpu) {
    static const std::string cpu = hashOfKernels(kind, tensors);
    return cpu;
  }
  if (tensors.valueInKey) {
    static const std::string latent = hashOfKernels(kind, tensors);
    return latent;
  }
  if (tensors.byteProducts) {
    static const std::string bytes = hashOfKernels(kind, tensors);
    return bytes;
  }
  static const std::string gpu = hashOfKernels(kind, tensors);
  return gpu;
}

const std::string &sparseKernelHash() {
  static const std::string hash =
      hashOfReached(includeOf(kernels::sm80) + kIncludeMerge); // kernels::sparsePhase
  return hash;
}

std::string timestamp(std::chrono::seconds ahead) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + ahead);
  std::tm parts{};
  char text[32];
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

} // namespace deft::config_cache
