#pragma once

// The questions of a scenario with a `sweep`, a `matrix` or both. Questions are numbered, so that
// each can be answered alone: by another process, or after others were answered before.
//
//     "matrix": {"variant": [{"name": "as it is"}, {"name": "amp", "transforms": [...]}]}
//     "sweep":  {"scale.factor": [0.5, 1], "loader.workers": "0..2"}
//
//     number   variant     loader.workers   scale.factor
//     0        as it is    0                0.5             settings are in order of their
//     1        as it is    0                1               names; the last one changes
//     2        as it is    1                0.5             fastest
//
// An alternative of a matrix is a part of a scenario, applied on top as if it extended the
// scenario. Every combination of alternatives is evaluated at every point of the sweep.

#include <cstdint>
#include <string>
#include <vector>

#include "scenario/axis.h"

namespace foretrace {

/// Returns whether a scenario asks more than one question.
bool asks_many(const nlohmann::json& scenario);

enum class SweepMethod : std::uint8_t { grid, zip, random, halton };

/// One choice of an alternative for each axis of the matrix.
struct SweepCombination {
  std::vector<std::string> names;  ///< Names of the alternatives, by axis of the matrix.
  nlohmann::json scenario;         ///< As returned by write_scenario().
  std::vector<SweepAxis> axes;
  std::uint64_t first = 0, count = 0;  ///< Numbers of its questions.
};

class SweepPlan {
 public:
  /// `scenario` includes the files it extends; "sweep" is as in a file in `sweep_folder`. Throws
  /// Error with the place.
  SweepPlan(const nlohmann::json& scenario, const std::string& sweep_folder);
  /// A sweep over one axis. `scenario` is as returned by write_scenario().
  SweepPlan(nlohmann::json scenario, SweepAxis axis);

  /// The scenario without its "sweep" and "matrix", as returned by write_scenario().
  const nlohmann::json& base() const { return base_; }
  std::uint64_t size() const { return size_; }
  /// Names of the matrix axes, then of the settings.
  const std::vector<std::string>& settings() const { return settings_; }
  const std::vector<SweepCombination>& combinations() const { return combinations_; }
  std::size_t combination_of(std::uint64_t number) const;

  /// Returns the values of a question's settings, without the axes of the matrix. Throws Error if a
  /// drawn value is invalid.
  std::vector<SweepValue> values(std::uint64_t number) const;
  /// Returns the scenario of a question, as returned by write_scenario().
  nlohmann::json scenario(std::uint64_t number, const std::vector<SweepValue>& values) const;

 private:
  void read_settings(const nlohmann::json& sweep);
  void read_method(const nlohmann::json& sweep);
  void combine(const nlohmann::json& matrix);
  void add_axes(const std::string& folder);
  std::uint64_t points_of(const SweepCombination& combination) const;

  nlohmann::json base_;
  SweepMethod method_ = SweepMethod::grid;
  std::uint64_t samples_ = 0, seed_ = 0;
  bool log_ = false;
  nlohmann::json swept_ = nlohmann::json::object();  ///< Values, by setting.
  std::vector<std::string> settings_;
  std::vector<SweepCombination> combinations_;
  std::uint64_t size_ = 0;
};

}  // namespace foretrace
