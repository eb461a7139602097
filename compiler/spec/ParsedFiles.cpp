#include "compiler/spec/ParsedFiles.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Parser.h"

#include <algorithm>
#include <set>

namespace deft::spec {
namespace {

constexpr const char *kLibrary = "library.deft";

class Loader {
public:
  Loader(support::SourceManager &sources, const ImportResolver &resolver, support::DiagnosticSink &sink,
         ParsedFiles &parsed)
      : sources_(sources), resolver_(resolver), sink_(sink), parsed_(parsed) {}

  void load(std::uint32_t file) {
    open_.push_back(sources_.name(file));
    loaded_.insert(sources_.name(file));
    std::size_t bytes = sources_.text(file).size();
    if (bytes > kMaxFileBytes) {
      sink_.error({file, 0, 0}, "the file has " + std::to_string(bytes) + " bytes, the limit is " +
                                    std::to_string(kMaxFileBytes));
      open_.pop_back();
      return;
    }
    parsed_.files.push_back(parse(sources_, file, parsed_.arena, sink_));
    const AstFile &parsed = parsed_.files.back();
    for (const AstImport &import : parsed.imports)
      import_(sources_.name(file), import);
    open_.pop_back();
  }

  void collectNames() {
    std::size_t functions = 0, attentions = 0;
    for (const AstFile &file : parsed_.files) {
      parsed_.brokenNames.insert(file.brokenNames.begin(), file.brokenNames.end());
      for (const AstDeclaration &declaration : file.declarations) {
        functions += std::holds_alternative<AstFunction>(declaration);
        const Ident &name = declaredName(declaration);
        auto [known, isNew] = parsed_.globals.try_emplace(name.text, &declaration);
        if (!isNew)
          definedTwice(name, declaredName(*known->second));
      }
      for (const AstAttention &attention : file.attentions) {
        if (++attentions == kMaxAttentions + 1)
          sink_.error(attention.name.range,
                      "more than the limit of " + std::to_string(kMaxAttentions) + " attentions");
        for (const AstDeclaration &declaration : attention.declarations)
          functions += std::holds_alternative<AstFunction>(declaration);
        auto [known, isNew] = parsed_.attentions.try_emplace(attention.name.text, &attention);
        if (!isNew)
          definedTwice(attention.name, known->second->name);
      }
    }
    if (functions > kMaxFunctions)
      sink_.error({parsed_.files.front().file, 0, 0},
                  std::to_string(functions) + " functions, the limit is " + std::to_string(kMaxFunctions));
  }

private:
  void definedTwice(const Ident &name, const Ident &first) {
    // Of an importing and an imported file, the former is the one to mend; it was read first.
    if (name.range.file != first.range.file) {
      sink_.error(first.range, "`" + name.text + "` is also defined by an import")
          .withNote(name.range, "it is defined here");
      return;
    }
    sink_.error(name.range, "`" + name.text + "` is defined twice")
        .withNote(first.range, "it is defined here first");
  }

  void import_(const std::string &importer, const AstImport &import) {
    if (static_cast<int>(open_.size()) > kMaxImportDepth) {
      sink_.error(import.range,
                  "imports are nested deeper than the limit of " + std::to_string(kMaxImportDepth));
      return;
    }
    auto found = resolver_
                     ? resolver_(importer, import.path)
                     : support::Result<ImportedFile>(support::Error{
                           support::ErrorCode::Diagnostics, "cannot import `" + import.path + "` here", {}});
    if (!found.ok()) {
      sink_.error(import.range, found.error().message).withHint(found.error().hint);
      return;
    }
    if (std::find(open_.begin(), open_.end(), found->name) != open_.end()) {
      sink_.error(import.range, "`" + import.path + "` imports itself" +
                                    (open_.back() == found->name ? "" : " by way of this file"));
      return;
    }
    if (loaded_.count(found->name))
      return;
    if (loaded_.size() >= kMaxFiles) {
      sink_.error(import.range, "more than the limit of " + std::to_string(kMaxFiles) + " files");
      return;
    }
    load(sources_.add(found->name, std::move(found->text)));
  }

  support::SourceManager &sources_;
  const ImportResolver &resolver_;
  support::DiagnosticSink &sink_;
  ParsedFiles &parsed_;
  std::vector<std::string> open_; ///< the files whose imports are being read, outermost first
  std::set<std::string> loaded_;
};

std::vector<std::string> libraryFunctions(const ImportResolver &resolver, const std::string &importer) {
  std::vector<std::string> names;
  auto library = resolver ? resolver(importer, kLibrary) : support::Result<ImportedFile>(support::Error{});
  if (!library.ok() || library->text.size() > kMaxFileBytes)
    return names;
  support::SourceManager sources;
  support::DiagnosticSink ignored;
  AstArena arena;
  AstFile parsed = parse(sources, sources.add(library->name, library->text), arena, ignored);
  for (const AstDeclaration &declaration : parsed.declarations)
    if (std::holds_alternative<AstFunction>(declaration))
      names.push_back(declaredName(declaration).text);
  return names;
}

} // namespace

ParsedFiles parseFiles(support::SourceManager &sources, std::uint32_t file, const ImportResolver &resolver,
                       support::DiagnosticSink &sink) {
  ParsedFiles parsed;
  Loader loader(sources, resolver, sink, parsed);
  loader.load(file);
  if (parsed.files.empty())
    return parsed;
  loader.collectNames();
  parsed.libraryFunctions = [resolver, importer = sources.name(file)] {
    return libraryFunctions(resolver, importer);
  };
  return parsed;
}

} // namespace deft::spec
