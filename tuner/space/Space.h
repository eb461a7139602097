#pragma once

#include "tuner/space/Axis.h"
#include "tuner/space/Constraints.h"

#include <nlohmann/json_fwd.hpp>

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The set of configs for a search.
namespace deft::space {

/// Kernels of one kind: the number of phases and their family; the axes give their numbers.
struct SpaceShape {
  std::string name;                        ///< "sm90", "two": a word for tables
  std::vector<config::PhaseConfig> phases; ///< numbers without an axis keep these values
  std::vector<Axis> axes;
};

/// One config of a space: a shape, and an index into the values of each of its axes (Space::axes).
struct Point {
  int shape = 0;
  std::vector<int> at;

  auto operator<=>(const Point &) const = default;
};

struct SpaceSize {
  long long all = 0;   ///< combinations of the axes' values
  long long legal = 0; ///< of these, those that can be measured
  /// The number of points that each rule excludes as the first broken one, by its name.
  std::map<std::string, long long> broken;
};

class Space {
public:
  /// `target` null: a CPU. Every shape has the `planAxes` (partition, chunk, prices, order).
  Space(kernels::KernelShape kernel, const target::Target *target, config::CostCoefficients cost,
        const std::vector<Axis> &planAxes, std::vector<SpaceShape> shapes,
        kernels::Families families = kernels::families());

  const kernels::KernelShape &kernel() const { return kernel_; }
  const target::Target *target() const { return target_; }
  kernels::Families families() const { return families_; }
  const config::CostCoefficients &cost() const { return cost_; }
  const std::vector<SpaceShape> &shapes() const { return shapes_; }
  /// The axes of a point of this shape: the plan's, then the shape's own.
  const std::vector<Axis> &axes(int shape) const { return axes_[static_cast<std::size_t>(shape)]; }
  int planAxisCount() const { return planAxes_; }

  config::Config configOf(const Point &point) const;
  /// The name of the rule that makes the point unusable; null: it can be measured.
  const char *broken(const Point &point) const;
  /// The point of a config; none if one of its numbers is not a value of its axis.
  std::optional<Point> find(const config::Config &config) const;

  /// Plan and phases share no constraint, so this need not visit all points.
  SpaceSize size() const;
  /// All usable points, in the order of the axes.
  std::vector<Point> points() const;
  /// The points of one shape that differ from `kernels` only in the plan's axes.
  std::vector<Point> plansOf(const Point &kernels) const;
  /// The kernels of a shape that can be compiled, each with the plan's axes at their first values.
  std::vector<Point> kernelsOf(int shape) const;
  /// Usable points at one step on one axis.
  std::vector<Point> neighbours(const Point &point) const;

private:
  const char *broken(const Point &point, bool ofPlan, bool ofPhases) const;
  template <typename Visit> void walk(Point point, int firstAxis, int endAxis, const Visit &visit) const;

  kernels::KernelShape kernel_;
  const target::Target *target_;
  config::CostCoefficients cost_;
  kernels::Families families_;
  std::vector<SpaceShape> shapes_;
  std::vector<std::vector<Axis>> axes_; ///< for each shape
  int planAxes_ = 0;
};

nlohmann::json toJson(const Space &space);
support::Result<Space> spaceFromJson(const nlohmann::json &json);

/// Twelve hexadecimal digits that name a config: equal for equal configs of any space.
std::string configId(const config::Config &config);

} // namespace deft::space
