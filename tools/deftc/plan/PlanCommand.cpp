#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Occupancy.h"
#include "compiler/spec/Names.h"
#include "compiler/target/Target.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/plan/report/PlanPage.h"
#include "runtime/reference/Evaluate.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/DeviceInput.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/TreeInput.h"
#include "tools/deftc/common/Words.h"
#include "tools/deftc/plan/PlanAgainst.h"
#include "tools/deftc/plan/PlanForm.h"
#include "tools/deftc/plan/PlanOptions.h"
#include "tools/deftc/plan/PlanText.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <ostream>
#include <sstream>

namespace deft::cli {

using support::Result;

namespace {

/// What a large GPU has, where only the architecture is known.
constexpr int kMultiprocessors = 132;

/// The config that a tree's plan is made with, and how many blocks the machine runs at a time.
struct Machine {
  std::string name; ///< for people
  config::Config config;
  std::optional<config_cache::Ruling> ruling;
  int blocks = 0;
  config::DeviceKind kind = config::DeviceKind::Gpu;
  config::CostCoefficients kernelPrices; ///< of a GPU: tell a plan's time
};

/// For no device in particular: what is legal on the architecture.
Result<Machine> anyMachine(const spec::Variant &variant, const std::string &arch) {
  const target::Target *target = target::findTarget(arch);
  if (!target)
    return support::Error{support::ErrorCode::Usage, "unknown architecture `" + arch + "`",
                          "deftc knows " + target::targetNames()};
  auto config = kernels::defaultConfig(variant, target);
  if (!config)
    return config.error();
  const int blocks =
      kernels::estimateBlocks(kernels::KernelShape::of(variant), *config, target, kMultiprocessors);
  return Machine{"any GPU of " + std::string(target->arch) + " with " + std::to_string(kMultiprocessors) +
                     " multiprocessors",
                 std::move(*config),
                 std::nullopt,
                 blocks,
                 config::DeviceKind::Gpu,
                 config_cache::ofColumns(config::nearestPrices(config::someGpu()).kernels, variant.tensors)};
}

/// What the mask says of head 0, for a picture; nothing where only the tree hides, or where a parameter that
/// may decide has no value.
std::function<bool(const plan::MaskSite &)> maskOf(const spec::Variant &variant,
                                                   const std::vector<exec::ParamValue> &values) {
  const bool isKnown = std::none_of(values.begin(), values.end(), [](const exec::ParamValue &value) {
    return value.f32.empty() && value.i32.empty();
  });
  if (!variant.mask || !isKnown)
    return {};
  struct Mask {
    Mask(const spec::Variant &of, const std::vector<exec::ParamValue> &values) : variant(of) {
      inputs.params = values;
    }
    spec::Variant variant;
    exec::Inputs inputs;
    reference::Evaluator evaluator{variant, inputs, reference::Precision::Single};
  };
  return [mask = std::make_shared<Mask>(variant, values)](const plan::MaskSite &site) {
    return mask->evaluator.boolean(
        *mask->variant.mask,
        {.qPos = site.qPos, .kvPos = site.kvPos, .depth = site.depth, .query = site.query});
  };
}

/// The one that `run` would run on, unless another one is named.
Result<Machine> chooseMachine(Context &context, const program::Program &program, const tree::KvTree &tree,
                              const plan::Reach &reach, PlanOptions options) {
  if (!options.arch.empty())
    return anyMachine(program.variant(), options.arch);
  options.device.threads = options.blocks;
  const auto device = chooseDevice(options.device, config_cache::defaultPlaces(options.config));
  if (!device)
    return device.error();
  auto chooser = chooserFor(context, program, *device, options.config);
  if (!chooser)
    return chooser.error();
  chooser->setReach(reach);
  config_cache::Ruling ruling = chooser->explain(tree);
  if (const auto usable = checkGiven(ruling); !usable)
    return usable.error();
  const int blocks = kernels::estimateBlocks(kernels::KernelShape::of(program.variant()), ruling.config(),
                                             device->target, device->key.units);
  return Machine{(options.device.device.empty() ? "this one, " : "") + device->key.text(),
                 ruling.config(),
                 std::move(ruling),
                 blocks,
                 device->key.kind,
                 chooser->kernelPrices()};
}

/// A plan, and why it has its config.
struct Made {
  plan::PlanReport report;
  std::optional<config_cache::Ruling> ruling; ///< none: the config is for no device in particular

  std::string why() const {
    return ruling ? rulingText(*ruling) : "chosen by the cost model for no device in particular";
  }
};

Result<Made> makePlan(Context &context, const PlanOptions &options) {
  if (auto read = readsConfigs(context, options.config); !read)
    return read.error();
  const auto program = openProgram(context, options.input, options.variant);
  if (!program)
    return program.error();
  auto subject = openTree(context, options.tree);
  if (!subject)
    return subject.error();
  // What the mask shows by the defaults of parameters and the values given.
  const auto values = exec::bindKnownParams(program->variant(), options.params);
  if (!values)
    return values.error();
  const plan::Reach reach = exec::reachOf(program->variant(), *values);
  auto machine = chooseMachine(context, *program, subject->tree, reach, options);
  if (!machine)
    return machine.error();
  config::Config &config = machine->config;
  if (!options.partition.empty())
    config.partition = *config::partitionFromName(options.partition);
  if (options.chunk >= 0)
    config.chunkTokens = options.chunk;
  const auto make = [&] {
    const Underway underway(context,
                            "planning " + counted(std::ssize(subject->tree.queries()), "query", "queries"));
    return plan::reportPlan(std::move(subject->tree),
                            plan::VariantFacts::of(program->variant(), machine->kind, reach), config,
                            machine->kind == config::DeviceKind::Cpu ? config.cost : machine->kernelPrices,
                            options.blocks > 0 ? options.blocks : machine->blocks);
  };
  auto report = make();
  if (!report)
    return report.error();
  report->treeName = std::move(subject->name);
  report->nodeNames = std::move(subject->nodeNames);
  report->variantName = program->variant().name;
  report->shows = maskOf(program->variant(), *values);
  report->machineName = std::move(machine->name);
  return Made{std::move(*report), std::move(machine->ruling)};
}

std::string pageText(const Made &made, const Made *other, const std::vector<std::string> &against) {
  std::vector<plan::PagePlan> plans = {{.report = &made.report, .why = made.why()}};
  if (other) {
    std::string label = config::partitionName(other->report.plan.partition);
    for (const std::string &given : against)
      if (!given.starts_with("partition="))
        label += ", " + given;
    plans.push_back({.report = &other->report, .why = other->why(), .label = label});
  }
  return plan::planPage(plans);
}

/// `other` may be null; a page shows it beside the first.
std::string textOf(Context &context, const Made &made, const Made *other, const std::string &form,
                   const std::vector<std::string> &against) {
  const Underway underway(context, "writing the plan");
  if (form == "json") {
    nlohmann::json object = toJson(made.report);
    object["selection"] = made.ruling ? config_cache::toJson(*made.ruling) : nlohmann::json(nullptr);
    return object.dump(1) + '\n';
  }
  if (form == "svg")
    return drawPlan(made.report);
  if (form == "html")
    return pageText(made, other, against);
  std::ostringstream text;
  printPlan(made.report, made.why(), text);
  return text.str();
}

int planCommand(Context &context, const PlanOptions &options) {
  const auto form = choosePlanForm(options.as, options.output);
  if (!form)
    return reportError(context, form.error());
  if (!options.against.empty() && form->name != "html")
    return reportError(context, {support::ErrorCode::Usage,
                                 "--against shows two plans on one page, and " + form->name + " has one",
                                 "give --as html, or a file that ends in .html"});
  if (!form->byFile.empty())
    context.err << "warning: `" << printable(options.output) << "` gets " << form->name
                << ", as --as says, not " << form->byFile << '\n';
  if (auto writable = checkOutput(context, options.output); !writable)
    return reportError(context, writable.error());
  const auto otherOptions = againstOptions(options);
  if (!otherOptions)
    return reportError(context, otherOptions.error());
  const auto made = makePlan(context, options);
  if (!made)
    return reportError(context, made.error());
  std::optional<Made> other;
  if (!options.against.empty()) {
    auto second = makePlan(context, *otherOptions);
    if (!second)
      return reportError(context, second.error());
    other = std::move(*second);
  }
  return writeOutput(context, options.output,
                     textOf(context, *made, other ? &*other : nullptr, form->name, options.against));
}

} // namespace

void addPlanCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "plan", "Show how `run` would cut a tree into work, as text, JSON, a picture or a page");
  auto options = std::make_shared<PlanOptions>();
  addProgramOptions(*command, options->input, options->variant);
  addTreeOptions(*command, options->tree);
  command
      ->add_option("--param", options->params,
                   "NAME=VALUE, as for `deftc run`: parameters that bound the mask")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--partition", options->partition, "Partition; default: from the schedule")
      ->check(CLI::IsMember(spec::partitionNames()));
  command
      ->add_option("--chunk", options->chunk, "Most tokens of an item; 0: as many blocks as the machine runs")
      ->check(atLeast(0));
  command
      ->add_option("--blocks", options->blocks,
                   "Concurrent blocks; default: the GPU's, or one for each thread")
      ->check(between(1, kMostPlanBlocks));
  addDeviceOptions(*command, options->device);
  command->get_option("--backend")
      ->description("Device of the plan; default: a GPU if present, as for `deftc run`");
  addConfigOption(*command, options->config);
  command
      ->add_option("--arch", options->arch,
                   "A plan for any GPU of an architecture, such as sm_90a, present or not")
      ->excludes("--backend")
      ->excludes("--device");
  command
      ->add_option("--as", options->as,
                   "Format; default: by the file's extension (.txt, .json, .svg, .html), else text")
      ->check(CLI::IsMember(planForms()));
  command
      ->add_option("--against", options->against,
                   "NAME=VALUE: show a second plan next to the first, with this option changed; NAME is " +
                       joined(againstNames(), " or "))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("-o,--output", options->output, "Write it to this file");
  command->footer("Examples:\n  deftc plan llama3_8b --workload few_shot\n"
                  "      (what `deftc run llama3_8b --workload few_shot` would do on this machine)\n"
                  "  deftc plan llama3_8b --workload few_shot --arch sm_90a -o plan.svg\n"
                  "  deftc plan llama3_8b --workload few_shot -o plan.html --against partition=node\n"
                  "      (a page for a browser, with two plans side by side)");
  context.onRun(command, [&context, options] { return planCommand(context, *options); });
}

} // namespace deft::cli
