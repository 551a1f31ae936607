#include "question/common/changes.h"

#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/assignments.h"
#include "base/json_text.h"
#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"

namespace foretrace {
namespace {

/// "16GB", or a device: its memory.
Bytes memory_of(const std::string& text) {
  const std::vector<std::string_view> names = device_names();
  const bool is_device = std::ranges::find(names, text) != names.end() ||
                         text.find_first_of("-_") != text.npos ||
                         std::isalpha(static_cast<unsigned char>(text.front())) != 0 ||
                         (text.size() > 2 && text.find_first_not_of("0123456789") == text.npos);
  if (!is_device) return parse_bytes(text);
  return find_device(text).memory;
}

}  // namespace

void Changes::describe(Fields& fields, std::string_view steps_help,
                       std::string_view scenario_help) {
  fields.as({.value = "STEP"}).texts("with", steps_, steps_help);
  fields.path("scenario", scenario_, scenario_help);
}

void Changes::describe_machine(Fields& fields) {
  fields.name_or_path("machine", machine_,
                      "Predict for this device, like --with faster_device:to=NAME before all other "
                      "changes; a built-in name or a JSON file");
}

void Changes::describe_samples(Fields& fields) {
  fields.optional_number("samples_per_step", samples_per_step_,
                         "Samples in a recorded step; adds samples per second to the answer", 1e-3);
}

void Changes::describe_tokens(Fields& fields) {
  fields.optional_number("tokens_per_step", tokens_per_step_,
                         "Tokens in a recorded step; adds tokens per second to the answer", 1e-3);
}

Scenario Changes::scenario() const {
  Scenario scenario;
  if (scenario_.starts_with('{')) {
    scenario =
        within("scenario", [&] { return parse_scenario(parse_json<nlohmann::json>(scenario_)); });
  } else if (!scenario_.empty()) {
    scenario = read_scenario(scenario_);
  }
  for (const std::string& step : steps_)
    within("--with " + step, [&] { add_steps(step, scenario); });
  if (samples_per_step_) scenario.samples_per_step = *samples_per_step_;
  if (tokens_per_step_) scenario.tokens_per_step = *tokens_per_step_;
  if (!machine_.empty()) scenario.machine = machine_;
  return scenario;
}

void describe_memory_limit(Fields& fields, std::string& text, std::string_view help) {
  fields.as({.value = "BYTES|NAME"}).text("memory_limit", text, help);
}

std::optional<Bytes> memory_limit_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return within("--memory-limit", [&] {
    const Bytes limit = memory_of(text);
    if (limit <= Bytes{}) throw Error(fmt::format("must be more than 0B, got \"{}\"", text));
    return limit;
  });
}

void AllocatorChoice::describe(Fields& fields) {
  fields.as({.value = "SETTINGS"})
      .text("allocator", settings_,
            "Settings of the caching allocator, such as "
            "max_split_size=512MiB,expandable_segments=true; named as in \"memory\" of scenarios");
  fields.text("conf", conf_,
              "The same in the syntax of PYTORCH_CUDA_ALLOC_CONF: "
              "max_split_size_mb:512,expandable_segments:True");
  describe_memory_limit(fields, limit_,
                        "Available device memory, such as 16GB, or that of a device, such as "
                        "rtx-4090; unlimited by default");
}

void AllocatorChoice::set(AllocatorSettings& allocator) const {
  within("--conf", [&] { read_alloc_conf(conf_, allocator); });
  within("--allocator", [&] {
    if (settings_.starts_with('{')) {
      read_json(parse_json<nlohmann::json>(settings_), allocator);
    } else if (!settings_.empty()) {
      read_assigned(settings_, allocator);
    }
    const CachingAllocator checked(allocator);
  });
  if (const std::optional<Bytes> limit = memory_limit_of(limit_)) allocator.limit = *limit;
}

}  // namespace foretrace
