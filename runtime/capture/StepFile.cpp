#include "runtime/capture/StepFile.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/JsonFields.h"
#include "runtime/capture/StepJson.h"
#include "runtime/tree/StrictJson.h"
#include "runtime/tree/TreeFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace deft::capture {

using nlohmann::json;
using nlohmann::ordered_json;
using support::Error;
using support::ErrorCode;
using support::require;
using support::Result;

namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr char kFormat[] = "deftc-step";

template <typename Json> std::string compact(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Members of an object, one a line.
class Lines {
public:
  void add(const char *key, const std::string &value) {
    text_ += (text_.empty() ? "{" : ",\n ") + ("\"" + std::string(key) + "\": ") + value;
  }
  template <typename Json> void addJson(const char *key, const Json &value) { add(key, compact(value)); }
  /// An element a line.
  void addRows(const char *key, const std::vector<std::string> &rows) {
    std::string list = "[";
    for (const std::string &row : rows)
      list += (list.size() > 1 ? ",\n  " : "\n  ") + row;
    add(key, list + "]");
  }
  std::string finish() && { return std::move(text_) + "}\n"; }

private:
  std::string text_;
};

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  lines.push_back(text.substr(begin));
  return lines;
}

/// A file of the spec, a line of it a line.
std::string specJson(const package::SpecFile &file) {
  std::string text = "{\"name\": " + compact(json(file.name)) + ", \"text\": [";
  const char *separator = "\n   ";
  for (const std::string &line : linesOf(file.text)) {
    text += separator + compact(json(line));
    separator = ",\n   ";
  }
  return text + "]}";
}

package::SpecFile specOf(const json &file) {
  package::SpecFile spec{support::text(file, "name"), ""};
  for (const json &line : support::array(file, "text", kMostBytes)) {
    require(line.is_string(), "a line of `text` is not a string");
    spec.text += (spec.text.empty() ? "" : "\n") + line.get<std::string>();
  }
  return spec;
}

std::string pageTableJson(const std::vector<PageStretch> &table) {
  constexpr std::size_t kPerLine = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < table.size(); ++i) {
    const PageStretch &one = table[i];
    text += i == 0 ? "" : i % kPerLine == 0 ? ",\n  " : ", ";
    text += "[" + std::to_string(one.entry) + ", " + std::to_string(one.page) + ", " +
            std::to_string(one.count) + "]";
  }
  return text + "]";
}

template <typename T> ordered_json orNull(const std::optional<T> &value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::optional<double> timeOf(const json &file, const char *key) {
  const json &value = support::member(file, key);
  if (value.is_null())
    return std::nullopt;
  require(value.is_number() && value.get<double>() >= 0, "`" + std::string(key) + "` is no time");
  return value.get<double>();
}

/// A name in the file's own folder.
std::string besideOf(const json &file, const char *key) {
  const json &value = support::member(file, key);
  if (value.is_null())
    return {};
  const std::string name = support::text(file, key);
  require(!name.empty() && name != "." && name != ".." && name.find_first_of("/\\") == std::string::npos &&
              name.find('\0') == std::string::npos,
          "`" + std::string(key) + "` is not the name of a folder beside the file");
  return name;
}

constexpr std::array kKeys{
    "format", "version",   "deftc",           "written", "read_device", "device",    "attention", "packaged",
    "spec",   "params",    "params_left_out", "run",     "config",      "selection", "plan",      "plan_us",
    "run_us", "page_size", "page_table",      "lengths", "drafts",      "tensors",   "tree"};

void checkHeader(const json &file) {
  require(file.is_object() && file.contains("format") && file["format"] == kFormat,
          "it is not a captured step: that is an object with \"format\": \"" + std::string(kFormat) + "\"");
  const int version = support::integer(file, "version", 1, std::numeric_limits<int>::max());
  const std::string writer = file.contains("deftc") && file["deftc"].is_string()
                                 ? " (deftc " + file["deftc"].get<std::string>().substr(0, 32) + " wrote it)"
                                 : "";
  require(version == kVersion, "captured step of version " + std::to_string(version) +
                                   ", this program reads version " + std::to_string(kVersion) + writer);
  for (const auto &[key, value] : file.items())
    require(std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end(),
            "it has an unknown key `" + key.substr(0, 64) + "`");
}

/// Places of nodes and pages within what a page table may have.
void checkTree(const Step &step) {
  for (const tree::Node &node : step.tree.nodes())
    require(node.location >= 0 && std::int64_t{node.location} + node.tokens <= tree::KvTree::kMaxTokens,
            "a node of `tree` lies outside of any cache");
  const auto queries = static_cast<std::int64_t>(step.tree.queries().size());
  require(step.lengths.empty() || std::ssize(step.lengths) == queries,
          "`lengths` has " + std::to_string(step.lengths.size()) + " numbers, the tree has " +
              std::to_string(queries) + " queries");
  for (const Drafts &drafts : step.drafts)
    require(std::int64_t{drafts.request.firstQuery} + drafts.request.count <= queries,
            "`drafts` has queries that the tree does not have");
}

Step stepOf(const json &file) {
  checkHeader(file);
  Step step;
  step.version = support::text(file, "deftc");
  step.moment = momentOf(file);
  step.readDevice = support::boolean(file, "read_device");
  const auto device = config_cache::deviceKeyFromJson(support::member(file, "device"));
  require(device.ok(), device ? "" : device.error().message);
  step.device = *device;
  step.attention = support::identifier(file, "attention", 256);
  step.isPackaged = support::boolean(file, "packaged");
  for (const json &one : support::array(file, "spec", 1000))
    step.spec.push_back(specOf(one));
  require(!step.spec.empty(), "`spec` has no file");
  step.params = paramsOf(support::member(file, "params"));
  for (const json &name : support::array(file, "params_left_out", 1000)) {
    require(name.is_string(), "a name in `params_left_out` is not a string");
    step.paramsLeftOut.push_back(name.get<std::string>());
  }
  if (const json &run = support::member(file, "run"); !run.is_null())
    step.run = runOf(run);
  const auto config = config::configFromJson(support::member(file, "config"), step.device.kind);
  require(config.ok(), "`config`: " + (config ? "" : config.error().message));
  step.config = *config;
  step.reason = reasonOf(support::member(file, "selection"));
  step.plan = planOf(support::member(file, "plan"));
  step.planUs = timeOf(file, "plan_us");
  step.runUs = timeOf(file, "run_us");
  step.pageSize = support::integer(file, "page_size", 0, 1 << 20);
  if (const json &table = support::member(file, "page_table"); !table.is_null())
    step.pageTable = pageTableOf(table);
  step.lengths = integersOf(support::member(file, "lengths"), "lengths", 0, tree::KvTree::kMaxTokens);
  for (const json &one : support::array(file, "drafts", tree::KvTree::kMaxQueries))
    step.drafts.push_back(draftsOf(one));
  step.tensors = besideOf(file, "tensors");
  auto document = tree::parseTreeDocument(compact(support::member(file, "tree")));
  require(document.ok(), "`tree`: " + (document ? "" : document.error().message));
  require(document->hasLocations || document->tree.nodes().empty(), "`tree`: its nodes have no `location`");
  step.tree = std::move(document->tree);
  checkTree(step);
  return step;
}

} // namespace

std::string formatStep(const Step &step) {
  Lines lines;
  lines.addJson("format", json(kFormat));
  lines.addJson("version", json(kVersion));
  lines.addJson("deftc", json(step.version));
  lines.addJson("written", json(momentName(step.moment)));
  lines.addJson("read_device", json(step.readDevice));
  lines.addJson("device", config_cache::toJson(step.device));
  lines.addJson("attention", json(step.attention));
  lines.addJson("packaged", json(step.isPackaged));
  std::vector<std::string> specs;
  for (const package::SpecFile &file : step.spec)
    specs.push_back(specJson(file));
  lines.addRows("spec", specs);
  lines.addJson("params", toJson(step.params));
  lines.addJson("params_left_out", json(step.paramsLeftOut));
  lines.addJson("run", step.run ? toJson(*step.run) : ordered_json(nullptr));
  lines.addJson("config", config::toJson(step.config));
  lines.addJson("selection", toJson(step.reason));
  lines.addJson("plan", toJson(step.plan));
  lines.addJson("plan_us", orNull(step.planUs));
  lines.addJson("run_us", orNull(step.runUs));
  lines.addJson("page_size", json(step.pageSize));
  lines.add("page_table", step.pageTable ? pageTableJson(*step.pageTable) : "null");
  lines.addJson("lengths", json(step.lengths));
  std::vector<std::string> drafts;
  for (const Drafts &one : step.drafts)
    drafts.push_back(compact(toJson(one)));
  lines.addRows("drafts", drafts);
  lines.addJson("tensors", step.tensors.empty() ? json(nullptr) : json(step.tensors));
  std::string tree = tree::formatTree(tree::TreeDocument{step.tree, {}, /*hasLocations=*/true});
  tree.pop_back(); // its end of line
  lines.add("tree", tree);
  return std::move(lines).finish();
}

Result<Step> parseStep(std::string_view text) {
  const auto file = tree::parseStrictJson(text);
  if (!file)
    return file.error();
  try {
    return stepOf(*file);
  } catch (const support::WrongField &wrong) {
    return Error{ErrorCode::Diagnostics, wrong.what(), ""};
  } catch (const json::exception &error) {
    return Error{ErrorCode::Diagnostics, support::faultText(error), ""};
  }
}

Result<Step> readStep(const std::string &path) {
  const auto text = support::readFile(path, kMostBytes);
  if (!text)
    return text.error();
  if (text->starts_with("DEFTPKG"))
    return Error{ErrorCode::Usage, "`" + path + "` is a package, not a captured step", ""};
  auto step = parseStep(*text);
  if (!step) {
    const bool isTree = text->find("\"deftc-tree\"") < 64;
    return Error{step.error().code, "`" + path + "`: " + step.error().message,
                 isTree ? "a tree is run by `deftc run SPEC --tree FILE`" : step.error().hint};
  }
  return step;
}

} // namespace deft::capture
