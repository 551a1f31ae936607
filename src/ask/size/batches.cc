#include "ask/size/batches.h"

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
    fields.text("name", one.name, "Name of the algorithm in the answer");
    fields.time("time", one.time, "Time of forward and backward pass, for the batch", 1ns);
    fields.bytes("memory", one.memory, "Workspace that it needs");
  }
  LayerAlgorithm one{.name = "algorithm", .time = 1ns};
};

/// The settings of a batch, without its layers.
class BatchSettings final : public Described {
 public:
  void describe(Fields& fields) override {
    fields.integer("size", size, "Samples in the batch", 1);
    fields.number("epochs", epochs, "Epochs until the target is reached with this batch", 1e-6);
    fields.bytes("feature_maps", feature_maps, "Feature maps with their gradients, for the batch");
    fields.bytes("parameters", parameters, "Parameters with gradients and momentum");
    fields.bytes("classifier", classifier, "Memory of layers without a choice");
  }
  std::int64_t size = 1;
  double epochs = 1;
  Bytes feature_maps{}, parameters{}, classifier{};
};

const nlohmann::json& list_of(const nlohmann::json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array() || found->empty())
    throw Error(std::string("must have a list \"") + name + "\" that is not empty");
  return *found;
}

template <class Each>
void each_of(const nlohmann::json& json, const char* name, const Each& each) {
  const nlohmann::json& list = list_of(json, name);
  for (std::size_t i = 0; i < list.size(); ++i)
    within(std::string(name) + "[" + std::to_string(i) + "]", [&] { each(list[i]); });
}

std::vector<LayerChoices> layers_of(const nlohmann::json& json) {
  std::vector<LayerChoices> layers;
  std::size_t choices = 0;
  each_of(json, "layers", [&](const nlohmann::json& one) {
    LayerChoices& layer = layers.emplace_back();
    layer.name = "layer " + std::to_string(layers.size());
    if (one.is_object() && one.contains("name") && one["name"].is_string())
      layer.name = one["name"].get<std::string>();
    each_of(one, "algorithms", [&](const nlohmann::json& settings) {
      AlgorithmSettings algorithm;
      read_json(settings, algorithm);
      layer.algorithms.push_back(algorithm.one);
      if (++choices > kMostChoices)
        throw Error("must be at most " + std::to_string(kMostChoices) + " in a batch");
    });
  });
  return layers;
}

SizedBatch sized(nlohmann::json json, double samples, const SizeQuestion& question) {
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
    const LayerAlgorithm& one = layers[i].algorithms[chosen->chosen[i]];
    batch.layers.push_back({layers[i].name, one.name, one.time, one.memory});
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
    each_of(json, "batches", [&](const nlohmann::json& one) {
      report.batches.push_back(sized(one, samples.get<double>(), question));
    });
  });
  for (std::size_t i = 0; i < report.batches.size(); ++i) {
    if (!report.batches[i].fits) continue;
    if (!report.best || report.batches[i].total_hours < report.batches[*report.best].total_hours)
      report.best = i;
  }
  if (!report.best)
    throw Error("--memory: no batch of " + question.layers + " fits in " + to_text(report.memory) +
                ", whatever algorithms its layers use");
}

}  // namespace foretrace
