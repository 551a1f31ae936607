#include "launch/launch.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/fields/assignments.h"
#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/registered.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

bool is_named(std::string_view key, std::string_view wanted) {
  if (!wanted.starts_with('.')) return key == wanted;
  return key == wanted.substr(1) || key.ends_with(wanted);
}

[[noreturn]] void refuse(const ConfigValue& value, std::string_view wanted) {
  if (value.text == "auto")
    throw Error(fmt::format(
        "{}: is \"auto\", which a trainer fills in; write the value that it fills in", value.key));
  if (value.text.find('$') != std::string::npos)
    throw Error(fmt::format(
        "{}: '{}' is known only when the script runs; give the command that it runs (`bash -x` "
        "prints it)",
        value.key, value.text));
  throw Error(fmt::format("{}: must be {}, got '{}'", value.key, wanted, value.text));
}

}  // namespace

const ConfigValue* ConfigReader::find(std::initializer_list<std::string_view> keys) {
  const ConfigValue* found = nullptr;
  for (const std::string_view key : keys) {
    for (const ConfigValue& value : config_.values) {
      if (!is_named(value.key, key)) continue;
      read_.insert(value.key);
      if (value.text != "null" && (found == nullptr || found->key == value.key)) found = &value;
    }
  }
  return found;
}

std::optional<std::int64_t> ConfigReader::integer(std::initializer_list<std::string_view> keys) {
  const ConfigValue* value = find(keys);
  if (value == nullptr) return std::nullopt;
  const auto read = parse_number<std::int64_t>(value->text);
  if (!read) refuse(*value, "a whole number");
  return read;
}

std::int64_t ConfigReader::integer(std::initializer_list<std::string_view> keys,
                                   std::int64_t usual) {
  const ConfigValue* value = find(keys);
  const std::int64_t read = integer(keys).value_or(usual);
  if (read < 1 && value != nullptr) refuse(*value, "a whole number of at least 1");
  return read;
}

std::int64_t ConfigReader::stated(std::initializer_list<std::string_view> keys,
                                  std::string_view what) {
  const std::string_view key = *keys.begin();
  if (!has(keys))
    throw Error(fmt::format("{}: must be in the file, the {}",
                            key.substr(key.starts_with('.') ? 1 : 0), what));
  return integer(keys, 1);
}

std::optional<std::int64_t> ConfigReader::known_integer(
    std::initializer_list<std::string_view> keys) {
  const ConfigValue* value = find(keys);
  return value == nullptr || value->text.find('$') != std::string::npos
             ? std::nullopt
             : parse_number<std::int64_t>(value->text);
}

double ConfigReader::number(std::initializer_list<std::string_view> keys, double usual) {
  const ConfigValue* value = find(keys);
  if (value == nullptr) return usual;
  const auto read = parse_number<double>(value->text);
  if (!read) refuse(*value, "a number");
  return *read;
}

std::string ConfigReader::word(std::initializer_list<std::string_view> keys,
                               const std::string& usual) {
  const ConfigValue* value = find(keys);
  if (value == nullptr) return usual;
  if (value->text.find('$') != std::string::npos) refuse(*value, "a word");
  return value->text;
}

bool ConfigReader::flag(std::initializer_list<std::string_view> keys, bool usual) {
  const ConfigValue* value = find(keys);
  if (value == nullptr) return usual;
  const std::string text = lower_case(value->text);
  // An argument without a value may seem to have one: the next word of its command.
  if (config_.form == ConfigForm::arguments) return text != "false";
  if (text != "true" && text != "false") refuse(*value, "true or false");
  return text == "true";
}

std::string ConfigReader::list(std::string_view key) {
  if (const ConfigValue* value = find({key})) {
    if (config_.form != ConfigForm::arguments) return value->text;
    return config_.text.substr(value->begin, config_.text.find(" --", value->begin) - value->begin);
  }
  std::string all;
  for (const ConfigValue& value : config_.values) {
    const std::size_t dot = value.key.rfind('.');
    if (dot == std::string::npos || !is_named(value.key.substr(0, dot), key)) continue;
    read_.insert(value.key), all += value.text + ' ';
  }
  return all;
}

std::vector<std::string> ConfigReader::unread() const {
  std::set<std::string> keys;
  for (const ConfigValue& value : config_.values) {
    if (!read_.contains(value.key)) keys.insert(value.key);
  }
  return {keys.begin(), keys.end()};
}

void note_not_priced(ConfigReader& config, std::initializer_list<std::string_view> keys,
                     LaunchSettings& said) {
  for (const std::string_view key : keys) {
    const std::size_t equal = std::min(key.find('='), key.size() - 1);
    const ConfigValue* const value = config.find({key[equal] == '=' ? key.substr(0, equal) : key});
    if (value == nullptr || value->text == key.substr(equal + 1)) continue;
    if (lower_case(value->text) == "false" || value->text == "none") continue;
    said.notes.push_back(
        fmt::format("{} changes the step or its memory and is not priced", value->key));
  }
}

const std::vector<LaunchProgram>& launch_programs() {
  static const std::vector<LaunchProgram> all = {
#define PROGRAM(name) name##_program(),
#include "launch/programs.def"
#undef PROGRAM
  };
  return all;
}

std::vector<const LaunchProgram*> flag_programs() {
  std::vector<const LaunchProgram*> programs;
  for (const LaunchProgram& program : launch_programs()) {
    if (program.has_flags) programs.push_back(&program);
  }
  return programs;
}

std::vector<std::string> flags_of(const LaunchProgram& program, const Layout& layout) {
  std::vector<std::string> flags;
  for (const ConfigChange& change : program.changes(layout)) {
    if (change.value != change.usual) flags.push_back(argument_text(change));
  }
  return flags;
}

namespace {

/// Says which arguments count if a script has conditions, which are not followed.
void add_conditions(LaunchFile& file) {
  if (file.config.form != ConfigForm::arguments ||
      ("\n" + file.config.text).find("\nif ") == std::string::npos)
    return;
  file.settings.notes.emplace_back(
      "the script has conditions, which are not followed: every argument in it counts, and of one "
      "that it has twice the last");
}

/// The names of settings, shortened if there are many.
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t kShown = 12;
  if (names.size() > kShown) names.resize(kShown), names.emplace_back("...");
  return joined(names);
}

void add_unread(const std::vector<std::string>& unread, LaunchFile& file) {
  if (unread.empty()) return;
  file.settings.notes.push_back(fmt::format("{} of the file {} no part in the price: {}",
                                            counted(unread.size(), "setting"),
                                            unread.size() == 1 ? "has" : "have", some_of(unread)));
}

const LaunchProgram& program_of(const Config& config) {
  std::vector<std::string_view> names;
  for (const LaunchProgram& program : launch_programs()) {
    ConfigReader reader(config);
    if (program.recognizes(reader)) return program;
    names.push_back(program.name);
  }
  std::vector<std::string> keys;
  for (const ConfigValue& value : config.values) keys.push_back(value.key);
  throw Error(
      fmt::format("is no configuration of {}; its settings are {}", joined(names), some_of(keys)));
}

}  // namespace

LaunchFile read_launch_file(const std::string& path) {
  LaunchFile file{.path = path, .config = read_config(path)};
  return within(path, [&] {
    file.program = &program_of(file.config);
    ConfigReader reader(file.config);
    file.settings = file.program->read(reader);
    add_conditions(file);
    add_unread(reader.unread(), file);
    return file;
  });
}

namespace {

/// The number of devices that a file, its reader or its batch tells; 0 if none does.
std::int64_t devices_of(const LaunchSettings& said, const Layout& layout, bool has_data,
                        std::int64_t gpus) {
  const std::int64_t others = layout.tensor * layout.pipeline * layout.context;
  if (has_data) return layout.data * others;
  if (gpus > 0) return gpus;
  if (said.gpus) return *said.gpus;
  if (said.global_batch && said.accumulation) {
    const std::int64_t of_rank = layout.micro_batch * *said.accumulation;
    if (*said.global_batch % of_rank != 0)
      throw Error(fmt::format(
          "the batch of a step, {}, must be a multiple of the micro-batch times its accumulation, "
          "{} x {}",
          *said.global_batch, layout.micro_batch, *said.accumulation));
    return *said.global_batch / of_rank * others;
  }
  return 0;
}

/// The micro-batch that the batch of a step leaves.
std::int64_t micro_batch_left(const LaunchSettings& said, std::int64_t data) {
  const std::int64_t times = said.accumulation.value_or(1);
  if (*said.global_batch % (data * times) != 0)
    throw Error(fmt::format(
        "the batch of a step must be a multiple of accumulation x ranks, {} x {}, got {}", times,
        data, *said.global_batch));
  return *said.global_batch / (data * times);
}

/// How often a rank with so many samples drains its pipeline.
std::int64_t flushes_of(const LaunchSettings& said, std::int64_t samples) {
  if (samples % *said.local_batch != 0)
    throw Error(fmt::format("the batch of a rank must be a multiple of its local batch, {}, got {}",
                            *said.local_batch, samples));
  return samples / *said.local_batch;
}

}  // namespace

std::string launch_layout(const LaunchFile& file, const std::string& stated, std::int64_t gpus) {
  const LaunchSettings& said = file.settings;
  Layout layout;
  nlohmann::json settings = said.layout;
  const nlohmann::json own = within("--layout", [&] {
    return stated.empty() ? nlohmann::json::object() : read_assignments(stated, layout);
  });
  settings.update(own);
  return within(file.path, [&] {
    const auto ranks = [&](const char* name) { return settings.value(name, std::int64_t{1}); };
    layout.tensor = ranks("tp"), layout.pipeline = ranks("pp"), layout.context = ranks("cp");
    layout.data = ranks("dp"), layout.micro_batch = ranks("micro_batch");
    const std::int64_t others = layout.tensor * layout.pipeline * layout.context;
    const std::int64_t devices = devices_of(said, layout, settings.contains("dp"), gpus);
    if (devices == 0)
      throw Error("does not say on how many GPUs the job runs; give --gpus, or dp=N with --layout");
    if (devices % others != 0)
      throw Error(fmt::format(
          "{} GPUs must be a multiple of tp x pp x cp, {} x {} x {}; --gpus gives another number",
          devices, layout.tensor, layout.pipeline, layout.context));
    const std::int64_t data = devices / others;
    settings["dp"] = data;
    if (said.micro_batch_follows && !own.contains("micro_batch"))
      settings["micro_batch"] = layout.micro_batch = micro_batch_left(said, data);
    const std::int64_t batch = data * layout.micro_batch * said.accumulation.value_or(1);
    if (said.global_batch && said.accumulation && *said.global_batch != batch)
      throw Error(fmt::format(
          "the batch of a step must be micro-batch x accumulation x ranks, {} x {} x {}, got {}",
          layout.micro_batch, *said.accumulation, data, *said.global_batch));
    if (!own.contains("global_batch")) settings["global_batch"] = said.global_batch.value_or(batch);
    if (said.local_batch && !own.contains("flushes"))
      settings["flushes"] = flushes_of(said, settings["global_batch"].get<std::int64_t>() / data);
    return assignments_text(settings);
  });
}

std::string launch_model(const LaunchFile& file, const std::string& stated) {
  const LaunchSettings& said = file.settings;
  if (stated.empty() && said.model.empty())
    throw Error(fmt::format("{}: names no model; give MODEL as well", file.path));
  std::string model = stated.empty() ? said.model : stated;
  if (!said.sequence.empty() && model.find("sequence=") == std::string::npos)
    model += (model.find(':') == std::string::npos ? ":sequence=" : ",sequence=") + said.sequence;
  return model;
}

namespace {

/// Settings of a transformer with those filled in that follow from others.
nlohmann::json filled_in(nlohmann::json model) {
  const auto fill = [&](const char* name, const nlohmann::json& value) {
    if (model.at(name) == 0) model[name] = value;
  };
  fill("kv_heads", model["heads"]);
  fill("head_size", model["hidden"].get<std::int64_t>() / model["heads"].get<std::int64_t>());
  fill("value_size", model["head_size"]);
  fill("ffn", model["hidden"].get<std::int64_t>() * 4);
  fill("expert_ffn", model["ffn"]);
  return model;
}

nlohmann::json described(std::string_view name) {
  const nlohmann::json json = write_json(*find_workload(name));
  return json.contains("kv_heads") ? filled_in(json) : nlohmann::json();
}

}  // namespace

std::string model_text(const nlohmann::json& settings) {
  nlohmann::json whole = write_json(*find_workload("transformer"));
  whole.update(settings);
  if (whole["heads"] == 0) throw Error("heads: must be at least 1");
  whole = filled_in(whole);
  constexpr std::size_t kFew = 4;  // More would be another model of the same size.
  std::string_view nearest = "transformer";
  nlohmann::json base = write_json(*find_workload(nearest));
  std::size_t least = kFew + 1;
  for (const WorkloadEntry& entry : workloads()) {
    const nlohmann::json json = described(entry.name);
    if (json.is_null() || json["layers"] != whole["layers"] || json["hidden"] != whole["hidden"])
      continue;
    std::size_t differ = 0;
    for (const auto& [name, value] : whole.items()) differ += json[name] != value ? 1 : 0;
    if (differ < least) least = differ, nearest = entry.name, base = json;
  }
  nlohmann::json others = nlohmann::json::object();
  const bool is_known = least <= kFew;
  for (const auto& [name, value] : (is_known ? whole : settings).items()) {
    if (base[name] != value) others[name] = value;
  }
  return std::string(nearest) + (others.empty() ? "" : ":" + assignments_text(others));
}

}  // namespace foretrace
