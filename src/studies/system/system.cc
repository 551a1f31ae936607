#include "studies/system/system.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/numbers/expression.h"
#include "base/numbers/range.h"
#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "scenario/values.h"
#include "studies/system/asks.h"

namespace foretrace {
namespace {

// Reads a file that describes a system; system.h has an example.

struct SystemTask final : Described {
  void describe(Fields& fields) override;
  std::string name{}, lanes = "1", count = "1", time = "0";
  std::vector<std::string> after{};
};

struct SystemDescription final : Described {
  void describe(Fields& fields) override;  ///< Describes only the settings that are texts.
  std::string title{}, repeat = "1", minimize = "time";
  std::vector<std::string> lets{}, figures{}, subject_to{}, asserts{}, means{}, assert_means{};
  std::vector<std::string> assumed{};
  NamedNumbers settings{};
  std::vector<SystemAsk> asks{};
  std::vector<PublishedFigure> published{};
  std::vector<SystemTask> tasks{};
  std::vector<NamedNumbers> rows{};
  std::vector<std::pair<std::string, std::vector<double>>> search{};
};

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

/// Reads a range or a list of numbers.
std::vector<double> values_of(const Json& json) {
  std::vector<double> values;
  if (json.is_string()) {
    auto text = json.get<std::string>();
    const auto range = split_range(text);
    if (range && range->step == RangeStep::usual) text += "/+1";
    for (const std::string& value :
         range ? read_values(text, true).listed : std::vector<std::string>())
      values.push_back(parse_number<double>(value).value());
  }
  each_in(json.is_array() ? json : Json(), "values", [&](const Json& value) {
    if (!value.is_number()) throw Error("must be a number, got " + json_line(value));
    values.push_back(value.get<double>());
  });
  if (values.empty()) throw Error("must be a list of numbers, or a range such as \"1..16\"");
  return values;
}

/// Splits "name = formula". Throws Error if it is not of that form.
std::pair<std::string, std::string> definition_of(const std::string& text) {
  const std::size_t sign = text.find('=');
  std::string name = text.substr(0, sign);
  while (name.ends_with(' ')) name.pop_back();
  if (sign == std::string::npos || !is_variable(name))
    throw Error(fmt::format("must be \"name = formula\", got \"{}\"", text));
  return {name, text.substr(sign + 1)};
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
  fields.texts("assumed", assumed, "Sentences that the answer repeats");
}

/// A published value of a figure, as a file states it.
struct PublishedSettings final : Described {
  void describe(Fields& fields) override {
    fields.text("figure", published.name, "Name of a figure");
    fields.number("value", published.value, "Its published value");
    fields.number("within", published.within, "How far off is in range: a share of the value", 0);
    fields.text("why", published.why, "Why it is out of range");
  }
  PublishedFigure published{};
};

/// Reads a description. Throws Error with the place.
SystemDescription read_system(const std::string& path) {
  Json json = read_json_file(path);
  return within(path, [&] {
    if (!json.is_object()) throw Error("must be an object");
    SystemDescription system;
    extract(json, "$comment");
    const Json settings = extract(json, "settings"), tasks = extract(json, "tasks");
    const Json rows = extract(json, "rows"), search = extract(json, "search");
    const Json asks = extract(json, "asks"), published = extract(json, "published");
    read_json(json, system);
    system.settings = within("settings", [&] { return numbers_of(settings); });
    each_in(tasks, "tasks", [&](const Json& task) { read_task(task, system.tasks); });
    each_in(asks, "asks", [&](const Json& ask) { system.asks.push_back(read_ask(ask)); });
    if (system.tasks.empty() && system.asks.empty()) throw Error("must have \"tasks\" or \"asks\"");
    each_in(published, "published", [&](const Json& one) {
      PublishedSettings read;
      read_json(one, read);
      const bool is_figure = std::ranges::any_of(system.figures, [&](const std::string& figure) {
        return definition_of(figure).first == read.published.name;
      });
      if (!is_figure)
        throw Error(
            fmt::format("figure: must be one of the figures, got \"{}\"", read.published.name));
      system.published.push_back(std::move(read.published));
    });
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

constexpr double kMaxTasks = 1e6, kMaxPoints = 1e6;
constexpr double kSecond = 1e9;

double number_at_most(const char* setting, const std::string& formula, const NamedNumbers& numbers,
                      double most) {
  const double value = formula_value(formula, numbers);
  if (!(value >= 0 && value <= most))
    throw Error(
        fmt::format("{}: must be from 0 to {}, got {}", setting, to_text(most), to_text(value)));
  return value;
}

void define(const std::vector<std::string>& definitions, NamedNumbers& numbers) {
  for (const std::string& text : definitions) {
    const auto [name, formula] = definition_of(text);
    numbers[name] = formula_value(formula, numbers);
  }
}

std::vector<std::string> failed_conditions(const std::vector<std::string>& asserts,
                                           const NamedNumbers& numbers) {
  std::vector<std::string> failed;
  for (const std::string& condition : asserts) {
    if (formula_value(condition, numbers) == 0) failed.push_back(condition);
  }
  return failed;
}

/// The graph of a system for given numbers.
class SystemGraph {
 public:
  SystemGraph(const SystemDescription& system, const NamedNumbers& numbers) {
    double repetition_tasks = 1;
    for (const SystemTask& task : system.tasks) {
      within("task " + task.name, [&] { add_group(task, numbers); });
      repetition_tasks += static_cast<double>(groups_.back().count) + 1;
    }
    const double repeat = number_at_most("repeat", system.repeat, numbers, kMaxTasks);
    if (repetition_tasks * repeat > kMaxTasks)
      throw Error("must have at most 1,000,000 tasks, has " + to_text(repetition_tasks * repeat));
    const LaneId ends = graph_.add_lane({.name = "repetitions"});
    for (std::int64_t i = 0; i < std::llround(repeat); ++i) add_repetition(ends);
  }

  double seconds() const {
    return static_cast<double>(simulate(graph_, {.memory = false}).length.count()) / kSecond;
  }
  std::size_t tasks() const { return graph_.task_count(); }

 private:
  struct Group {
    const SystemTask* task = nullptr;
    std::vector<LaneId> lanes{};
    /// Lane of marks that wait for the whole group, so that many tasks can wait for many others.
    LaneId done{};
    std::size_t count = 0;
    Nanoseconds time{0};
  };

  void add_group(const SystemTask& task, const NamedNumbers& numbers) {
    Group group{.task = &task, .done = graph_.add_lane({.name = task.name + " done"})};
    constexpr double kLongest = 1e9;
    group.count = static_cast<std::size_t>(number_at_most("count", task.count, numbers, kMaxTasks));
    group.time =
        Nanoseconds(std::llround(number_at_most("time", task.time, numbers, kLongest) * kSecond));
    const double lanes = std::max(1., number_at_most("lanes", task.lanes, numbers, kMaxTasks));
    for (double i = 0; i < lanes; ++i) group.lanes.push_back(graph_.add_lane({.name = task.name}));
    groups_.push_back(std::move(group));
  }

  void add_repetition(LaneId ends) {
    std::map<std::string, TaskId> done;
    for (const Group& group : groups_) {
      const NameId name = graph_.names().intern(group.task->name);
      const TaskId mark = graph_.append(group.done, {.name = name});
      const auto add_waits = [&](TaskId task) {
        wait(last_, task);
        for (const std::string& before : group.task->after) wait(done.at(before), task);
      };
      add_waits(mark);
      for (std::size_t i = 0; i < group.count; ++i) {
        const TaskId task = graph_.append(group.lanes[i % group.lanes.size()],
                                          {.duration = group.time, .name = name});
        add_waits(task);
        wait(task, mark);
      }
      done[group.task->name] = mark;
    }
    last_ = graph_.append(ends, {});
    for (const auto& [name, mark] : done) wait(mark, last_);
  }

  void wait(TaskId before, TaskId after) {
    if (before != kNoTask) graph_.add({.before = before, .after = after});
  }

  Graph graph_;
  std::vector<Group> groups_;
  TaskId last_ = kNoTask;
};

class SystemRun {
 public:
  SystemRun(const SystemDescription& system, Asker& asker, const NamedNumbers& overrides)
      : system_(system), asker_(asker), numbers_(system.settings) {
    for (const auto& [name, value] : overrides) numbers_[name] = row_.settings[name] = value;
  }

  /// Returns the best point of a search, the first among equal ones. Stores its numbers in
  /// `numbers`.
  SystemRow run(NamedNumbers& numbers) {
    double points = 1;
    for (const auto& [name, values] : system_.search) points *= static_cast<double>(values.size());
    if (points > kMaxPoints) throw Error("search: must have at most 1,000,000 points");
    each_point(0);
    if (row_.tried == 0) throw Error("subject_to: leaves no point of the search");
    if (system_.search.empty()) row_.tried = 0;
    for (const auto& [name, values] : system_.search) row_.settings[name] = best_.at(name);
    row_.seconds = best_.at("time");
    for (const std::string& text : system_.figures) {
      const std::string name = definition_of(text).first;
      row_.figures.emplace_back(name, best_.at(name));
    }
    row_.failed = failed_conditions(system_.asserts, best_);
    numbers = std::move(best_);
    return std::move(row_);
  }

 private:
  void each_point(std::size_t setting) {
    if (setting == system_.search.size()) return try_point(numbers_);
    const auto& [name, values] = system_.search[setting];
    for (const double value : values) {
      numbers_[name] = value;
      each_point(setting + 1);
    }
  }

  void try_point(NamedNumbers numbers) {
    for (std::size_t i = 0; i < system_.asks.size(); ++i)
      within(fmt::format("asks[{}]", i), [&] { asker_.add(system_.asks[i], numbers); });
    define(system_.lets, numbers);
    if (!failed_conditions(system_.subject_to, numbers).empty()) return;
    ++row_.tried;
    const SystemGraph graph(system_, numbers);
    numbers["time"] = graph.seconds();
    define(system_.figures, numbers);
    const double objective = formula_value(system_.minimize, numbers);
    if (objective >= least_objective_) return;
    least_objective_ = objective, best_ = std::move(numbers), row_.tasks = graph.tasks();
  }

  const SystemDescription& system_;
  Asker& asker_;
  NamedNumbers numbers_, best_;
  double least_objective_ = std::numeric_limits<double>::infinity();
  SystemRow row_;
};

void add_means(const SystemDescription& system, const std::vector<NamedNumbers>& answers,
               SystemReport& report) {
  NamedNumbers means;
  for (const std::string& text : system.means) {
    const auto [name, formula] = definition_of(text);
    double logarithms = 0;
    for (const NamedNumbers& numbers : answers)
      logarithms += std::log(formula_value(formula, numbers));
    means[name] = std::exp(logarithms / static_cast<double>(answers.size()));
    report.means.emplace_back(name, means[name]);
  }
  report.failed = failed_conditions(system.assert_means, means);
}

}  // namespace

SystemReport run_system(const std::string& path, const std::map<std::string, double>& settings,
                        const AskOptions& options) {
  const SystemDescription system = read_system(path);
  SystemReport report{.title = system.title.empty() ? path : system.title,
                      .has_tasks = !system.tasks.empty(),
                      .published = system.published,
                      .assumptions = system.assumed};
  Asker asker(path, options);
  for (const auto& [name, value] : settings) {
    if (!system.settings.contains(name))
      throw Error(fmt::format("--set: there is no setting \"{}\" in {}", name, path));
  }
  std::vector<NamedNumbers> rows = system.rows, answers;
  if (rows.empty()) rows.emplace_back();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    within(system.rows.empty() ? path : fmt::format("{}: rows[{}]", path, i), [&] {
      for (const auto& [name, value] : settings) rows[i][name] = value;
      report.rows.push_back(SystemRun(system, asker, rows[i]).run(answers.emplace_back()));
    });
  }
  within(path, [&] { add_means(system, answers, report); });
  for (const std::string& sentence : asker.assumptions()) report.assumptions.push_back(sentence);
  return report;
}

}  // namespace foretrace
