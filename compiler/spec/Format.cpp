#include "compiler/spec/Format.h"

#include "compiler/spec/Lexer.h"

#include <algorithm>
#include <vector>

namespace deft::spec {
namespace {

constexpr int kIndent = 2, kContinued = 4;

/// A line of the text, and how it is to be written.
struct Line {
  std::vector<Token> tokens;
  std::string comment; ///< with its slashes; behind the tokens, or alone
  int indent = 0;
  bool continues = false;         ///< what a line before it began
  std::string text;               ///< of the tokens
  std::vector<std::size_t> stops; ///< columns that neighbours of the same kind share, in the text

  bool isPhase() const { return !tokens.empty() && tokens.front().is("phase"); }
  bool isEmpty() const { return tokens.empty() && comment.empty(); }
};

std::size_t countLines(std::string_view text) { return std::count(text.begin(), text.end(), '\n') + 1; }

/// The comment at the end of a line; tokens end before it.
std::string commentIn(std::string_view rest) {
  const std::size_t begin = rest.find("//");
  if (begin == std::string_view::npos)
    return {};
  const std::size_t end = rest.find_last_not_of(" \t\r");
  return std::string(rest.substr(begin, end + 1 - begin));
}

std::vector<Line> readLines(const support::SourceManager &sources, std::uint32_t file,
                            const std::vector<Token> &tokens) {
  const std::string_view text = sources.text(file);
  std::vector<Line> lines(countLines(text));
  std::size_t next = 0, begin = 0;
  for (Line &line : lines) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::size_t last = begin;
    for (; next < tokens.size() && tokens[next].kind != TokenKind::End && tokens[next].range.begin < end;
         ++next) {
      line.tokens.push_back(tokens[next]);
      last = tokens[next].range.end;
    }
    line.comment = commentIn(text.substr(last, end - last));
    begin = end + 1;
  }
  return lines;
}

bool isOperand(const Token &token) {
  return token.kind == TokenKind::Integer || token.kind == TokenKind::Float ||
         token.kind == TokenKind::String || token.kind == TokenKind::Name || token.is(")") || token.is("]");
}

/// Minus and not in front of what they change.
bool isPrefix(const std::vector<Token> &tokens, std::size_t at) {
  return tokens[at].is("!") || (tokens[at].is("-") && (at == 0 || !isOperand(tokens[at - 1])));
}

/// Whether the colon is that of an argument's type, `f(s: f32)`, which stands at its name.
bool isOfArgument(const std::vector<Token> &tokens, std::size_t at) {
  int depth = 0;
  for (std::size_t i = 0; i < at; ++i)
    depth += tokens[i].is("(") ? 1 : tokens[i].is(")") ? -1 : 0;
  const bool isChoice = std::any_of(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                    [](const Token &token) { return token.is("?"); });
  return depth > 0 && !isChoice;
}

bool hasBlankBetween(const std::vector<Token> &tokens, std::size_t at) {
  const Token &left = tokens[at - 1], &right = tokens[at];
  if (right.is(";") || right.is(",") || right.is(")") || right.is("]") || left.is("(") || left.is("["))
    return false;
  if (isPrefix(tokens, at - 1))
    return false;
  if (right.is("(") || right.is("[")) // a call or an element, but `= (a + b)`
    return left.kind != TokenKind::Name && !left.is(")") && !left.is("]");
  if (right.is(":"))
    return !isOfArgument(tokens, at);
  return true;
}

/// The tokens that stand in one column with those of neighbours: the `=`, or the `:` of a parameter, of `name
/// =`, `let name =`, `param name :`; of a phase on one line its condition and its block.
std::vector<std::size_t> alignedTokens(const std::vector<Token> &tokens) {
  if (tokens.size() < 3 || tokens[0].kind != TokenKind::Name)
    return {};
  if (tokens[0].is("phase")) {
    const auto block =
        std::find_if(tokens.begin(), tokens.end(), [](const Token &token) { return token.is("{"); });
    if (block == tokens.end() || !tokens.back().is("}"))
      return {};
    return {2, static_cast<std::size_t>(block - tokens.begin())};
  }
  const std::size_t at = tokens[0].is("let") || tokens[0].is("param") ? 2 : 1;
  const bool isDefinition = tokens[at].is("=") || (tokens[0].is("param") && tokens[at].is(":"));
  return isDefinition ? std::vector<std::size_t>{at} : std::vector<std::size_t>{};
}

void writeTokens(Line &line) {
  const std::vector<std::size_t> aligned =
      line.continues ? std::vector<std::size_t>{} : alignedTokens(line.tokens);
  for (std::size_t i = 0; i < line.tokens.size(); ++i) {
    if (std::find(aligned.begin(), aligned.end(), i) != aligned.end())
      line.stops.push_back(line.text.size());
    if (i > 0 && hasBlankBetween(line.tokens, i))
      line.text += ' ';
    const Token &token = line.tokens[i];
    line.text +=
        token.kind == TokenKind::String ? '"' + std::string(token.text) + '"' : std::string(token.text);
  }
}

/// Depths of blocks and of parentheses, line by line.
void indent(std::vector<Line> &lines) {
  int blocks = 0, parentheses = 0;
  bool isOpen = false; // a statement goes on
  for (Line &line : lines) {
    const bool closes = !line.tokens.empty() && line.tokens.front().is("}");
    line.continues = (isOpen || parentheses > 0) && !closes;
    line.indent = std::max(0, blocks - (closes ? 1 : 0)) * kIndent + (line.continues ? kContinued : 0);
    for (const Token &token : line.tokens) {
      blocks += token.is("{") ? 1 : token.is("}") ? -1 : 0;
      parentheses += token.is("(") || token.is("[") ? 1 : token.is(")") || token.is("]") ? -1 : 0;
      isOpen = !token.is(";") && !token.is("{") && !token.is("}");
    }
  }
}

/// Moves the n-th stops of the lines of one kind to the farthest of them.
void alignStop(const std::vector<Line *> &lines, std::size_t n) {
  std::size_t column = 0;
  for (const Line *line : lines)
    column = n < line->stops.size() ? std::max(column, line->stops[n]) : column;
  for (Line *line : lines) {
    if (n >= line->stops.size())
      continue;
    const std::size_t more = column - line->stops[n];
    line->text.insert(line->stops[n], more, ' ');
    for (std::size_t later = n; later < line->stops.size(); ++later)
      line->stops[later] += more;
  }
}

/// Lines of one stretch without an empty line, at the same depth, have their signs in one column.
void align(std::vector<Line> &lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    std::vector<Line *> definitions, phases;
    std::size_t end = begin;
    for (; end < lines.size() && !lines[end].isEmpty() &&
           (lines[end].continues || lines[end].indent == lines[begin].indent);
         ++end)
      (lines[end].isPhase() ? phases : definitions).push_back(&lines[end]);
    alignStop(definitions, 0);
    alignStop(phases, 0);
    alignStop(phases, 1);
    begin = std::max(end, begin + 1);
  }
}

} // namespace

std::optional<std::string> formatSpec(const support::SourceManager &sources, std::uint32_t file,
                                      support::DiagnosticSink &sink) {
  const std::vector<Token> tokens = lex(sources, file, sink);
  if (sink.hasErrors())
    return std::nullopt;
  std::vector<Line> lines = readLines(sources, file, tokens);
  indent(lines);
  for (Line &line : lines)
    writeTokens(line);
  align(lines);
  std::string text;
  bool wasEmpty = true; // none at the beginning
  for (const Line &line : lines) {
    if (line.isEmpty()) {
      if (!wasEmpty)
        text += '\n';
      wasEmpty = true;
      continue;
    }
    wasEmpty = false;
    text += std::string(static_cast<std::size_t>(line.indent), ' ') + line.text;
    if (!line.comment.empty())
      text += (line.text.empty() ? "" : " ") + line.comment;
    text += '\n';
  }
  while (text.ends_with("\n\n"))
    text.pop_back();
  return text;
}

} // namespace deft::spec
