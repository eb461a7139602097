#include "compiler/spec/Ast.h"
#include "compiler/spec/Names.h"

#include <charconv>

namespace deft::spec {

std::string numberText(double value) {
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

std::string typeText(const AstType &type) {
  std::string text = toString(type.scalar);
  if (type.shape == Param::Shape::Table)
    text += "[" + std::to_string(type.size) + "]";
  else if (type.shape != Param::Shape::Scalar)
    text += std::string("[") + toString(type.shape) + "]";
  return text;
}

namespace {

class Printer {
public:
  explicit Printer(const AstArena &arena) : arena_(arena) {}

  // The parser bounds the depth of an expression, so recursion is safe.
  std::string expr(AstExprId id) {
    const AstExpr &e = arena_[id];
    switch (e.kind) {
    case AstExprKind::Integer:
      return numberText(e.number);
    case AstExprKind::Float: {
      std::string text = numberText(e.number);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    case AstExprKind::Name:
      return e.name.text;
    case AstExprKind::Index:
      return list("index " + e.name.text, e.operands);
    case AstExprKind::Unary:
    case AstExprKind::Binary:
      return list(e.name.text, e.operands);
    case AstExprKind::Conditional:
      return list("?", e.operands);
    case AstExprKind::Call:
      return list("call " + e.name.text, e.operands);
    }
    return {};
  }

  void declaration(const AstDeclaration &declaration, const std::string &indent) {
    std::visit([&](const auto &d) { out_ += indent + text(d) + '\n'; }, declaration);
  }

  void attention(const AstAttention &attention) {
    out_ += "attention " + attention.name.text + (attention.base ? " : " + attention.base->text : "") + '\n';
    for (const AstDeclaration &d : attention.declarations)
      declaration(d, "  ");
    for (const AstProperty &property : attention.properties) {
      if (const auto *schedule = std::get_if<AstSchedule>(&property.value)) {
        out_ += "  schedule\n";
        print(*schedule);
      } else if (const auto *select = std::get_if<AstSelect>(&property.value)) {
        out_ += "  select\n";
        print(*select);
      } else {
        out_ += "  " + property.key.text + " = " +
                std::visit([&](const auto &value) { return text(value); }, property.value) + '\n';
      }
    }
  }

  std::string out_;

private:
  std::string list(const std::string &head, const std::vector<AstExprId> &operands) {
    std::string text = "(" + head;
    for (AstExprId operand : operands)
      text += " " + expr(operand);
    return text + ")";
  }

  std::string text(const AstParam &d) {
    return "param " + d.name.text + " : " + typeText(d.type) +
           (d.defaultValue ? " = " + expr(*d.defaultValue) : "");
  }
  std::string text(const AstLet &d) { return "let " + d.name.text + " = " + expr(d.value); }
  std::string text(const AstFunction &d) {
    std::string out = d.kind.text + " " + d.name.text + "(";
    for (std::size_t i = 0; i < d.formals.size(); ++i)
      out += (i ? ", " : "") + d.formals[i].name.text + " : " + typeText(d.formals[i].type);
    return out + ") = " + expr(d.body);
  }
  std::string text(const AstExprValue &v) { return expr(v.expr); }
  std::string text(const AstWordValue &v) { return v.word.text; }
  std::string text(const AstCacheValue &v) {
    return v.kind.text + (v.dim ? " dim = " + expr(*v.dim) : "") +
           (v.rope ? " rope = " + expr(*v.rope) : "") + (v.scales ? " scales = " + expr(*v.scales) : "") +
           (v.pageSize ? " page_size = " + expr(*v.pageSize) : "") +
           (v.order ? " order = " + v.order->text : "") + (v.dtype ? " dtype = " + v.dtype->text : "");
  }
  std::string text(const AstNormalizeValue &v) {
    return v.kind.text + (v.bias ? " " + expr(*v.bias) : "") + (v.sink ? " with sink " + expr(*v.sink) : "");
  }
  std::string text(const AstOutputValue &v) {
    std::string text = v.value ? expr(*v.value) : std::string();
    if (v.dtype)
      text += (v.value ? " as " : "") + v.dtype->text;
    return text + (v.withLse ? " with lse" : "");
  }
  std::string text(const AstSchedule &) { return {}; }
  std::string text(const AstSelect &) { return {}; }

  std::string text(const AstTune &tune) {
    return tune.tunable ? list("tune", tune.values) : expr(tune.values.front());
  }

  void print(const AstSchedule &schedule) {
    if (schedule.partition) {
      out_ += "    partition =";
      for (const Ident &name : schedule.partition->names)
        out_ += " " + name.text;
      out_ += '\n';
    }
    if (schedule.chunk)
      out_ += "    chunk = " + text(*schedule.chunk) + '\n';
    for (const AstPhase &phase : schedule.phases) {
      out_ += "    phase " + phase.name.text +
              (phase.rowsAbove ? " when rows > " + expr(*phase.rowsAbove) : " otherwise") + '\n';
      for (const auto &[key, tune] : phase.keys)
        out_ += "      " + key.text + " = " + text(tune) + '\n';
    }
  }

  void print(const AstSelect &select) {
    const auto line = [&](const char *key, const std::string &value) {
      out_ += std::string("    ") + key + " = " + value + '\n';
    };
    if (select.budget)
      line("budget", text(*select.budget));
    if (select.by)
      line("by", select.by->text);
    if (select.keepFirst)
      line("keep_first", expr(*select.keepFirst));
    if (select.keepLast)
      line("keep_last", expr(*select.keepLast));
  }

  const AstArena &arena_;
};

} // namespace

const Ident &declaredName(const AstDeclaration &declaration) {
  return std::visit([](const auto &d) -> const Ident & { return d.name; }, declaration);
}

std::string printAst(const AstArena &arena, AstExprId expr) { return Printer(arena).expr(expr); }

std::string printAst(const AstFile &file, const AstArena &arena) {
  Printer printer(arena);
  for (const AstImport &import : file.imports)
    printer.out_ += "import \"" + import.path + "\"\n";
  for (const AstDeclaration &declaration : file.declarations)
    printer.declaration(declaration, "");
  for (const AstAttention &attention : file.attentions)
    printer.attention(attention);
  return std::move(printer.out_);
}

} // namespace deft::spec
