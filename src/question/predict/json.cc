#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "base/json_text.h"
#include "base/json_values.h"
#include "base/numbers/scaling.h"
#include "base/shown.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/figure.h"
#include "foretrace/answer/interval_level.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/timeline.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "question/words/step_facts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json nanoseconds(const std::vector<Nanoseconds>& times) {
  Json all = Json::array();
  for (const Nanoseconds time : times) all.push_back(time.count());
  return all;
}

Json to_json(const Refusal& refusal) {
  return {{"op", refusal.op},
          {"stack", refusal.stack},
          {"phase", refusal.phase},
          {"step", refusal.step},
          {"time_ns", refusal.time.count()},
          {"requested_bytes", refusal.requested.count},
          {"allocated_bytes", refusal.allocated.count},
          {"reserved_bytes", refusal.reserved.count},
          {"limit_bytes", refusal.limit.count}};
}

Json to_json(const std::vector<MemoryPeak>& peaks) {
  Json all = Json::array();
  for (const MemoryPeak& peak : peaks) {
    all.push_back(
        {{"device", peak.device},
         {"peak_allocated_bytes", peak.peak_allocated.count},
         {"lower_allocated_bytes", peak.lower_allocated},
         {"upper_allocated_bytes", peak.upper_allocated},
         {"peak_reserved_bytes", peak.peak_reserved},
         {"recorded_reserved_bytes", peak.recorded_reserved},
         {"out_of_memory", peak.out_of_memory ? to_json(*peak.out_of_memory) : Json(nullptr)}});
  }
  return all;
}

Json open_json(const OpenStepTime& open) {
  return {{"unexplained", open.unexplained.count()}, {"other_ranks", open.other_ranks.count()}};
}

Json baseline_json(const Prediction& prediction) {
  const auto count = [&](Provenance provenance) {
    return prediction.dependencies[static_cast<int>(provenance)];
  };
  return {{"step_time_ns", prediction.baseline.step_time.count()},
          {"steps", nanoseconds(prediction.baseline.each)},
          {"replay_error", prediction.replay_error},
          {"pinned_tasks", prediction.unexplained.pinned_tasks},
          {"unexplained_ns", prediction.unexplained.lag.count()},
          {"peers_ns", prediction.unexplained.peers.count()},
          {"open_ns", open_json(prediction.baseline_open)},
          {"tasks", prediction.tasks},
          {"dependencies",
           {{"measured", count(Provenance::measured)},
            {"structural", count(Provenance::structural)},
            {"inferred", count(Provenance::inferred)},
            {"assumed", count(Provenance::assumed)}}},
          {"breakdown_ns", breakdown_json(prediction.baseline_breakdown)},
          {"rates", rates_json(prediction.baseline_rates, prediction.baseline_breakdown,
                               prediction.baseline.step_time)},
          {"memory", to_json(prediction.baseline_memory)}};
}

Json interval_json(const Prediction& prediction) {
  Json parts = Json::array();
  for (const IntervalPart& part : prediction.interval_parts) {
    parts.push_back({{"source", part.source},
                     {"lower_ns", part.lower.count()},
                     {"upper_ns", part.upper.count()},
                     {"text", part.text}});
  }
  return {{"level", kIntervalLevel},
          {"compute_lower_ns", prediction.compute_lower.count()},
          {"compute_upper_ns", prediction.compute_upper.count()},
          {"resamples", prediction.resamples},
          {"seed", kIntervalSeed},
          {"parts", std::move(parts)}};
}

Json step_kinds_json(const Prediction& prediction) {
  Json kinds = Json::array();
  for (const StepsAlike& kind : prediction.step_kinds)
    kinds.push_back({{"steps", kind.steps},
                     {"measured_ns", kind.measured.count()},
                     {"predicted_ns", kind.predicted.count()},
                     {"is_typical", kind.is_typical}});
  return kinds;
}

Json unprofiled_json(const Prediction& prediction) {
  if (prediction.baseline_unprofiled <= 0ns) return nullptr;
  return {{"per_record_ns", prediction.unexplained.per_record.count()},
          {"baseline_step_time_ns", prediction.baseline_unprofiled.count()},
          {"predicted_step_time_ns", prediction.predicted_unprofiled.count()}};
}

Json predicted_json(const Prediction& prediction) {
  return {{"step_time_ns", prediction.predicted.step_time.count()},
          {"steps", nanoseconds(prediction.predicted.each)},
          {"step_kinds", step_kinds_json(prediction)},
          {"open_ns", open_json(prediction.predicted_open)},
          {"lower_ns", prediction.lower.count()},
          {"upper_ns", prediction.upper.count()},
          {"interval_source", prediction.interval_source},
          {"interval", interval_json(prediction)},
          {"breakdown_ns", breakdown_json(prediction.predicted_breakdown)},
          {"rates", rates_json(prediction.predicted_rates, prediction.predicted_breakdown,
                               prediction.predicted.step_time)},
          {"memory", to_json(prediction.predicted_memory)},
          {"memory_limit_bytes", unless_default(prediction.memory_limit)},
          {"assumptions", prediction.assumptions}};
}

/// Returns the ends of the intervals of a rank's steps, which have the same relative uncertainty as
/// the answer.
std::vector<Nanoseconds> scaled_steps(const PredictedRank& rank, Nanoseconds end,
                                      const Prediction& prediction) {
  std::vector<Nanoseconds> ends;
  for (const Nanoseconds step : rank.predicted_steps)
    ends.push_back(scaled(step, ratio(end, prediction.predicted.step_time)));
  return ends;
}

Json ranks_json(const Prediction& prediction) {
  Json all = Json::array();
  for (const PredictedRank& rank : prediction.ranks) {
    Json json{{"rank", rank.number},
              {"alike", rank.alike},
              {"is_recorded", rank.is_recorded},
              {"measured_ns", rank.measured.count()},
              {"baseline_ns", rank.baseline.count()},
              {"predicted_ns", rank.predicted.count()},
              {"predicted_steps", nanoseconds(rank.predicted_steps)},
              {"lower_steps", nanoseconds(scaled_steps(rank, prediction.lower, prediction))},
              {"upper_steps", nanoseconds(scaled_steps(rank, prediction.upper, prediction))},
              {"baseline_breakdown_ns", breakdown_json(rank.baseline_breakdown)},
              {"predicted_breakdown_ns", breakdown_json(rank.predicted_breakdown)}};
    json.update(rank_facts_json(rank));
    all.push_back(std::move(json));
  }
  return all;
}

Json steps_json(const Prediction& prediction) {
  Json all = Json::array();
  for (const AppliedStep& step : prediction.steps) {
    Json one = {{"use", step.use},
                {"summary", step.summary},
                {"changed_nothing", step.changed_nothing},
                {"figures", figures_json(step.figures)}};
    if (step.applies.share < 1)
      one["applies"] = {{"share", step.applies.share}, {"why_not", step.applies.why_not}};
    all.push_back(std::move(one));
  }
  return all;
}

Json explained_json(const Prediction& prediction) {
  Json all = Json::array();
  for (const Explained& line : prediction.explained) {
    all.push_back({{"task", line.task},
                   {"lane", line.lane},
                   {"reason", line.reason},
                   {"start_ns", line.start.count()},
                   {"duration_ns", line.duration.count()},
                   {"waited_ns", line.waited.count()}});
  }
  return all;
}

/// Writes the peaks of the fullest device, or of the host; empty cells if memory is not recorded.
void write_memory(const Prediction& prediction, std::ostream& out) {
  const auto write = [&](const std::optional<Bytes>& peak) {
    out << ',';
    if (peak) out << peak->count;
  };
  for (const auto greatest : {greatest_allocated, greatest_reserved}) {
    write(greatest(prediction.baseline_memory, PeaksOf::devices_and_host));
    write(greatest(prediction.predicted_memory, PeaksOf::devices_and_host));
  }
  std::size_t refused = 0;
  for (const MemoryPeak& peak : prediction.predicted_memory) refused += peak.out_of_memory ? 1 : 0;
  out << ',' << refused;
}

/// Writes the rates; unknown ones are empty cells.
void write_rates(const Prediction& prediction, std::ostream& out) {
  const StepRates& before = prediction.baseline_rates;
  const StepRates& after = prediction.predicted_rates;
  const Nanoseconds now = prediction.baseline.step_time, then = prediction.predicted.step_time;
  const auto write = [&](const std::optional<double>& value) {
    out << ',';
    if (value) out << to_text(*value);
  };
  const auto per_second = [](double count, Nanoseconds step) -> std::optional<double> {
    if (count <= 0 || step <= 0ns) return std::nullopt;
    return count * 1e9 / static_cast<double>(step.count());
  };
  write(flops_utilization(before, now));
  write(flops_utilization(after, then));
  write(per_second(before.samples, now));
  write(per_second(after.samples, then));
  write(per_second(before.tokens, now));
  write(per_second(after.tokens, then));
  write(exposed_communication(prediction.baseline_breakdown, now));
  write(exposed_communication(prediction.predicted_breakdown, then));
}

}  // namespace

Json breakdown_json(const Breakdown& breakdown) {
  Json parts = {
      {"compute", breakdown.compute.count()}, {"communication", breakdown.communication.count()},
      {"copy", breakdown.copy.count()},       {"input", breakdown.input.count()},
      {"host", breakdown.host.count()},       {"idle", breakdown.idle.count()}};
  if (breakdown.unknown > 0ns) parts["unknown"] = breakdown.unknown.count();
  return parts;
}

nlohmann::json rank_facts_json(const RankFacts& facts) {
  return {{"matched_collectives", facts.matched},
          {"unmatched_collectives", facts.unmatched},
          {"skew_ns", facts.waits.count()},
          {"transfer_ns", facts.transfer.count()},
          {"times_last", facts.times_last},
          {"keeps_waiting_ns", facts.keeps_waiting.count()},
          {"clock_offset_ns", facts.clock_offset.count()},
          {"clock_residual_ns", facts.clock_residual.count()},
          {"clock_drift", facts.clock_drift}};
}

Json rates_json(const StepRates& rates, const Breakdown& breakdown, Nanoseconds step_time) {
  const auto known = [](double value) { return unless_default(value); };
  const double per_second = step_time > 0ns ? 1e9 / static_cast<double>(step_time.count()) : 0;
  const std::optional<double> utilization = flops_utilization(rates, step_time);
  return {{"samples_per_second", known(rates.samples * per_second)},
          {"tokens_per_second", known(rates.tokens * per_second)},
          {"flops_per_step", known(rates.flops)},
          {"known_share", rates.known_share},
          {"peak_flops_per_second", known(rates.peak_flops)},
          {"mfu", utilization},
          {"exposed_communication", exposed_communication(breakdown, step_time)}};
}

Json inputs_json(const std::vector<InputFile>& inputs) {
  Json all = Json::array();
  for (const InputFile& input : inputs) {
    all.push_back({{"path", input.path}, {"format", input.format}, {"sha256", input.sha256}});
  }
  return all;
}

Json figures_json(const std::vector<Figure>& figures) {
  Json all = Json::object();
  for (const Figure& figure : figures) {
    if (const auto* number = std::get_if<double>(&figure.value)) {
      all[json_key(figure)] = *number;
    } else {
      all[json_key(figure)] = static_cast<std::int64_t>(magnitude(figure));
    }
  }
  return all;
}

Json notes_json(const Notes& notes) {
  Json all = Json::array();
  for (const Note& note : notes.all()) {
    all.push_back({{"severity", to_string(note.severity)},
                   {"text", note.text},
                   {"count", note.count},
                   {"example", note.example}});
  }
  return all;
}

Json to_json(const Prediction& prediction) {
  Json object = {
      {"schema", "foretrace.prediction/1"},
      {"tool", {{"name", "foretrace"}, {"version", kVersion}}},
      {"inputs", inputs_json(prediction.inputs)},
      {"scenario", prediction.scenario_json.empty() ? Json::object()
                                                    : parse_json<Json>(prediction.scenario_json)},
      {"measured",
       {{"step_time_ns", prediction.measured.step_time.count()},
        {"steps", nanoseconds(prediction.measured.each)},
        {"has_steps", prediction.has_steps},
        {"has_times", prediction.has_times},
        {"window_ns", prediction.window.count()}}},
      {"baseline", baseline_json(prediction)},
      {"predicted", predicted_json(prediction)},
      {"unprofiled", unprofiled_json(prediction)},
      {"speedup", prediction.speedup},
      {"steps", steps_json(prediction)},
      {"trust", to_json(prediction.trust)},
      {"notes", notes_json(prediction.notes)}};
  add_step_facts(prediction.measured, object["measured"]);
  if (!prediction.ranks.empty()) {
    object["rank"] = prediction.rank;
    object["ranks"] = ranks_json(prediction);
  }
  if (!prediction.explained.empty()) object["critical_path"] = explained_json(prediction);
  if (prediction.training) object["training"] = training_json(prediction.training);
  return object;
}

void write_csv(const Prediction& prediction, std::ostream& out) {
  std::string uses;
  for (const AppliedStep& step : prediction.steps) uses += (uses.empty() ? "" : "; ") + step.use;
  out << "trace,what_if,measured_ns,baseline_ns,replay_error,predicted_ns,lower_ns,upper_ns,"
         "speedup";
  for (const StepPart& part : step_parts(prediction)) {
    out << ",baseline_" << part.name << "_ns,predicted_" << part.name << "_ns";
  }
  out << ",pinned_tasks,unexplained_ns,baseline_peak_allocated_bytes,predicted_peak_allocated_"
         "bytes,"
         "baseline_peak_reserved_bytes,predicted_peak_reserved_bytes,out_of_memory,trust,baseline_"
         "mfu,predicted_mfu,baseline_samples_per_"
         "second,predicted_samples_per_second,baseline_tokens_per_second,predicted_tokens_per_"
         "second,"
         "baseline_exposed_communication,predicted_exposed_communication\n";
  out << csv_text(prediction.inputs.empty() ? "" : prediction.inputs.front().path) << ','
      << csv_text(uses) << ',' << prediction.measured.step_time.count() << ','
      << prediction.baseline.step_time.count() << ',' << to_text(prediction.replay_error) << ','
      << prediction.predicted.step_time.count() << ',' << prediction.lower.count() << ','
      << prediction.upper.count() << ',' << to_text(prediction.speedup);
  for (const StepPart& part : step_parts(prediction)) {
    out << ',' << part.baseline.count() << ',' << part.predicted.count();
  }
  out << ',' << prediction.unexplained.pinned_tasks << ',' << prediction.unexplained.lag.count();
  write_memory(prediction, out);
  out << ',' << to_string(prediction.trust.grade());
  write_rates(prediction, out);
  out << '\n';
}

}  // namespace foretrace
