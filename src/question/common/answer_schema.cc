#include "question/common/answer_schema.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "foretrace/allocator.h"
#include "foretrace/answer/check.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/serving.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/trace.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;
using Examples = std::vector<const Json*>;

/// Descriptions of properties of predictions whose names do not explain them; in other answers, the
/// same names can mean something else. The key is the end of the path of names, which begins with
/// the kind of answer; a later entry overrides an earlier one.
constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
    {"prediction.scenario", "Effective settings, defaults included"},
    {"prediction.measured", "What was recorded"},
    {".measured.step_time_ns", "Median of the steady steps"},
    {".measured.window_ns", "Length of the recording"},
    {".measured.counted_steps", "Steps that the step time is taken from"},
    {".measured.spread",
     "(slowest - fastest) / step time, without a tenth of the steps at either end"},
    {".measured.period", "Number of steps that alternate and are taken together"},
    {"d.steps", "Length of each step, in nanoseconds"},
    {"e.steps", "Length of each step, in nanoseconds"},
    {"prediction.baseline", "The replay of the unmodified job"},
    {".replay_error", "|baseline - measured| / measured"},
    {".pinned_tasks", "Tasks held at their recorded start because no cause is known"},
    {".unexplained_ns", "Delays on device lanes kept without a known cause"},
    {".peers_ns", "Time in collectives that only the traces of other ranks explain"},
    {".open_ns",
     "How much shorter a step would be without the time that the recording leaves open"},
    {".open_ns.unexplained", "Delays without a known cause"},
    {".open_ns.other_ranks", "Waits of collectives for other ranks"},
    {".tasks", "Tasks in the graph"},
    {".dependencies", "Number of dependencies by kind of evidence"},
    {".breakdown_ns", "Where the time of a typical step goes; the parts add up to the step time"},
    {".compute", "A kernel runs"},
    {".communication", "No kernel runs, but a collective does"},
    {".copy", "None of the above, but a copy or fill runs"},
    {".input", "None of the above, but a host thread loads data"},
    {".host", "None of the above, but a host thread works"},
    {".idle", "Nothing runs"},
    {".unknown", "None of the above, but a host thread waits for work that is not recorded"},
    {".rates", "Work that a rank gets done; null where unknown"},
    {".samples_per_second", "With --samples-per-step"},
    {".tokens_per_second", "With --tokens-per-step"},
    {".flops_per_step", "Matrix products and convolutions whose shapes were recorded"},
    {".known_share", "Share of the time of compute-bound kernels that flops_per_step covers"},
    {".peak_flops_per_second", "Peak of the device in half precision, dense"},
    {".mfu",
     "flops_per_step per step time, as a share of the peak; a lower bound where known_share is "
     "below 1, and null where it is below 0.5"},
    {".exposed_communication", "Share of a step in which only communication runs"},
    {".memory", "Peaks by device; empty where the trace has no memory events"},
    {".lower_allocated_bytes",
     "80 % of such changes have a peak from this to upper_allocated_bytes; null if not in doubt"},
    {".peak_reserved_bytes", "Reserved by the caching allocator, from its replay"},
    {".out_of_memory", "The first request that was refused under the memory limit"},
    {"prediction.predicted", "The replay of the job as the scenario changes it"},
    {".lower_ns", "Lower end of the interval; in a part, with this source alone"},
    {".upper_ns", "Upper end of the interval; in a part, with this source alone"},
    {".step_kinds",
     "Medians of the steps of each kind, where steps differ by more than 30 %; empty elsewhere"},
    {".is_typical", "Whether step_time_ns and its interval are those of this kind"},
    {".compute_lower_ns",
     "Kernel time of four of five steps is expected from this to compute_upper_ns"},
    {".level", "Share of steps that are expected between lower_ns and upper_ns"},
    {".resamples", "Replays with the work of other steps; 0 if none"},
    {".parts",
     "Sources of the interval: steps, model, inferred, unexplained, replay or missing_ranks"},
    {".memory_limit_bytes", "The memory limit in the question, or the memory of its machine"},
    {".assumptions", "What the prediction assumes"},
    {"prediction.unprofiled",
     "Step times without the host time that the profiler itself takes; null if unknown, or for "
     "several ranks"},
    {".per_record_ns", "Host time that recording one op, call or block of memory takes"},
    {".baseline_step_time_ns", "The replay of the job as it was recorded, without that time"},
    {".predicted_step_time_ns", "The replay of the changed job, without that time"},
    {".speedup", "Baseline step time / predicted step time"},
    {".steps[].use", "The step in the form that --with takes"},
    {".figures", "Numbers that the step computed in addition to its edits"},
    {"prediction.rank", "The rank that the answer is about"},
    {"prediction.ranks",
     "The ranks of a job that has several; of ranks that are alike, only the first"},
    {".alike", "Number of other ranks that are provably like this one"},
    {".lower_steps", "Lower ends of the intervals of its steps, in ns; upper_steps: upper ends"},
    {".is_recorded", "False if the rank was not recorded but is assumed to be like one that was"},
    {".matched_collectives", "Recorded collectives that were matched with those of other ranks"},
    {".skew_ns", "Time in its collectives until the last rank had entered, in the recording"},
    {".transfer_ns", "The rest of the time of its matched collectives"},
    {".times_last", "Number of collectives that it entered last"},
    {".keeps_waiting_ns", "How long after the last but one it entered these, in all"},
    {".clock_offset_ns", "To be added to its clock to get the common time, that of the first rank"},
    {".clock_residual_ns", "Median distance that is left between the ends of common collectives"},
    {".clock_drift", "Time gained on the common clock, as a share of the time that passes"},
    {"prediction.trust",
     "How far the answer can be relied on; the grade is that of the worst reason"},
    {".grade", "good, fair or poor"},
    {".limit", "Limit that the value is compared with"},
    {"prediction.notes", "Odd data, in order of appearance"},
    {".severity", "info or warning"},
    {".critical_path", "With --explain"},
    {"prediction.training", "With --total-steps or --tokens: the whole training"},
    {".price", "Of all GPUs, in currency; null without --prices"},
    {".energy_wh", "Of all GPUs; null without --power"},
    {".goodput", "Share of the time that trains"},
};

std::string_view type_of(const Json& value) {
  if (value.is_number_float()) return "number";
  return value.is_number() ? "integer" : value.type_name();
}

/// Whether a key is a text or number of the example, and not a word of the program.
bool is_filled(const std::string& key) {
  return key.find(kFilledText) != key.npos ||
         std::ranges::all_of(key, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

Json types_of(const Examples& examples) {
  std::set<std::string_view> types;
  for (const Json* one : examples) types.insert(type_of(*one));
  if (types.contains("number")) types.erase("integer");
  return types.size() == 1 ? Json(*types.begin()) : Json(types);
}

void describe_property(Json& schema, const std::string& path) {
  if (!path.starts_with("prediction.")) return;
  for (const auto& [end, meaning] : kMeanings)
    if (path.ends_with(end)) schema["description"] = meaning;
}

Json merged(const Examples& examples, const std::string& path) {
  Json schema = {{"type", types_of(examples)}};
  describe_property(schema, path);
  Examples items, others;
  std::map<std::string, Examples> properties;
  std::size_t objects = 0;
  for (const Json* one : examples) {
    if (one->is_array())
      for (const Json& item : *one) items.push_back(&item);
    if (!one->is_object()) continue;
    ++objects;
    for (const auto& [key, value] : one->items())
      (is_filled(key) ? others : properties[key]).push_back(&value);
  }
  if (!items.empty()) schema["items"] = merged(items, path + "[]");
  if (!others.empty()) schema["additionalProperties"] = merged(others, path + ".*");
  for (const auto& [key, values] : properties) {
    schema["properties"][key] =
        key == "schema" ? Json{{"const", *values.front()}} : merged(values, path + "." + key);
    if (values.size() == objects) schema["required"].push_back(key);
  }
  return schema;
}

/// The schema of one kind of answer, "foretrace.prediction/1", or of lists of answers.
Json schema_of_kind(const std::string& kind, const Examples& examples) {
  const std::size_t point = kind.find('.') + 1;
  Json schema = merged(examples, kind.substr(point, kind.find('/') - point));
  if (!kind.empty()) schema["title"] = kind;
  return schema;
}

}  // namespace

void complete(AllocatorProgram& program) { program.names.resize(kFilledLength, kFilledText); }

void complete(CheckReport& report) {
  if (report.figures.empty()) return;
  const CheckedFigure one = report.figures.front();
  for (const FigureUnit unit :
       {FigureUnit::time, FigureUnit::bytes, FigureUnit::count, FigureUnit::share}) {
    report.figures.push_back(one);
    report.figures.back().unit = unit;
  }
}

void complete(Curve& curve) {
  curve.points.resize(kFilledLength);
  complete(static_cast<SweepReport&>(curve));
}

void complete(DiffReport& report) {
  if (report.ranks.empty()) report.ranks.emplace_back();
}

// Ends that do not exist are part of some examples.
void complete(LatencyFigure& figure) {
  if (figure.interval && figure.mean == Nanoseconds{0}) figure.interval->second = kUnbounded;
}

void complete(SloFigure& figure) {
  if (figure.typical == Nanoseconds{0}) figure.interval.second = kUnbounded;
}

void complete(ServingPoint& point) {
  if (point.latencies.empty()) return;
  const LatencyFigure one = point.latencies.front();
  point.latencies.clear();
  for (const char* name : {"ttft", "tpot", "itl", "end_to_end", "queue"}) {
    point.latencies.push_back(one);
    point.latencies.back().name = name;
  }
}

void complete(SweepReport& report) {
  constexpr const char* kValues[] = {"0.5", R"("{}")", "true", "[]"};  // A setting can be anything.
  SweepHeader& header = report.header;
  header.scenario_json = kFilledText;
  header.settings.resize(kFilledLength, kFilledText);
  std::size_t next = 0;
  for (SweepPoint& point : report.points) {
    point.values.resize(header.settings.size());
    for (std::string& value : point.values) value = kValues[next++ % std::size(kValues)];
    for (SweepFigure& figure : point.figures) figure.value = kValues[0];
    point.verdicts.resize(header.asserts.size());
    point.step_time = Nanoseconds(next);  // Each has another, so that settings have effects.
  }
}

void complete(Trace& trace) {
  trace.names.intern(kFilledText);
  if (trace.hosts.empty()) return;
  trace.hosts.push_back({.kind = HostKind::annotation});
  trace.hosts.back().name = trace.names.intern(std::string(kProfilerStep) + "1");
  trace.memory.push_back({.bytes = -1});
  for (int action = 0; action <= static_cast<int>(MemoryAction::snapshot); ++action)
    trace.memory.push_back({.bytes = 1, .action = static_cast<MemoryAction>(action)});
}

Json schema_of(const std::vector<Json>& examples) {
  std::map<std::string, Examples> kinds;
  for (const Json& one : examples)
    kinds[one.is_object() ? one.value("schema", "") : ""].push_back(&one);
  Json all = Json::array();
  for (const auto& [kind, of_kind] : kinds) all.push_back(schema_of_kind(kind, of_kind));
  Json schema = all.size() == 1 ? all.front() : Json{{"anyOf", all}};
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  return schema;
}

}  // namespace foretrace
