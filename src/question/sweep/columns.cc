#include "question/sweep/columns.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/json_values.h"
#include "foretrace/answer/figure.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered json_of(Grade grade) { return to_string(grade); }
template <class Value>
Ordered json_of(const Value& value) {
  return value;
}

/// Reads a time or a size. No answer is negative, and the upper limit makes means fit into 64 bits.
std::int64_t amount_of(const Ordered& json) {
  constexpr std::int64_t kMax = 1'000'000'000'000'000'000;
  if (!json.is_number_integer()) throw Error("must be a whole number");
  const auto number = json.get<std::int64_t>();
  if (number < 0 || number > kMax)
    throw Error("must be from 0 to 10^18, got " + std::to_string(number));
  return number;
}

void read(const Ordered& json, Nanoseconds& time) { time = Nanoseconds(amount_of(json)); }
void read(const Ordered& json, Bytes& size) { size = Bytes{amount_of(json)}; }
void read(const Ordered& json, double& number) { number = json.get<double>(); }
void read(const Ordered& json, bool& holds) { holds = json.get<bool>(); }
void read(const Ordered& json, Grade& grade) {
  const auto word = json.get<std::string>();
  for (const Grade known : {Grade::good, Grade::fair, Grade::poor}) {
    if (word == to_string(known)) return void(grade = known);
  }
  throw Error(fmt::format("must be good, fair or poor, got \"{}\"", word));
}
template <class Value>
void read(const Ordered& json, std::optional<Value>& value) {
  if (!json.is_null()) read(json, value.emplace());
}

bool always(const SweepHeader&) { return true; }
bool with_intervals(const SweepHeader& header) { return header.intervals; }
bool with_front(const SweepHeader& header) { return header.front; }

template <auto kMember>
constexpr PointColumn column(const char* key, bool (*is_asked)(const SweepHeader&),
                             const char* title = "") {
  return {.key = key,
          .is_asked = is_asked,
          .value =
              [](const SweepPoint& point) {
                return point.refused.empty() ? json_of(point.*kMember) : Ordered();
              },
          .read = [](const Ordered& value, SweepPoint& point) { read(value, point.*kMember); },
          .title = title};
}

constexpr PointColumn kColumns[] = {
    column<&SweepPoint::step_time>("step_time_ns", always, "step"),
    column<&SweepPoint::speedup>("speedup", always),
    column<&SweepPoint::lower>("lower_ns", with_intervals),
    column<&SweepPoint::upper>("upper_ns", with_intervals),
    column<&SweepPoint::peak_allocated>("peak_allocated_bytes", always, "allocated"),
    column<&SweepPoint::peak_reserved>("peak_reserved_bytes", always, "reserved"),
    column<&SweepPoint::fits>("fits", always),
    column<&SweepPoint::trust>("trust", always),
    column<&SweepPoint::on_front>("on_front", with_front),
};

using Json = nlohmann::json;

/// Describes the tasks that a step is limited to, such as "kernel, /softmax/"; empty for all tasks.
std::string task_filter(const Json& step) {
  std::string text;
  const auto where = step.find("where");
  if (where == step.end() || !where->is_object()) return text;
  for (const auto& [key, value] : where->items()) {
    if (value.is_null() || value == "" || value == "any") continue;
    const bool says_itself = key == "kind" || key == "name" || key == "phase";
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", says_itself ? "" : key + " ",
                        value.is_string() ? value.get<std::string>() : json_line(value));
  }
  return text;
}

/// Returns a readable name, or the setting itself if it does not belong to a numbered step.
std::string label_of(const Json& scenario, const std::string& setting) {
  constexpr std::string_view kStep = "transforms[";
  const std::size_t end = setting.find("].");
  if (!setting.starts_with(kStep) || end == std::string::npos) return setting;
  std::size_t number = 0;
  std::from_chars(setting.data() + kStep.size(), setting.data() + end, number);
  const auto steps = scenario.find("transforms");
  if (steps == scenario.end() || !steps->is_array() || number >= steps->size()) return setting;
  const Json& step = (*steps)[number];
  const std::string filter = task_filter(step);
  return fmt::format("{} of {}{}", setting.substr(end + 2), step.value("use", ""),
                     filter.empty() ? "" : fmt::format(" ({})", filter));
}

}  // namespace

std::vector<const PointColumn*> columns_of(const SweepHeader& header) {
  std::vector<const PointColumn*> columns;
  for (const PointColumn& column : kColumns) {
    if (column.is_asked(header)) columns.push_back(&column);
  }
  return columns;
}

std::vector<const PointColumn*> table_columns(const SweepReport& report) {
  std::vector<const PointColumn*> columns = columns_of(report.header);
  std::erase_if(columns, [&](const PointColumn* column) {
    if (!report.header.has_times && unit_of_key(column->key) == "ns") return true;
    return *column->title == '\0' ||
           std::all_of(report.points.begin(), report.points.end(),
                       [&](const SweepPoint& point) { return column->value(point).is_null(); });
  });
  return columns;
}

std::string_view unit_of_key(std::string_view key) {
  if (key.ends_with("_bytes")) return "bytes";
  return key.ends_with("_ns") ? "ns" : "";
}

std::string_view without_unit(std::string_view key) {
  const std::string_view unit = unit_of_key(key);
  return unit.empty() ? key : key.substr(0, key.size() - unit.size() - 1);
}

std::string value_text(std::string_view key, const Ordered& value) {
  if (value.is_null()) return "-";
  const std::string_view unit = unit_of_key(key);
  if (unit == "ns") return to_text(Nanoseconds(value.get<std::int64_t>()));
  if (unit == "bytes") return to_text(Bytes{value.get<std::int64_t>()});
  return to_text(Figure{.name = {}, .value = value.get<double>()});
}

std::string column_title(const PointColumn& column, const SweepHeader& header) {
  return unit_of_key(column.key) == "ns" && !header.has_steps ? "recording" : column.title;
}

std::vector<std::string> setting_labels(const SweepHeader& header) {
  const Json scenario = try_parse_json<Json>(header.scenario_json);
  std::vector<std::string> labels;
  for (const std::string& setting : header.settings)
    labels.push_back(scenario.is_object() ? label_of(scenario, setting) : setting);
  const std::vector<std::string> all = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::count(all.begin(), all.end(), all[i]) > 1) labels[i] = header.settings[i];
  }
  return labels;
}

}  // namespace foretrace
