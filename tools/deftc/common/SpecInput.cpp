#include "tools/deftc/common/SpecInput.h"

#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <filesystem>
#include <ostream>

namespace deft::cli {

using support::Error;
using support::ErrorCode;

support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path) {
  auto text = program::readSpec(path);
  if (!text.ok())
    return std::move(text).error();
  support::DiagnosticSink sink;
  const spec::ImportResolver resolver = specs::importResolverOf(text->name);
  auto loaded = program::checkSpec(std::move(*text), resolver, sink);
  context.err << support::renderDiagnostics(loaded->sources, sink, {context.errColour});
  if (sink.hasErrors())
    return Error{ErrorCode::Diagnostics, {}, {}};
  for (std::uint32_t file = 0; file < loaded->sources.fileCount(); ++file)
    if (const std::string &name = loaded->sources.name(file); !name.starts_with('<')) // else in the binary
      if (auto read = context.files.reads(name); !read)
        return read.error();
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
    return Error{ErrorCode::Usage, "`" + path + "` names no attention behind its #", ""};
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
