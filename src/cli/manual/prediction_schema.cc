#include "cli/manual/prediction_schema.h"

#include <nlohmann/json.hpp>

namespace foretrace {
namespace {

using nlohmann::json;

json time(const char* description) { return {{"type", "integer"}, {"description", description}}; }

json number(const char* description) { return {{"type", "number"}, {"description", description}}; }

json text(const char* description) { return {{"type", "string"}, {"description", description}}; }

json list(json items, const char* description) {
  return {{"type", "array"}, {"items", std::move(items)}, {"description", description}};
}

/// All properties are required; more may come.
json object(json properties, const char* description) {
  json required = json::array();
  for (const auto& [key, value] : properties.items()) required.push_back(key);
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"description", description}};
}

json breakdown() {
  return object({{"compute", time("A kernel runs")},
                 {"communication", time("Of the rest: a collective runs")},
                 {"copy", time("Of the rest: a copy or fill runs")},
                 {"input", time("Of the rest: a host thread loads data")},
                 {"host", time("Of the rest: a host thread works")},
                 {"idle", time("Nothing runs")}},
                "Where the time of an average steady step goes; the parts add up to the step time");
}

json optional_number(const char* description) {
  return {{"type", json::array({"number", "null"})}, {"description", description}};
}

json rates() {
  return object(
      {{"samples_per_second", optional_number("With --samples-per-step")},
       {"tokens_per_second", optional_number("With --tokens-per-step")},
       {"flops_per_step",
        optional_number("Matrix products and convolutions whose shapes were recorded")},
       {"known_share", number("Of the time of kernels bound by arithmetic, that flops_per_step "
                              "accounts for")},
       {"peak_flops_per_second", optional_number("Of the device, in half precision, dense")},
       {"mfu",
        optional_number("flops_per_step in a step time, as a share of the peak; at least that "
                        "where known_share is below 1, and null where it is below 0.5")},
       {"exposed_communication", number("Share of a step in which only communication runs")}},
      "What a rank gets done; null where that is not known");
}

json optional(const char* description) {
  return {{"type", json::array({"integer", "null"})}, {"description", description}};
}

json memory() {
  json refusal = object({{"op", text("Who asked")},
                         {"stack", text("From where; may be empty")},
                         {"phase", text("May be empty")},
                         {"step", {{"type", "integer"}}},
                         {"time_ns", time("When")},
                         {"requested_bytes", {{"type", "integer"}}},
                         {"allocated_bytes", {{"type", "integer"}}},
                         {"reserved_bytes", {{"type", "integer"}}},
                         {"limit_bytes", {{"type", "integer"}}}},
                        "The first request that was refused under the limit asked about");
  refusal["type"] = json::array({"object", "null"});
  json peak =
      object({{"device", {{"type", "integer"}}},
              {"peak_allocated_bytes", {{"type", "integer"}}},
              {"lower_allocated_bytes",
               optional("80 % of such changes peak between this and the next; null: not in doubt")},
              {"upper_allocated_bytes", optional("See lower_allocated_bytes")},
              {"peak_reserved_bytes", optional("By the caching allocator, replayed")},
              {"recorded_reserved_bytes", optional("Where the trace tells")},
              {"out_of_memory", std::move(refusal)}},
             "Of one device");
  return list(std::move(peak), "Empty where the trace has no memory events");
}

json open() {
  return object({{"unexplained", time("Delays without a known cause")},
                 {"other_ranks", time("Waits of collectives for other ranks")}},
                "How much shorter a step would be without time that the recording leaves open");
}

json trust() {
  const json grade = {{"enum", json::array({"good", "fair", "poor"})}};
  json reason = object({{"name", text("replay_error, other_ranks, steps ...")},
                        {"grade", grade},
                        {"text", text("In words")},
                        {"value", optional_number("What was found")},
                        {"limit", optional_number("What it is held against")}},
                       "One fact, and the limit it is held against");
  return object({{"grade", grade}, {"reasons", list(std::move(reason), "Good ones included")}},
                "How far the answer can be relied on; the grade is that of the worst reason");
}

json baseline() {
  return object(
      {{"step_time_ns", time("Of the unmodified graph, replayed")},
       {"steps", list({{"type", "integer"}}, "Each step, in nanoseconds")},
       {"replay_error", number("|baseline - measured| / measured")},
       {"pinned_tasks", time("Tasks that start at their recorded time for want of a cause")},
       {"unexplained_ns", time("Delays on device lanes kept without a known cause")},
       {"peers_ns", time("Time in collectives that only other ranks explain")},
       {"open_ns", open()},
       {"tasks", time("In the graph")},
       {"dependencies", object({{"measured", {{"type", "integer"}}},
                                {"structural", {{"type", "integer"}}},
                                {"inferred", {{"type", "integer"}}},
                                {"assumed", {{"type", "integer"}}}},
                               "How many, by what they rest on")},
       {"breakdown_ns", breakdown()},
       {"rates", rates()},
       {"memory", memory()}},
      "The replay of the unmodified job");
}

json interval() {
  json part = object({{"source", text("steps, model, inferred, unexplained or replay")},
                      {"lower_ns", time("With this source alone")},
                      {"upper_ns", time("With this source alone")},
                      {"text", text("In words")}},
                     "One source of doubt");
  return object(
      {{"level", number("Share of steps that are expected between lower_ns and upper_ns")},
       {"resamples",
        {{"type", "integer"}, {"description", "Replays with the work of other steps; 0: none"}}},
       {"seed", {{"type", "integer"}, {"description", "Of what was drawn"}}},
       {"parts", list(std::move(part), "What the interval comes from")}},
      "How the interval was found");
}

json predicted() {
  return object(
      {{"step_time_ns", time("The prediction")},
       {"steps", list({{"type", "integer"}}, "Each step, in nanoseconds")},
       {"open_ns", open()},
       {"lower_ns", time("Of the interval")},
       {"upper_ns", time("Of the interval")},
       {"interval_source", text("Where the interval comes from")},
       {"interval", interval()},
       {"breakdown_ns", breakdown()},
       {"rates", rates()},
       {"memory", memory()},
       {"memory_limit_bytes", optional("That was asked about, or of the machine that was")},
       {"assumptions", list({{"type", "string"}}, "What must hold for the prediction to be true")}},
      "The replay of the job as the scenario changes it");
}

}  // namespace

json prediction_schema() {
  json input = object({{"path", text("As given")},
                       {"format", text("As recognized")},
                       {"sha256", text("Of the file")}},
                      "A file that was read");
  json step = object({{"use", text("As could be given to --with")},
                      {"summary", text("What it did")},
                      {"changed_nothing", {{"type", "boolean"}}},
                      {"figures",
                       {{"type", "object"},
                        {"additionalProperties", {{"type", "number"}}},
                        {"description", "What it worked out beside its edits"}}}},
                     "A transform that was applied");
  json note = object({{"severity", {{"enum", json::array({"info", "warning"})}}},
                      {"text", text("What was found")},
                      {"count", {{"type", "integer"}}},
                      {"example", text("The first one, or empty")}},
                     "Something odd in the data");
  json measured = object({{"step_time_ns", time("Median of the steady steps")},
                          {"steps", list({{"type", "integer"}}, "Each step, in nanoseconds")},
                          {"has_steps", {{"type", "boolean"}}},
                          {"has_times", {{"type", "boolean"}}},
                          {"window_ns", time("Length of the recording")}},
                         "What was recorded");
  json schema = object(
      {{"schema", {{"const", "foretrace.prediction/1"}}},
       {"tool", object({{"version", text("Of foretrace")}}, "What made this")},
       {"inputs", list(std::move(input), "In order of paths")},
       {"scenario", {{"type", "object"}, {"description", "Effective settings, defaults included"}}},
       {"measured", std::move(measured)},
       {"baseline", baseline()},
       {"predicted", predicted()},
       {"speedup", number("Baseline step time / predicted step time")},
       {"steps", list(std::move(step), "In order of application")},
       {"trust", trust()},
       {"notes", list(std::move(note), "In order of appearance")}},
      "The answer of `foretrace predict --format json`");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "foretrace.prediction/1";
  return schema;
}

}  // namespace foretrace
