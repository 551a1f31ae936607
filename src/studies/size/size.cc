#include "studies/size/size.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "analysis/doubt/trust.h"
#include "base/files/json_file.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "job/job.h"
#include "question/predict/baseline.h"
#include "studies/size/algorithms.h"
#include "transform/parallel/gradients.h"

namespace foretrace {
namespace {

// Chooses the batch and the algorithms of its layers that are fastest within the memory of a GPU.

constexpr std::size_t kMaxChoices = 100'000;

class AlgorithmSettings final : public Described {
 public:
  void describe(Fields& fields) override {
    fields.text("name", algorithm.name, "Name of the algorithm in the answer");
    fields.time("time", algorithm.time, "Time of forward and backward pass, for the batch", 1ns);
    fields.bytes("memory", algorithm.memory, "Workspace that it needs");
  }
  LayerAlgorithm algorithm{.name = "algorithm", .time = 1ns};
};

/// The settings of a batch, without its layers.
class BatchSettings final : public Described {
 public:
  void describe(Fields& fields) override {
    fields.integer("size", size, "Samples in the batch", 1);
    fields.number("epochs", epochs, "Epochs until the target is reached with this batch", 1e-6);
    fields.bytes("feature_maps", feature_maps, "Feature maps with their gradients, for the batch");
    fields.bytes("parameters", parameters, "Parameters with gradients and momentum");
    fields.bytes("classifier", classifier, "Memory of layers that have no choice of algorithm");
  }
  std::int64_t size = 1;
  double epochs = 1;
  Bytes feature_maps{}, parameters{}, classifier{};
};

const nlohmann::json& list_of(const nlohmann::json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array() || found->empty())
    throw Error(fmt::format("must have a list \"{}\" that is not empty", name));
  return *found;
}

template <class Each>
void each_of(const nlohmann::json& json, const char* name, const Each& each) {
  const nlohmann::json& list = list_of(json, name);
  for (std::size_t i = 0; i < list.size(); ++i)
    within(fmt::format("{}[{}]", name, i), [&] { each(list[i]); });
}

std::vector<LayerChoices> layers_of(const nlohmann::json& json) {
  std::vector<LayerChoices> layers;
  std::size_t choices = 0;
  each_of(json, "layers", [&](const nlohmann::json& layer_json) {
    LayerChoices& layer = layers.emplace_back();
    layer.name = fmt::format("layer {}", layers.size());
    if (layer_json.is_object() && layer_json.contains("name") && layer_json["name"].is_string())
      layer.name = layer_json["name"].get<std::string>();
    each_of(layer_json, "algorithms", [&](const nlohmann::json& settings) {
      AlgorithmSettings fields;
      read_json(settings, fields);
      layer.algorithms.push_back(fields.algorithm);
      if (++choices > kMaxChoices)
        throw Error(fmt::format("must be at most {} in a batch", kMaxChoices));
    });
  });
  return layers;
}

SizedBatch size_batch(nlohmann::json json, double samples, const SizeQuestion& question) {
  const std::vector<LayerChoices> layers = layers_of(json);
  json.erase("layers");
  BatchSettings settings;
  read_json(json, settings);
  SizedBatch batch{.size = settings.size, .epochs = settings.epochs};
  batch.bound =
      *question.memory - settings.feature_maps - settings.parameters - settings.classifier;
  const auto choose = question.solver == "milp" ? choose_algorithms_by_milp : choose_algorithms;
  const std::optional<ChosenAlgorithms> chosen = choose(layers, batch.bound);
  if (!chosen) return batch;
  batch.fits = true;
  batch.time = chosen->time, batch.memory = chosen->memory;
  const double steps = settings.epochs * samples / static_cast<double>(settings.size);
  batch.total_hours = steps * static_cast<double>(batch.time.count()) / 3600e9;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerAlgorithm& algorithm = layers[i].algorithms[chosen->chosen[i]];
    batch.layers.push_back({layers[i].name, algorithm.name, algorithm.time, algorithm.memory});
  }
  return batch;
}

/// Reads `layers`, and sets `batches` and `best` of the report. Throws Error if no batch fits.
void size_batches(const SizeQuestion& question, SizingReport& report) {
  if (question.solver != "exact" && question.solver != "milp")
    throw Error("--solver: must be exact or milp, got " + question.solver);
  if (!question.memory) throw Error("--memory: must be given with --layers, the memory of a GPU");
  report.solver = question.solver, report.memory = *question.memory;
  const nlohmann::json json = read_json_file(question.layers);
  within(question.layers, [&] {
    list_of(json, "batches");
    const nlohmann::json samples = json.value("samples", nlohmann::json(1));
    if (!samples.is_number() || !(samples.get<double>() > 0))
      throw Error("samples: must be a number above 0, the samples of an epoch");
    each_of(json, "batches", [&](const nlohmann::json& batch) {
      report.batches.push_back(size_batch(batch, samples.get<double>(), question));
    });
  });
  for (std::size_t i = 0; i < report.batches.size(); ++i) {
    if (!report.batches[i].fits) continue;
    if (!report.best || report.batches[i].total_hours < report.batches[*report.best].total_hours)
      report.best = i;
  }
  if (!report.best)
    throw Error(
        fmt::format("--memory: no batch of {} fits in {}, whatever algorithms its layers use",
                    question.layers, to_text(report.memory)));
}

/// Adds the parts of a step, and as overhead the time in which no kernel computes.
void add_parts(const Breakdown& step, SizingReport& report) {
  report.compute = step.compute;
  report.overhead = Nanoseconds{0};
  const std::pair<const char*, Nanoseconds> parts[] = {{"communication", step.communication},
                                                       {"copies", step.copy},
                                                       {"input", step.input},
                                                       {"host", step.host},
                                                       {"idle", step.idle}};
  for (const auto& [name, time] : parts) {
    report.parts.emplace_back(name, time);
    *report.overhead += time;
  }
}

void read_trace(const SizeQuestion& question, SizingReport& report) {
  const JobRanks job = read_job(question.trace, {.reading = question.reading});
  const Inference& inference = only_rank(job).inference;
  const Baseline baseline = baseline_of(inference);
  report.trace = question.trace;
  report.trust = trust_of_recording(baseline.prediction, AnswerAbout::changes);
  report.notes = inference.notes;
  add_parts(baseline.prediction.baseline_breakdown, report);
  if (*report.compute <= 0ns) throw Error(question.trace + ": no kernel of a step computes");
  if (question.server.bytes_per_second <= 0 || question.model) return;
  try {
    const Gradients found = find_gradients(inference.graph, baseline.replayed, {});
    report.model = total_bytes(found.passes.back());
    if (found.estimate.bytes > Bytes{}) assume_gradients(found, report.assumptions);
  } catch (const Error&) {
    throw Error("--model-bytes: must be given, as the trace does not show its gradients");
  }
  report.assumptions.emplace_back("the model is as large as the gradients of a recorded step");
}

void size_gpus(const SizeQuestion& question, SizingReport& report) {
  const double share = report.overhead_share();
  if (share > 0) report.speedup_limit = (1 + share) / share;
  if (question.speedup) {
    report.gpus_for_speedup = gpus_for_speedup(share, *question.speedup);
    if (!report.gpus_for_speedup)
      throw Error(
          fmt::format("--speedup: must be below {}, the limit of any number of GPUs, got {}",
                      to_fixed(*report.speedup_limit, 2), to_text(*question.speedup)));
  }
  if (question.efficiency) {
    const double most = gpus_for_efficiency(share, *question.efficiency);
    if (std::isfinite(most)) report.gpus_for_efficiency = most;
  }
  for (const std::int64_t gpus : question.gpus) {
    const auto count = static_cast<double>(gpus);
    SizedCount& sized = report.counts.emplace_back();
    sized.gpus = gpus;
    sized.speedup = speedup_of(share, count);
    sized.efficiency = sized.speedup / count;
    if (question.efficiency) {
      const double allowed = overhead_allowed(*question.efficiency, count);
      if (std::isfinite(allowed)) sized.overhead_allowed = allowed;
    }
    if (report.model)
      sized.servers = static_cast<std::int64_t>(
          std::ceil(servers_for(*report.model, gpus, question.server, *report.compute)));
  }
  report.assumptions.emplace_back(
      "GPUs divide the computation of a step, and each has the whole overhead");
}

void check_question(const SizeQuestion& question) {
  const bool has_numbers = question.compute || question.overhead;
  if (!question.trace.empty() && has_numbers)
    throw Error(
        "--compute and --overhead: must not be given together with a trace, which has its "
        "own");
  if (question.trace.empty() && !has_numbers && question.layers.empty())
    throw Error("plan size: which TRACE? Without one, give --compute and --overhead, or --layers");
  if (has_numbers && (!question.compute || *question.compute <= 0ns))
    throw Error("--compute: must be above 0, the time of a step's kernels on one GPU");
  if (question.overhead && *question.overhead < 0ns)
    throw Error("--overhead: must be at least 0, got " + to_text(*question.overhead));
  if (question.speedup && !(*question.speedup >= 1))
    throw Error("--speedup: must be at least 1, got " + to_text(*question.speedup));
  if (question.efficiency && !(*question.efficiency > 0 && *question.efficiency <= 1))
    throw Error("--efficiency: must be above 0 and at most 1, got " +
                to_text(*question.efficiency));
  if (question.model && question.server.bytes_per_second <= 0)
    throw Error("--server-bandwidth: must be given with --model-bytes");
}

}  // namespace

double SizingReport::overhead_share() const {
  return static_cast<double>(overhead->count()) / static_cast<double>(compute->count());
}

SizingReport size_job(const SizeQuestion& question) {
  check_question(question);
  SizingReport report{.speedup = question.speedup,
                      .efficiency = question.efficiency,
                      .model = question.model,
                      .server = question.server};
  if (!question.trace.empty()) {
    read_trace(question, report);
  } else if (question.compute) {
    report.compute = question.compute, report.overhead = question.overhead.value_or(0ns);
    if (question.server.bytes_per_second > 0 && !question.model)
      throw Error("--model-bytes: must be given with --server-bandwidth where there is no trace");
  }
  if (report.compute) size_gpus(question, report);
  if (!question.layers.empty()) size_batches(question, report);
  return report;
}

}  // namespace foretrace
