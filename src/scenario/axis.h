#pragma once

// One setting of a sweep and the values it takes: a list, or a range such as "0..16", "0.5..1/10"
// or {"range": "1GB/s..64GB/s", "scale": "log"}. Grids and zips use the values of a list or the
// steps of a range; random and Halton sweeps draw from them:
//
//     linear   low + (high - low) * u          0 <= u < 1; whole numbers if the setting and both
//     log      low * (high / low) ^ u          ends are whole

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenario/setting.h"
#include "scenario/values.h"

namespace foretrace {

/// A value of a setting, a machine or a trace.
struct SweepValue {
  std::string text;       ///< As JSON: 0.5, "8GB".
  nlohmann::json change;  ///< Settings of the step; for machine and trace, the value itself.
};

class SweepAxis {
 public:
  /// `scenario` is as returned by write_scenario(); paths are relative to `folder`. Throws Error.
  SweepAxis(const std::string& name, const nlohmann::json& values, bool log_scale,
            const nlohmann::json& scenario, const std::string& folder);

  const std::string& name() const { return name_; }
  /// Returns nullopt for "machine" and "trace".
  const std::optional<SettingPath>& setting() const { return setting_; }
  std::size_t count() const { return listed_.size(); }
  const SweepValue& at(std::size_t i) const { return listed_[i]; }
  /// Returns the value at position u of the axis, 0 <= u < 1. Throws Error if the setting does not
  /// accept it.
  SweepValue sample(double u, const nlohmann::json& scenario) const;
  /// Reads a value as given on the command line. Throws Error. REQUIRES: setting().
  SweepValue value_of_text(const std::string& text, const nlohmann::json& scenario) const;
  /// The range or values as they were given.
  const Values& values() const { return range_; }
  void apply(const SweepValue& value, nlohmann::json& scenario) const;

 private:
  void read_list(const nlohmann::json& values, const nlohmann::json& scenario,
                 const std::string& folder);
  void read_range_object(const nlohmann::json& values, const nlohmann::json& scenario);
  void read_text(const std::string& text, const nlohmann::json& scenario);
  void space_by_log(const nlohmann::json& scenario);

  std::string name_;
  std::optional<SettingPath> setting_;
  std::vector<SweepValue> listed_;
  Values range_;  ///< Values that were given as text.
  bool log_ = false;
};

}  // namespace foretrace
