#include "ask/system/description.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/numbers/expression.h"
#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Removes a part from an object and returns it; null if there is none.
Json extract(Json& json, const char* name) {
  const Json part = json.value(name, Json());
  json.erase(name);
  return part;
}

template <class Each>
void each_in(const Json& list, const std::string& name, const Each& each) {
  if (!list.is_null() && !list.is_array()) throw Error(name + ": must be a list");
  for (std::size_t i = 0; i < list.size(); ++i)
    within(fmt::format("{}[{}]", name, i), [&] { each(list[i]); });
}

NamedNumbers numbers_of(const Json& json) {
  NamedNumbers numbers;
  if (!json.is_null() && !json.is_object()) throw Error("must be numbers by name");
  for (const auto& [name, value] : json.items()) {
    if (!is_variable(name) || !value.is_number())
      throw Error(fmt::format("{}: must be a number with a name of letters, got {}", name,
                              json_line(value)));
    numbers[name] = value.get<double>();
  }
  return numbers;
}

/// The values of a range such as "1..16", one apart; empty if it is not one.
std::vector<double> values_in(std::string_view text) {
  constexpr double kMostValues = 10'000;
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {};
  const auto first = parse_number<double>(text.substr(0, dots));
  const auto last = parse_number<double>(text.substr(dots + 2));
  if (!first || !last) return {};
  if (*last - *first >= kMostValues) throw Error("must have at most 10,000 values");
  std::vector<double> values;
  for (double value = *first; value <= *last; ++value) values.push_back(value);
  return values;
}

/// Reads a range or a list of numbers.
std::vector<double> values_of(const Json& json) {
  std::vector<double> values;
  if (json.is_string()) values = values_in(json.get_ref<const std::string&>());
  each_in(json.is_array() ? json : Json(), "values", [&](const Json& value) {
    if (!value.is_number()) throw Error("must be a number, got " + json_line(value));
    values.push_back(value.get<double>());
  });
  if (values.empty()) throw Error("must be a list of numbers, or a range such as \"1..16\"");
  return values;
}

void read_task(const Json& json, std::vector<SystemTask>& tasks) {
  SystemTask task;
  read_json(json, task);
  if (task.name.empty()) throw Error("must have a name");
  for (const std::string& name : task.after) {
    if (std::ranges::find(tasks, name, &SystemTask::name) == tasks.end())
      throw Error(fmt::format("after: must be tasks listed before it, got \"{}\"", name));
  }
  tasks.push_back(std::move(task));
}

}  // namespace

void SystemTask::describe(Fields& fields) {
  fields.text("name", name, "Name by which other tasks wait for it");
  fields.text("lanes", lanes, "Number of lanes, and so of such tasks that run at once");
  fields.text("count", count, "Number of such tasks");
  fields.text("time", time, "Seconds that each takes");
  fields.texts("after", after, "Tasks that must be done before any of these");
}

void SystemDescription::describe(Fields& fields) {
  fields.text("title", title, "First line of the answer");
  fields.texts("let", lets, "Numbers by formulas of settings and of earlier numbers");
  fields.text("repeat", repeat, "How many times all tasks run");
  fields.texts("figures", figures, "Numbers by formulas that may mention time");
  fields.texts("subject_to", subject_to, "Conditions that a point of the search must meet");
  fields.text("minimize", minimize, "Formula that the search minimizes");
  fields.texts("assert", asserts, "Conditions that each answer must meet");
  fields.texts("means", means, "Geometric means of formulas over the rows");
  fields.texts("assert_means", assert_means, "Conditions that the means must meet");
}

std::pair<std::string, std::string> definition_of(const std::string& text) {
  const std::size_t sign = text.find('=');
  std::string name = text.substr(0, sign);
  while (name.ends_with(' ')) name.pop_back();
  if (sign == std::string::npos || !is_variable(name))
    throw Error(fmt::format("must be \"name = formula\", got \"{}\"", text));
  return {name, text.substr(sign + 1)};
}

SystemDescription read_system(const std::string& path) {
  Json json = read_json_file(path);
  return within(path, [&] {
    if (!json.is_object()) throw Error("must be an object");
    SystemDescription system;
    extract(json, "$comment");
    const Json settings = extract(json, "settings"), tasks = extract(json, "tasks");
    const Json rows = extract(json, "rows"), search = extract(json, "search");
    read_json(json, system);
    system.settings = within("settings", [&] { return numbers_of(settings); });
    each_in(tasks, "tasks", [&](const Json& task) { read_task(task, system.tasks); });
    if (system.tasks.empty()) throw Error("must have \"tasks\"");
    each_in(rows, "rows", [&](const Json& row) { system.rows.push_back(numbers_of(row)); });
    if (!search.is_null() && !search.is_object())
      throw Error("search: must be values by the names of settings");
    for (const auto& item : search.items()) {
      system.search.emplace_back(
          item.key(), within("search: " + item.key(), [&] { return values_of(item.value()); }));
    }
    return system;
  });
}

}  // namespace foretrace
