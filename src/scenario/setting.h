#pragma once

// Names one setting of a scenario whose value can be varied: "transforms[1].workers",
// "loader.workers" for the only step that is a loader, "memory.limit".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

class SettingPath {
 public:
  /// Throws Error if the scenario (as returned by write_scenario()) has no such step.
  SettingPath(std::string_view path, const nlohmann::json& scenario);

  /// Returns the value in the scenario, defaults included; null if it is left out.
  nlohmann::json value(const nlohmann::json& scenario) const;

  /// Returns the settings of the step that set `value`; apply() merges them into a scenario. Throws
  /// Error if the setting does not accept the value.
  nlohmann::json change(const nlohmann::json& scenario, const nlohmann::json& value) const;
  /// Does the same for a value as given on the command line: "3", "1GB/s".
  nlohmann::json change_of_text(const nlohmann::json& scenario, std::string_view value) const;
  void apply(const nlohmann::json& change, nlohmann::json& scenario) const;
  /// Makes the paths in a change that comes from a file in `folder` relative to the working
  /// directory.
  void rebase(nlohmann::json& change, const nlohmann::json& scenario,
              const std::string& folder) const;
  /// Returns the value that a change sets.
  nlohmann::json value_in(const nlohmann::json& change) const;

  const std::string& name() const { return name_; }
  bool is_of_memory() const { return of_memory_; }
  std::size_t step() const { return step_; }

 private:
  nlohmann::json settings_of(const nlohmann::json& scenario) const;
  /// Throws Error if the settings cannot be read.
  void check(const nlohmann::json& settings) const;

  bool of_memory_ = false;
  std::size_t step_ = 0;
  std::string name_;  ///< "where.name"
};

}  // namespace foretrace
