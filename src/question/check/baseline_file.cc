// The baseline file, which projects commit: one line for each figure, each group of work and each
// holder of memory, in a stable order, so that `git diff` shows what changed.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/files/json_file.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/question/check.h"
#include "question/check/job/figures.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// JSON whose keys keep their order: identity first and times last, because times differ in every
/// recording.
using Ordered = nlohmann::ordered_json;

constexpr std::string_view kBaselineSchema = "foretrace.baseline/2";
/// Schema of files without kernels and runs. They are read, except for metrics that are computed
/// differently in the newer schema.
constexpr std::string_view kFirstSchema = "foretrace.baseline/1";

template <class Value>
void put_unless_empty(Ordered& object, const char* key, const Value& value) {
  if (value != Value{}) object[key] = value;
}

Ordered group_json(const JobGroup& group) {
  Ordered object = {{"kind", to_string(group.kind)}};
  put_unless_empty(object, "op", group.op);
  put_unless_empty(object, "module", group.module);
  put_unless_empty(object, "file", group.file);
  put_unless_empty(object, "function", group.function);
  put_unless_empty(object, "name", group.name);
  for (const auto& [line, count] : group.lines) object["lines"].push_back({line, count});
  object["count"] = group.count;
  put_unless_empty(object, "aside", group.aside);
  put_unless_empty(object, "pageable", group.pageable);
  put_unless_empty(object, "bytes", group.bytes.count);
  put_unless_empty(object, "hidden_ns", group.hidden.count());
  put_unless_empty(object, "critical_ns", group.critical.count());
  put_unless_empty(object, "work_ns", group.work.count());
  if (group.most > group.work) object["most_ns"] = group.most.count();
  if (group.count > 1) put_unless_empty(object, "longest_ns", group.longest.count());
  return object;
}

Ordered kernel_json(const KernelTimes& kernel) {
  Ordered object = {{"name", kernel.name},
                    {"key", kernel.key},
                    {"count", kernel.count},
                    {"each_ns", kernel.each.count()},
                    {"least_ns", kernel.least.count()},
                    {"most_ns", kernel.most.count()}};
  put_unless_empty(object, "runs_ns", kernel.runs);
  return object;
}

Ordered memory_json(const MemoryGroup& group) {
  Ordered object = Ordered::object();
  put_unless_empty(object, "op", group.op);
  put_unless_empty(object, "module", group.module);
  put_unless_empty(object, "file", group.file);
  put_unless_empty(object, "function", group.function);
  put_unless_empty(object, "line", group.line);
  put_unless_empty(object, "peak_bytes", group.peak.count);
  put_unless_empty(object, "kept_bytes", group.kept.count);
  return object;
}

Ordered figure_json(const CheckBaseline& baseline, const std::string& name,
                    const std::vector<std::int64_t>& values) {
  Ordered object = Ordered::object();
  if (const auto limit = baseline.fail.find(name); limit != baseline.fail.end())
    object["fail"] = limit->second.text;
  if (const auto limit = baseline.warn.find(name); limit != baseline.warn.end())
    object["warn"] = limit->second.text;
  object["steps"] = values;
  for (const FigureSteps& run : baseline.summary.runs) {
    const auto found = run.find(name);
    object["runs"].push_back(found == run.end() ? std::vector<std::int64_t>{} : found->second);
  }
  return object;
}

/// Throws Error if the key is missing.
const Json& value_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(fmt::format("must have a key \"{}\"", key));
  return *found;
}

/// Reads a key of an object. Throws Error if it is missing or of another type.
template <class Value>
Value needed(const Json& object, const char* key) {
  const Json& found = value_of(object, key);
  if (std::is_integral_v<Value> && !found.is_number_integer())
    throw Error(fmt::format("{}: must be a whole number, got {}", key, json_line(found)));
  try {
    return found.template get<Value>();
  } catch (const Json::exception&) {
    throw Error(fmt::format("{}: must be of the type that check --bless writes, got {}", key,
                            json_line(found)));
  }
}

/// Larger than any amount in a job, and small enough that sums of a few such numbers do not
/// overflow.
constexpr std::int64_t kGreatestAmount = 1'000'000'000'000'000'000;

std::int64_t bounded(std::int64_t amount, std::int64_t least = 0) {
  if (amount > kGreatestAmount || amount < least)
    throw Error(fmt::format("must be from {} to 10^18, got {}", least, amount));
  return amount;
}

template <class Value>
Value optional_value(const Json& object, const char* key) {
  return object.contains(key) ? needed<Value>(object, key) : Value{};
}

std::int64_t amount(const Json& object, const char* key) {
  return bounded(optional_value<std::int64_t>(object, key));
}

const Json& needed_section(const Json& object, const char* key, bool is_list) {
  const Json& found = value_of(object, key);
  if (is_list ? !found.is_array() : !found.is_object())
    throw Error(fmt::format("{}: must be {}", key, is_list ? "a list" : "an object"));
  return found;
}

TaskKind read_kind(const std::string& name) {
  const std::optional<TaskKind> kind = task_kind_named(name);
  if (!kind)
    throw Error(fmt::format("kind: must be a kind of work, got '{}'{}", name,
                            did_you_mean(name, task_kind_names())));
  return *kind;
}

JobGroup read_group(const Json& object) {
  if (!object.is_object()) throw Error("must be an object");
  JobGroup group;
  group.kind = read_kind(needed<std::string>(object, "kind"));
  group.count = bounded(needed<std::int64_t>(object, "count"));
  group.op = optional_value<std::string>(object, "op");
  group.module = optional_value<std::string>(object, "module");
  group.file = optional_value<std::string>(object, "file");
  group.function = optional_value<std::string>(object, "function");
  group.name = optional_value<std::string>(object, "name");
  group.lines = optional_value<std::vector<std::pair<int, std::int64_t>>>(object, "lines");
  group.work = Nanoseconds(amount(object, "work_ns"));
  group.most = std::max(group.work, Nanoseconds(amount(object, "most_ns")));
  group.longest = object.contains("longest_ns") ? Nanoseconds(amount(object, "longest_ns"))
                  : group.count <= 1            ? group.work
                                                : 0ns;
  group.hidden = Nanoseconds(amount(object, "hidden_ns"));
  group.critical = Nanoseconds(amount(object, "critical_ns"));
  group.bytes = Bytes{amount(object, "bytes")};
  group.aside = amount(object, "aside");
  group.pageable = amount(object, "pageable");
  return group;
}

MemoryGroup read_memory(const Json& object) {
  if (!object.is_object()) throw Error("must be an object");
  MemoryGroup group;
  group.op = optional_value<std::string>(object, "op");
  group.module = optional_value<std::string>(object, "module");
  group.file = optional_value<std::string>(object, "file");
  group.function = optional_value<std::string>(object, "function");
  group.line = optional_value<int>(object, "line");
  group.peak = Bytes{amount(object, "peak_bytes")};
  group.kept = Bytes{amount(object, "kept_bytes")};
  return group;
}

/// One line of the fingerprint: the identity of a group, its counts and its bytes.
std::string structure_line(const JobGroup& group) {
  return json_line(Json{to_string(group.kind), group.op, group.module, group.file, group.function,
                        group.name, group.count, group.aside, group.pageable, group.bytes.count});
}

/// Reads a list of whole numbers from `least` on; only the growth of memory may be negative.
std::vector<std::int64_t> whole_numbers(const Json& list, const char* key, std::int64_t least) {
  std::vector<std::int64_t> values;
  if (!list.is_array()) throw Error(fmt::format("{}: must be a list", key));
  for (const Json& value : list) {
    if (!value.is_number_integer())
      throw Error(fmt::format("{}: must be whole numbers, got {}", key, json_line(value)));
    values.push_back(bounded(value.get<std::int64_t>(), least));
  }
  return values;
}

KernelTimes read_kernel(const Json& object) {
  if (!object.is_object()) throw Error("must be an object");
  KernelTimes kernel;
  kernel.name = needed<std::string>(object, "name");
  kernel.key = needed<std::string>(object, "key");
  kernel.count = amount(object, "count");
  kernel.each = Nanoseconds(amount(object, "each_ns"));
  kernel.least = Nanoseconds(amount(object, "least_ns"));
  kernel.most = Nanoseconds(amount(object, "most_ns"));
  if (object.contains("runs_ns")) kernel.runs = whole_numbers(object["runs_ns"], "runs_ns", 0);
  if (kernel.runs.size() > kMaxRuns)
    throw Error(fmt::format("runs_ns: must be at most {}", kMaxRuns));
  return kernel;
}

void read_runs(const std::string& name, const Json& list, std::vector<FigureSteps>& runs) {
  if (!list.is_array() || list.size() > kMaxRuns)
    throw Error(fmt::format("runs: must be a list of at most {}", kMaxRuns));
  runs.resize(std::max(runs.size(), list.size()));
  const std::int64_t least = figure_rule(name).may_fall ? -kGreatestAmount : 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (std::vector<std::int64_t> values = whole_numbers(list[i], "runs", least); !values.empty())
      runs[i][name] = std::move(values);
  }
}

void read_figures(const Json& figures, CheckBaseline& baseline) {
  for (const auto& [name, object] : figures.items()) {
    within("metrics: " + name, [&, &name = name, &object = object] {
      const FigureEntry& entry = figure_entry(name);
      if (!object.is_object()) throw Error("must be an object");
      const std::int64_t least = figure_rule(name).may_fall ? -kGreatestAmount : 0;
      baseline.summary.figures[name] =
          whole_numbers(needed_section(object, "steps", true), "steps", least);
      if (baseline.summary.figures[name].empty()) throw Error("steps: must not be empty");
      if (object.contains("runs")) read_runs(name, object["runs"], baseline.summary.runs);
      for (const auto& [key, limits] :
           {std::pair("fail", &baseline.fail), std::pair("warn", &baseline.warn)}) {
        if (object.contains(key))
          (*limits)[name] = parse_limit(needed<std::string>(object, key), entry);
      }
    });
  }
}

template <class Read, class Group>
void read_list(const Json& document, const char* key, Read read, std::vector<Group>& groups) {
  const Json& list = needed_section(document, key, true);
  for (std::size_t i = 0; i < list.size(); ++i) {
    within(fmt::format("{}[{}]", key, i), [&] { groups.push_back(read(list[i])); });
  }
}

/// Throws Error unless the values are so small that ten times any sum of them fits 64 bits.
void check_total(const JobSummary& summary) {
  double total = 0;
  const auto add = [&](std::int64_t amount) { total += std::abs(static_cast<double>(amount)); };
  for (const JobGroup& group : summary.groups) {
    for (const std::int64_t amount :
         {group.count, group.work.count(), group.hidden.count(), group.critical.count(),
          group.bytes.count, group.aside, group.pageable})
      add(amount);
    for (const auto& [line, count] : group.lines) add(count);
  }
  for (const MemoryGroup& group : summary.memory) add(group.peak.count), add(group.kept.count);
  for (const KernelTimes& kernel : summary.kernels) {
    total += static_cast<double>(kernel.each.count()) * static_cast<double>(kernel.count);
    add(kernel.most.count());
  }
  if (total > 1e17) throw Error("its work and memory must add up to at most 10^17");
}

/// Drops metrics that an older tool computed differently, so that they are neither compared nor
/// reported as missing.
void drop_outdated(CheckBaseline& baseline) {
  for (const FigureRule& rule : figure_rules()) {
    if (rule.since_schema == 1) continue;
    const std::string name(rule.entry.name);
    if (baseline.summary.figures.erase(name) > 0) baseline.outdated.push_back(name);
    baseline.fail.erase(name), baseline.warn.erase(name);
  }
}

CheckBaseline parse_baseline(const Json& document) {
  const std::string schema =
      document.is_object() ? optional_value<std::string>(document, "schema") : std::string();
  if (schema != kBaselineSchema && schema != kFirstSchema)
    throw Error(fmt::format("must be a baseline (\"schema\": \"{}\"), as check --bless writes it",
                            kBaselineSchema));
  const int model = needed<int>(document, "model");
  if (model != kCheckModel)
    throw Error(fmt::format(
        "must be made by model {}, got model {} of foretrace {}, which cannot be compared; "
        "create it anew with --bless",
        kCheckModel, model, needed<std::string>(document, "tool")));
  CheckBaseline baseline;
  baseline.tool = needed<std::string>(document, "tool");
  baseline.scenario = json_line(needed_section(document, "scenario", false));
  baseline.fingerprint = needed<std::string>(document, "fingerprint");
  baseline.summary.device = optional_value<std::string>(document, "device");
  baseline.summary.detail = needed<int>(document, "detail");
  if (baseline.summary.detail < 0 || baseline.summary.detail > kCoarsestDetail)
    throw Error(fmt::format("detail: must be from 0 to {}, got {}", kCoarsestDetail,
                            baseline.summary.detail));
  baseline.summary.rank = needed<int>(document, "rank");
  read_figures(needed_section(document, "metrics", false), baseline);
  read_list(document, "work", read_group, baseline.summary.groups);
  read_list(document, "memory", read_memory, baseline.summary.memory);
  if (schema == kFirstSchema) {
    drop_outdated(baseline);
  } else {
    read_list(document, "kernels", read_kernel, baseline.summary.kernels);
  }
  check_total(baseline.summary);
  return baseline;
}

}  // namespace

std::string structure_fingerprint(const JobSummary& summary) {
  std::string lines;
  for (const JobGroup& group : summary.groups) {
    if (group.kind != TaskKind::host && group.kind != TaskKind::input)
      lines += structure_line(group) + "\n";
  }
  return hash_digits(lines);
}

CheckBaseline parse_baseline_text(std::string_view text) {
  return parse_baseline(parse_json_text(text));
}

CheckBaseline read_baseline(const std::string& path) {
  const Json document = read_json_file(path);
  return within(path, [&] { return parse_baseline(document); });
}

std::string write_baseline(const CheckBaseline& baseline) {
  const JobSummary& summary = baseline.summary;
  std::string text = "{\n";
  const auto entry = [&](const char* key, const Json& value) {
    text += "  " + json_string(key) + ": " + json_line(value) + ",\n";
  };
  entry("schema", kBaselineSchema);
  entry("model", kCheckModel);
  entry("tool", baseline.tool);
  entry("scenario", parse_json<Json>(baseline.scenario));
  entry("fingerprint", baseline.fingerprint);
  entry("device", summary.device);
  entry("rank", summary.rank);
  entry("detail", summary.detail);
  text += "  \"metrics\": {\n";
  std::size_t left = summary.figures.size();
  for (const auto& [name, values] : summary.figures) {
    text += "    " + json_string(name) + ": " + json_line(figure_json(baseline, name, values)) +
            (--left > 0 ? ",\n" : "\n");
  }
  text += "  },\n";
  const auto list = [&](const char* key, const auto& groups, const auto& to_line, const char* end) {
    text += "  " + json_string(key) + ": [\n";
    for (std::size_t i = 0; i < groups.size(); ++i)
      text += "    " + json_line(to_line(groups[i])) + (i + 1 < groups.size() ? ",\n" : "\n");
    text += end;
  };
  list("work", summary.groups, group_json, "  ],\n");
  list("kernels", summary.kernels, kernel_json, "  ],\n");
  list("memory", summary.memory, memory_json, "  ]\n}\n");
  return text;
}

}  // namespace foretrace
