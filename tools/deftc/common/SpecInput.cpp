#include "tools/deftc/common/SpecInput.h"

#include "compiler/spec/Limits.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <filesystem>
#include <iostream>
#include <utility>

namespace deft::cli {

using support::Error;
using support::ErrorCode;

namespace {

constexpr const char *kStandardInput = "<stdin>";

/// A text that is piped in; what it imports is looked for in the current folder.
support::Result<spec::ImportedFile> readStandardInput(Context &context) {
  if (std::exchange(context.isInputRead, true))
    return Error{ErrorCode::Usage, "`-` is standard input, which can be read only once", ""};
  std::istream &in = context.in ? *context.in : std::cin;
  std::string text(spec::kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > spec::kMaxFileBytes)
    return Error{
        ErrorCode::Diagnostics,
        "the input has more than " + std::to_string(spec::kMaxFileBytes) + " bytes, the limit of a spec", ""};
  return spec::ImportedFile{kStandardInput, std::move(text)};
}

} // namespace

support::Result<spec::ImportedFile> readSpecText(Context &context, const std::string &path) {
  return path == "-" ? readStandardInput(context) : program::readSpec(path);
}

support::Result<std::shared_ptr<LoadedSpec>> checkSpecFile(Context &context, const std::string &path,
                                                           support::DiagnosticSink &sink) {
  auto text = readSpecText(context, path);
  if (!text.ok())
    return std::move(text).error();
  const spec::ImportResolver resolver =
      text->name == kStandardInput ? specs::importResolver(".") : specs::importResolverOf(text->name);
  auto loaded = program::checkSpec(std::move(*text), resolver, sink);
  for (std::uint32_t file = 0; file < loaded->sources.fileCount(); ++file)
    if (const std::string &name = loaded->sources.name(file);
        !name.starts_with('<')) // in the binary, or piped
      if (auto read = context.files.reads(name); !read)
        return read.error();
  return loaded;
}

support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path) {
  support::DiagnosticSink sink;
  auto loaded = checkSpecFile(context, path, sink);
  if (!loaded.ok())
    return loaded;
  context.err << support::renderDiagnostics((*loaded)->sources, sink, {context.errColour});
  if (sink.hasErrors())
    return Error{ErrorCode::Diagnostics, {}, {}};
  return loaded;
}

support::Result<std::shared_ptr<LoadedSpec>> loadSpec(Context &context, const std::string &path) {
  auto loaded = loadSpecFile(context, path);
  if (loaded.ok() && (*loaded)->variants.empty())
    return Error{ErrorCode::Diagnostics, "`" + (*loaded)->path + "` defines no attention", {}};
  return loaded;
}

support::Result<void> splitName(std::string &path, std::string &name) {
  const std::size_t hash = path.rfind('#');
  std::error_code none;
  if (hash == std::string::npos || std::filesystem::exists(path, none))
    return {};
  const std::string own = path.substr(hash + 1);
  if (own.empty())
    return Error{ErrorCode::Usage, "`" + path + "` names no attention after its #", ""};
  if (!name.empty() && name != own)
    return Error{ErrorCode::Usage, "`" + path + "` names one attention, --variant " + name + " another", ""};
  name = own;
  path.resize(hash);
  return {};
}

support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name) {
  return program::chooseVariant(spec, name, kHowToChoose);
}

} // namespace deft::cli
