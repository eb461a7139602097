#include "compiler/support/Render.h"

#include "compiler/support/Utf8.h"

#include <algorithm>

namespace deft::support {
namespace {

// A line longer than this (generated text) is shown as a window around the range.
constexpr std::size_t kMaxLineBytes = 160;
constexpr std::size_t kContextBytes = 60;

constexpr const char *kBold = "\033[1m";
constexpr const char *kRed = "\033[1;31m";
constexpr const char *kYellow = "\033[1;33m";
constexpr const char *kCyan = "\033[1;36m";
constexpr const char *kGreen = "\033[1;32m";
constexpr const char *kReset = "\033[0m";

class Renderer {
public:
  Renderer(const SourceManager &sources, RenderOptions options) : sources_(sources), options_(options) {}

  void message(SourceRange range, const char *kind, const char *colour, const std::string &text) {
    LineColumn place = sources_.lineColumn(range.file, range.begin);
    paint(kBold, sources_.name(range.file) + ":" + std::to_string(place.line) + ":" +
                     std::to_string(place.column) + ": ");
    paint(colour, std::string(kind) + ": ");
    paint(kBold, text);
    out_ += '\n';
    excerpt(range, place.line);
  }

  void hint(SourceRange range, const std::string &text) {
    out_ += gutterBlank(sources_.lineColumn(range.file, range.begin).line);
    out_.pop_back(); // the `=` stands under the bar
    out_ += "= ";
    paint(kCyan, "hint: ");
    out_ += text + '\n';
  }

  std::string take() { return std::move(out_); }

private:
  void paint(const char *colour, const std::string &text) {
    out_ += options_.colour ? colour + text + kReset : text;
  }

  static std::string gutterBlank(int line) { return std::string(std::to_string(line).size() + 2, ' ') + '|'; }

  /// The line and, under it, `^~~~` for the part of the range that lies on it.
  void excerpt(SourceRange range, int line) {
    SourceRange whole = sources_.lineRange(range.file, range.begin);
    std::uint32_t begin = std::clamp(range.begin, whole.begin, whole.end);
    std::uint32_t end = std::clamp(range.end, begin, whole.end);
    std::uint32_t from = whole.begin, to = whole.end;
    bool cutLeft = false, cutRight = false;
    if (to - from > kMaxLineBytes) {
      if (begin - from > kContextBytes) {
        from = begin - kContextBytes;
        cutLeft = true;
        while (from < begin && isUtf8Continuation(sources_.text(range.file)[from]))
          ++from;
      }
      if (to - from > kMaxLineBytes) {
        to = from + kMaxLineBytes;
        cutRight = true;
      }
      end = std::min(end, to);
    }
    std::string_view text = sources_.text(range.file);
    std::string prefix = cutLeft ? "..." : "";
    out_ += ' ' + std::to_string(line) + " | " + prefix;
    appendPrintable(text.substr(from, to - from));
    out_ += cutRight ? "...\n" : "\n";

    std::size_t indent = prefix.size() + countCodePoints(text.substr(from, begin - from));
    std::size_t width = std::max<std::size_t>(1, countCodePoints(text.substr(begin, end - begin)));
    out_ += gutterBlank(line) + ' ' + std::string(indent, ' ');
    paint(kGreen, '^' + std::string(width - 1, '~'));
    out_ += '\n';
  }

  /// A tab becomes one space, so that carets stand right whatever the terminal's tab width is; control
  /// bytes and broken UTF-8 become `?`, so that a spec cannot write escapes to a terminal.
  void appendPrintable(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      unsigned char c = static_cast<unsigned char>(text[i]);
      std::size_t length = codePointBytes(text.substr(i));
      bool control = c < 0x20 || c == 0x7F ||
                     (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0);
      if (length == 0 || control) {
        // One `?` for each code point as the column count sees them.
        std::size_t next = i + 1;
        while (next < text.size() && isUtf8Continuation(text[next]))
          ++next;
        out_ += c == '\t' ? ' ' : '?';
        i = next;
        continue;
      }
      out_ += text.substr(i, length);
      i += length;
      while (i < text.size() && isUtf8Continuation(text[i]))
        ++i; // surplus continuation bytes belong to the code point before them
    }
  }

  const SourceManager &sources_;
  RenderOptions options_;
  std::string out_;
};

} // namespace

std::string renderDiagnostic(const SourceManager &sources, const Diagnostic &diagnostic,
                             RenderOptions options) {
  Renderer renderer(sources, options);
  bool isError = diagnostic.severity == Severity::Error;
  renderer.message(diagnostic.range, isError ? "error" : "warning", isError ? kRed : kYellow,
                   diagnostic.message);
  if (!diagnostic.hint.empty())
    renderer.hint(diagnostic.range, diagnostic.hint);
  for (const DiagnosticNote &note : diagnostic.notes)
    renderer.message(note.range, "note", kCyan, note.message);
  return renderer.take();
}

std::string renderDiagnostics(const SourceManager &sources, const DiagnosticSink &sink,
                              RenderOptions options) {
  std::string out;
  for (const Diagnostic &diagnostic : sink.diagnostics())
    out += renderDiagnostic(sources, diagnostic, options);
  if (std::size_t more = sink.suppressedCount())
    out += "and " + std::to_string(more) + (more == 1 ? " more finding\n" : " more findings\n");
  return out;
}

} // namespace deft::support
