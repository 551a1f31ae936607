#include "ask/size/batches.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/files/json_file.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "plan/size.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostChoices = 100'000;

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
      if (++choices > kMostChoices)
        throw Error(fmt::format("must be at most {} in a batch", kMostChoices));
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

}  // namespace

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

}  // namespace foretrace
