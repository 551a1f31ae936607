#pragma once

// The changes before an answer is found: a scenario, then a machine, then steps in order. All
// questions that have changes list them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/scenario.h"

namespace foretrace {

class Changes {
 public:
  void describe(Fields& fields, std::string_view steps_help, std::string_view scenario_help);
  void describe_machine(Fields& fields);
  void describe_samples(Fields& fields);
  void describe_tokens(Fields& fields);

  /// Throws Error with the name of the setting.
  Scenario scenario() const;

 private:
  std::vector<std::string> steps_;
  std::string scenario_, machine_;
  std::optional<double> samples_per_step_, tokens_per_step_;
};

/// Lists the setting whose text memory_limit_of() reads.
void describe_memory_limit(Fields& fields, std::string& text, std::string_view help);
/// "16GB", or a device, "rtx-4090", that has so much; nullopt for an empty text. Throws Error with
/// the name of the setting.
std::optional<Bytes> memory_limit_of(const std::string& text);

/// Settings of the caching allocator: "allocator", "conf" and "memory_limit". If they disagree,
/// memory_limit overrides allocator, which overrides conf.
class AllocatorChoice {
 public:
  void describe(Fields& fields);
  /// Overwrites what the settings give. Throws Error with the name of the setting.
  void set(AllocatorSettings& allocator) const;

 private:
  std::string settings_, conf_;
  std::string limit_;
};

}  // namespace foretrace
