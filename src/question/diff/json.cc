#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "foretrace/answer/diff.h"
#include "foretrace/timeline.h"
#include "question/diff/words.h"
#include "question/words/json_parts.h"
#include "question/words/step_facts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json content_json(const StepContent& content) {
  return {{"kernels", content.kernels},
          {"collectives", content.collectives},
          {"collective_bytes", content.communicated.count},
          {"copies", content.copies},
          {"copied_bytes", content.copied.count},
          {"fills", content.fills},
          {"launches", content.launches},
          {"syncs", content.syncs},
          {"host_tasks", content.host_tasks},
          {"allocations", content.allocations},
          {"allocated_bytes", content.allocated.count}};
}

Json parts_json(const Breakdown& parts) {
  return {{"compute_ns", parts.compute.count()}, {"communication_ns", parts.communication.count()},
          {"copy_ns", parts.copy.count()},       {"input_ns", parts.input.count()},
          {"host_ns", parts.host.count()},       {"idle_ns", parts.idle.count()}};
}

Json diff_side_json(const DiffSideReport& side) {
  Json json{{"device", side.device},
            {"step_time_ns", side.step_time.count()},
            {"has_steps", side.has_steps},
            {"steps", side.steps},
            {"compared_step", side.compared_step},
            {"compared_steps", side.compared_steps},
            {"compared_ns", side.compared.count()},
            {"shortest_step_ns", side.times.fastest.count()},
            {"longest_step_ns", side.times.slowest.count()},
            {"content", content_json(side.content)},
            {"breakdown", parts_json(side.breakdown)},
            {"peak_allocated_bytes", side.peak_allocated},
            {"tasks", side.tasks}};
  add_step_facts(side.times, json);
  return json;
}

Json diff_cause_json(const Diff& diff, const DiffCause& cause) {
  Json json{{"kind", to_string(cause.kind)},
            {"label", cause.label},
            {"place", cause.place},
            {"text", cause_text(diff, cause)},
            {"added", cause.added},
            {"removed", cause.removed},
            {"moved", cause.moved},
            {"changed", cause.changed},
            {"more_bytes", cause.bytes.count},
            {"local_ns", cause.local.count()},
            {"effect_ns", cause.effect.count()}};
  if (!cause.name_after.empty()) {
    json["name_before"] = cause.name_before;
    json["name_after"] = cause.name_after;
  }
  return json;
}

}  // namespace

nlohmann::json diff_json(const Diff& diff) {
  Json json{{"rank", diff.rank},
            {"verdict", diff_verdict(diff)},
            {"before", diff_side_json(diff.before)},
            {"after", diff_side_json(diff.after)},
            {"change_ns", (diff.after.step_time - diff.before.step_time).count()},
            {"matched_tasks", diff.matched},
            {"aligned", diff.aligned},
            {"identical", diff.identical},
            {"has_times", diff.has_times},
            {"same_structure", diff.same_structure},
            {"causes", Json::array()},
            {"critical_path", Json::array()},
            {"peak", Json::array()},
            {"trust", to_json(diff.trust)},
            {"notes", notes_json(diff.notes)}};
  if (diff.among_before) json["before"]["ranks"] = rank_facts_json(*diff.among_before);
  if (diff.among_after) json["after"]["ranks"] = rank_facts_json(*diff.among_after);
  for (const DiffCause& cause : diff.causes) json["causes"].push_back(diff_cause_json(diff, cause));
  for (const PathShare& share : diff.path) {
    json["critical_path"].push_back({{"name", share.name},
                                     {"before_ns", share.before.count()},
                                     {"after_ns", share.after.count()}});
  }
  for (const KindChange& kind : diff.kinds) {
    json["kinds"].push_back({{"kind", kind.name},
                             {"steps_before", kind.steps_before},
                             {"steps_after", kind.steps_after},
                             {"before_ns", kind.before.count()},
                             {"after_ns", kind.after.count()},
                             {"where", kind.where}});
  }
  for (const PeakChange& change : diff.peak) {
    json["peak"].push_back({{"op", change.op},
                            {"before_bytes", change.before.count},
                            {"after_bytes", change.after.count}});
  }
  return json;
}

nlohmann::json to_json(const DiffReport& report) {
  Json json{{"schema", "foretrace.diff/1"},
            {"before", {{"inputs", inputs_json(report.before)}}},
            {"after", {{"inputs", inputs_json(report.after)}}},
            {"ranks", Json::array()},
            {"slowest_rank", slowest_of(report).rank},
            {"decisive_rank", decisive_rank(report).rank},
            {"notes", notes_json(report.notes)}};
  for (const Diff& diff : report.ranks) json["ranks"].push_back(diff_json(diff));
  return json;
}

}  // namespace foretrace
