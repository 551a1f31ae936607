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
                 {"communication", time("No kernel runs, but a collective does")},
                 {"copy", time("None of the above, but a copy or fill runs")},
                 {"input", time("None of the above, but a host thread loads data")},
                 {"host", time("None of the above, but a host thread works")},
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
       {"known_share",
        number("Share of the time of compute-bound kernels that flops_per_step covers")},
       {"peak_flops_per_second", optional_number("Peak of the device in half precision, dense")},
       {"mfu",
        optional_number("flops_per_step per step time, as a share of the peak; a lower bound where "
                        "known_share is below 1, and null where it is below 0.5")},
       {"exposed_communication", number("Share of a step in which only communication runs")}},
      "Work that a rank gets done; null where unknown");
}

json optional(const char* description) {
  return {{"type", json::array({"integer", "null"})}, {"description", description}};
}

json memory() {
  json refusal = object({{"op", text("Op or function that asked")},
                         {"stack", text("Source line; may be empty")},
                         {"phase", text("May be empty")},
                         {"step", {{"type", "integer"}}},
                         {"time_ns", time("When")},
                         {"requested_bytes", {{"type", "integer"}}},
                         {"allocated_bytes", {{"type", "integer"}}},
                         {"reserved_bytes", {{"type", "integer"}}},
                         {"limit_bytes", {{"type", "integer"}}}},
                        "The first request that was refused under the memory limit");
  refusal["type"] = json::array({"object", "null"});
  json peak = object(
      {{"device", {{"type", "integer"}}},
       {"peak_allocated_bytes", {{"type", "integer"}}},
       {"lower_allocated_bytes",
        optional(
            "80 % of such changes have a peak between this and the next; null if not in doubt")},
       {"upper_allocated_bytes", optional("See lower_allocated_bytes")},
       {"peak_reserved_bytes", optional("Reserved by the caching allocator, from its replay")},
       {"recorded_reserved_bytes", optional("As recorded, where the trace has it")},
       {"out_of_memory", std::move(refusal)}},
      "Peaks of one device");
  return list(std::move(peak), "Empty where the trace has no memory events");
}

json open() {
  return object({{"unexplained", time("Delays without a known cause")},
                 {"other_ranks", time("Waits of collectives for other ranks")}},
                "How much shorter a step would be without the time that the recording leaves open");
}

json trust() {
  const json grade = {{"enum", json::array({"good", "fair", "poor"})}};
  json reason = object({{"name", text("replay_error, other_ranks, steps ...")},
                        {"grade", grade},
                        {"text", text("The reason in words")},
                        {"value", optional_number("Measured value")},
                        {"limit", optional_number("Limit that the value is compared with")}},
                       "One fact, and its limit");
  return object(
      {{"grade", grade}, {"reasons", list(std::move(reason), "All reasons, good ones included")}},
      "How far the answer can be relied on; the grade is that of the worst reason");
}

json baseline() {
  return object(
      {{"step_time_ns", time("Replay of the unmodified graph")},
       {"steps", list({{"type", "integer"}}, "Length of each step, in nanoseconds")},
       {"replay_error", number("|baseline - measured| / measured")},
       {"pinned_tasks", time("Tasks held at their recorded start because no cause is known")},
       {"unexplained_ns", time("Delays on device lanes kept without a known cause")},
       {"peers_ns", time("Time in collectives that only other ranks explain")},
       {"open_ns", open()},
       {"tasks", time("Dependencies in the graph")},
       {"dependencies", object({{"measured", {{"type", "integer"}}},
                                {"structural", {{"type", "integer"}}},
                                {"inferred", {{"type", "integer"}}},
                                {"assumed", {{"type", "integer"}}}},
                               "How many, by kind of evidence")},
       {"breakdown_ns", breakdown()},
       {"rates", rates()},
       {"memory", memory()}},
      "The replay of the unmodified job");
}

json interval() {
  json part = object({{"source", text("steps, model, inferred, unexplained or replay")},
                      {"lower_ns", time("Lower end with this source alone")},
                      {"upper_ns", time("Upper end with this source alone")},
                      {"text", text("The source in words")}},
                     "One source of uncertainty");
  return object(
      {{"level", number("Share of steps that are expected between lower_ns and upper_ns")},
       {"resamples",
        {{"type", "integer"}, {"description", "Replays with the work of other steps; 0 if none"}}},
       {"seed", {{"type", "integer"}, {"description", "Factor that was drawn"}}},
       {"parts", list(std::move(part), "Sources of the interval")}},
      "How the interval was found");
}

json predicted() {
  return object({{"step_time_ns", time("The prediction")},
                 {"steps", list({{"type", "integer"}}, "Length of each step, in nanoseconds")},
                 {"open_ns", open()},
                 {"lower_ns", time("Lower end of the interval")},
                 {"upper_ns", time("Upper end of the interval")},
                 {"interval_source", text("Sources of the interval")},
                 {"interval", interval()},
                 {"breakdown_ns", breakdown()},
                 {"rates", rates()},
                 {"memory", memory()},
                 {"memory_limit_bytes",
                  optional("The limit that was asked about, or that of the machine that was")},
                 {"assumptions", list({{"type", "string"}}, "What the prediction assumes")}},
                "The replay of the job as the scenario changes it");
}

}  // namespace

json prediction_schema() {
  json input = object({{"path", text("Path as given")},
                       {"format", text("Format as recognized")},
                       {"sha256", text("SHA-256 of the file")}},
                      "A file that was read");
  json step = object({{"use", text("As it could be given to --with")},
                      {"summary", text("What it did")},
                      {"changed_nothing", {{"type", "boolean"}}},
                      {"figures",
                       {{"type", "object"},
                        {"additionalProperties", {{"type", "number"}}},
                        {"description", "Figures that it computed beside its edits"}}}},
                     "A transform that was applied");
  json note = object({{"severity", {{"enum", json::array({"info", "warning"})}}},
                      {"text", text("The note in words")},
                      {"count", {{"type", "integer"}}},
                      {"example", text("The first example, or empty")}},
                     "Something odd in the data");
  json measured =
      object({{"step_time_ns", time("Median of the steady steps")},
              {"steps", list({{"type", "integer"}}, "Length of each step, in nanoseconds")},
              {"has_steps", {{"type", "boolean"}}},
              {"has_times", {{"type", "boolean"}}},
              {"window_ns", time("Length of the recording")}},
             "What was recorded");
  json schema = object(
      {{"schema", {{"const", "foretrace.prediction/1"}}},
       {"tool", object({{"version", text("Version of foretrace")}}, "What made this file")},
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
