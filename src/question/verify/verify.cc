#include "foretrace/question/verify.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "analysis/doubt/trust.h"
#include "base/files/json_file.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/ledger.h"
#include "foretrace/question/diff.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "job/apply.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "question/diff/sides.h"
#include "question/predict/baseline.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kPredictionSchema = "foretrace.prediction/1";

const Json& member_of(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key)) throw Error(fmt::format("there is no \"{}\"", key));
  return json.at(key);
}

std::int64_t whole_in(const Json& json, const char* key) {
  const Json& value = member_of(json, key);
  if (!value.is_number_integer()) throw Error(fmt::format("{}: must be a whole number", key));
  constexpr double kMax = 1e18;  // The difference of two such numbers fits 64 bits.
  if (std::abs(value.get<double>()) > kMax)
    throw Error(fmt::format("{}: must be at most 10^18, got {}", key, json_line(value)));
  return value.get<std::int64_t>();
}

Nanoseconds time_in(const Json& json, const char* key) { return Nanoseconds(whole_in(json, key)); }

std::string text_in(const Json& json, const char* key) {
  const Json& value = member_of(json, key);
  if (!value.is_string()) throw Error(fmt::format("{}: must be a string", key));
  return value.get<std::string>();
}

bool flag_in(const Json& json, const char* key) {
  if (!json.contains(key)) return false;
  if (!json.at(key).is_boolean()) throw Error(fmt::format("{}: must be true or false", key));
  return json.at(key).get<bool>();
}

VerifiedSide read_side(const Json& json) {
  VerifiedSide side;
  side.step_time = time_in(json, "step_time_ns");
  const Json& parts = member_of(json, "breakdown_ns");
  side.breakdown = {time_in(parts, "compute"), time_in(parts, "communication"),
                    time_in(parts, "copy"),    time_in(parts, "input"),
                    time_in(parts, "host"),    time_in(parts, "idle")};
  const Json& memory = member_of(json, "memory");
  if (!memory.is_array()) throw Error("memory: must be an array");
  for (const Json& peak : memory) {
    if (whole_in(peak, "device") < 0) continue;
    const Bytes bytes{whole_in(peak, "peak_allocated_bytes")};
    side.peak_allocated = std::max(side.peak_allocated.value_or(bytes), bytes);
  }
  return side;
}

/// The parts of the output of `predict --format json` that verification needs.
struct WrittenPrediction {
  VerifiedSide before, predicted;
  Nanoseconds lower{0}, upper{0};
  std::vector<std::string> uses;
  std::vector<InputFile> inputs;
  Json scenario;
};

void check_schema(const Json& json) {
  const Json found = json.is_object() ? json.value("schema", Json()) : Json();
  if (found == kPredictionSchema) return;
  std::string text = fmt::format(
      "must be the output of predict --format json, with the schema \"{}\"", kPredictionSchema);
  if (found.is_string())
    text += fmt::format(", got \"{}\"", found.get<std::string>().substr(0, 60));
  if (json.is_object() && json.contains("traceEvents"))
    text += ", but is a trace; give the prediction first";
  throw Error(text);
}

WrittenPrediction read_prediction(const std::string& path) {
  const Json json = read_json_file(path);
  return within(path, [&] {
    check_schema(json);
    WrittenPrediction written;
    const Json& baseline = member_of(json, "baseline");
    written.before = within("baseline", [&] { return read_side(baseline); });
    const Json& predicted = member_of(json, "predicted");
    within("predicted", [&] {
      written.predicted = read_side(predicted);
      written.lower = time_in(predicted, "lower_ns");
      written.upper = time_in(predicted, "upper_ns");
      if (written.predicted.step_time <= 0ns) throw Error("step_time_ns: must be above 0");
    });
    for (const Json& step : member_of(json, "steps")) {
      within("steps", [&] {
        const std::string use = text_in(step, "use");
        if (!flag_in(step, "changed_nothing")) written.uses.push_back(use);
      });
    }
    for (const Json& input : member_of(json, "inputs")) {
      within("inputs", [&] {
        written.inputs.push_back({text_in(input, "path"), "", text_in(input, "sha256")});
      });
    }
    written.scenario = member_of(json, "scenario");
    return written;
  });
}

/// Path of the prediction's input. A relative path in the prediction may be relative to the folder
/// of the prediction.
std::string input_path(const Scenario& scenario, const std::string& prediction_path,
                       const VerifyOptions& options) {
  if (!options.trace.empty()) return options.trace;
  std::error_code ignored;
  const fs::path stored = scenario.trace;
  if (stored.is_relative() && !fs::exists(stored, ignored)) {
    const fs::path beside = fs::path(prediction_path).parent_path() / stored;
    if (fs::exists(beside, ignored)) return beside.string();
  }
  return scenario.trace;
}

bool same_contents(const std::vector<InputFile>& a, const std::vector<InputFile>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const InputFile& left, const InputFile& right) { return left.sha256 == right.sha256; });
}

/// A rank of the measurement, with its step times.
struct MeasuredRank {
  const Rank& rank;
  StepTimes times;
};

MeasuredRank measured_rank(const Rank& rank) {
  return {rank, step_times(rank.inference.graph, rank.inference.recorded)};
}

MeasuredRank slowest_measured(const JobRanks& job) {
  if (job.has_snapshots())
    throw TraceError(job.path + ": must have times, but is a snapshot of memory alone");
  SlowestRank slowest;
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    slowest.consider(i, measured_rank(job.ranks[i]).times.step_time);
  if (slowest.most() <= 0ns) throw TraceError(job.path + ": no step of the trace takes any time");
  return measured_rank(job.ranks[slowest.rank()]);
}

void describe_measured(const MeasuredRank& rank, Verification& result) {
  const DiffSide side = side_of(rank.rank);
  const SideSteps steps = side_steps(side);
  const DiffSideReport report = side_report(side, steps, {});
  result.measured = {report.step_time, report.breakdown, report.peak_allocated};
  result.shortest = steps.times.fastest, result.longest = steps.times.slowest;
}

void judge_interval(Verification& result) {
  const auto measured = static_cast<double>(result.measured.step_time.count());
  result.error = static_cast<double>(result.predicted.step_time.count()) / measured - 1;
  const auto meets = [&](Nanoseconds from, Nanoseconds to) {
    return from <= result.upper && to >= result.lower;
  };
  result.agreement = meets(result.measured.step_time, result.measured.step_time) ? Agreement::inside
                     : meets(result.shortest, result.longest)                    ? Agreement::near
                                                              : Agreement::outside;
}

/// The repeated prediction, for the rank that is then the slowest.
struct Repeated {
  const Rank* rank = nullptr;
  Graph graph;
  Timeline timeline;
  Nanoseconds step_time{0};
};

Repeated repeat(const Scenario& scenario, const JobRanks& job, Donors& donors) {
  EditedJob edited = edited_by(job, scenario, {}, &donors);
  SlowestRank slowest;
  for (std::size_t i = 0; i < job.world.size(); ++i) slowest.consider(i, edited.of(i).step_time());
  const std::size_t shown = slowest.rank();
  Edited& rank = edited.of(shown);
  return {&job.ranks[job.world[shown].recorded], std::move(rank.graph), std::move(rank.timeline),
          rank.step_time()};
}

/// The measured rank to compare with the prediction: the predicted rank, or the slowest one if that
/// was not measured.
const Rank& rank_measured_for(const Rank& predicted, const JobRanks& measured,
                              const Rank& slowest) {
  const auto found =
      std::find_if(measured.ranks.begin(), measured.ranks.end(),
                   [&](const Rank& rank) { return rank.number == predicted.number; });
  return found == measured.ranks.end() ? slowest : *found;
}

/// The measurement: the job, and its slowest rank.
struct Measured {
  const JobRanks& job;
  MeasuredRank slowest;
};

/// Adds all results that need the input of the prediction. Throws Error if it cannot be read.
void explain_error(const WrittenPrediction& written, const std::string& prediction_path,
                   const Measured& measured, const VerifyOptions& options, Verification& result) {
  const Scenario scenario =
      within(prediction_path + ": scenario", [&] { return parse_scenario(written.scenario); });
  const std::string path = input_path(scenario, prediction_path, options);
  if (path.empty())
    throw Error("the prediction does not name the trace it was made from; give --trace");
  const JobRanks job = read_job(
      path, {.reading = options.reading, .keep_traces = true, .joining = Joining::required});
  if (!same_contents(job.inputs(), written.inputs))
    result.notes.add(Severity::warning,
                     "the input of the prediction is not the file it was made from (its SHA-256 "
                     "differs); causes may be those of another job",
                     path);
  check_ranks(scenario, job);
  Donors donors(options.reading);
  donors.read(scenario);
  const Repeated repeated = repeat(scenario, job, donors);
  result.repeated = repeated.step_time;
  if (repeated.step_time != result.predicted.step_time)
    result.notes.add(
        Severity::warning,
        "the prediction differs when it is repeated; causes are those of the repetition",
        fmt::format("{} as written, {} now", to_text(result.predicted.step_time),
                    to_text(repeated.step_time)));
  const Rank& rank = rank_measured_for(*repeated.rank, measured.job, measured.slowest.rank);
  result.residual =
      diff({repeated.graph, repeated.timeline, &*repeated.rank->trace}, side_of(rank));
  result.residual->rank = rank.number;
}

void add_to_ledger(const std::string& measured_path, const VerifyOptions& options,
                   Verification& result) {
  if (options.ledger_path.empty()) return;
  if (result.uses.empty()) {
    result.notes.add(Severity::info,
                     "the prediction changes nothing; its outcome is not added to the ledger");
    return;
  }
  const KnownOutcome outcome =
      outcome_of(result.uses, result.predicted.step_time, result.measured.step_time,
                 fs::path(measured_path).filename().string());
  try {
    check_outcome(outcome);
  } catch (const Error& error) {
    result.notes.add(Severity::warning, "a ledger cannot hold this outcome; it is not added",
                     error.what());
    return;
  }
  append_to_ledger(options.ledger_path, {outcome});
  result.ledger = options.ledger_path;
}

}  // namespace

Verification verify(const std::string& prediction_path, const std::string& measured_path,
                    const VerifyOptions& options) {
  const WrittenPrediction written = read_prediction(prediction_path);
  Verification result;
  result.uses = written.uses;
  result.before = written.before;
  result.predicted = written.predicted;
  result.lower = written.lower, result.upper = written.upper;
  const JobRanks job = read_job(measured_path, {.reading = options.reading, .keep_traces = true});
  const Measured measured{job, slowest_measured(job)};
  const Rank& slowest = measured.slowest.rank;
  result.inputs = job.inputs();
  describe_measured(measured.slowest, result);
  add_warnings_of(slowest.import_notes, "measured", result.notes);
  add_warnings_of(slowest.inference.notes, "measured", result.notes);
  judge_interval(result);
  result.trust = trust_in_recording(slowest.inference, slowest.import_notes, AnswerAbout::recorded);
  try {
    explain_error(written, prediction_path, measured, options, result);
  } catch (const Error& error) {
    // An input that was asked for by name must exist; otherwise the step times can still be
    // compared.
    if (!options.trace.empty()) throw;
    result.notes.add(Severity::warning,
                     "the prediction cannot be made again, so the causes of its error are unknown; "
                     "give its input with --trace",
                     error.what());
  }
  add_to_ledger(measured_path, options, result);
  return result;
}

}  // namespace foretrace
