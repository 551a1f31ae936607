#pragma once

// Names one setting of a scenario, so that it can be given other values: "transforms[1].workers",
// "loader.workers" for the only step that is a loader, "memory.limit".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

class SettingPath {
 public:
  /// Throws Error if the scenario (as returned by write_scenario()) has no such step.
  SettingPath(std::string_view path, const nlohmann::json& scenario);

  /// Its value in the scenario, defaults included; null if it is left out.
  nlohmann::json value(const nlohmann::json& scenario) const;

  /// The change that sets a value, as settings of the step; apply() makes a scenario of it. Throws
  /// Error if the setting does not take the value.
  nlohmann::json change(const nlohmann::json& scenario, const nlohmann::json& value) const;
  /// The same for a value as it would be given on the command line: "3", "1GB/s".
  nlohmann::json change_of_text(const nlohmann::json& scenario, std::string_view value) const;
  void apply(const nlohmann::json& change, nlohmann::json& scenario) const;
  /// Makes paths in a change of a file in `folder` relative to the working directory.
  void rebase(nlohmann::json& change, const nlohmann::json& scenario,
              const std::string& folder) const;
  /// The value in a change.
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
