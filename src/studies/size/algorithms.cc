#include "studies/size/algorithms.h"

#include <algorithm>
#include <tuple>

#include "studies/program/integer_program.h"

namespace foretrace {
namespace {

/// A choice of algorithms for the first layers.
struct PartialChoice {
  Nanoseconds time{0};
  Bytes memory{};
  /// Algorithm of the last layer; index of the choice for the layers before it.
  std::size_t algorithm = 0, before = 0;
};

/// Sorted by memory; each takes less time than those before it.
std::vector<PartialChoice> undominated(std::vector<PartialChoice> all) {
  std::ranges::sort(all, [](const PartialChoice& a, const PartialChoice& b) {
    return std::tie(a.memory, a.time, a.before, a.algorithm) <
           std::tie(b.memory, b.time, b.before, b.algorithm);
  });
  std::vector<PartialChoice> kept;
  for (const PartialChoice& one : all) {
    if (kept.empty() || one.time < kept.back().time) kept.push_back(one);
  }
  return kept;
}

ChosenAlgorithms with_totals(const std::vector<LayerChoices>& layers,
                             std::vector<std::size_t> chosen) {
  ChosenAlgorithms answer{.chosen = std::move(chosen)};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerAlgorithm& one = layers[i].algorithms[answer.chosen[i]];
    answer.time += one.time, answer.memory += one.memory;
  }
  return answer;
}

Bytes least_memory(const std::vector<LayerChoices>& layers) {
  Bytes sum{};
  for (const LayerChoices& layer : layers)
    sum += std::ranges::min(layer.algorithms, {}, &LayerAlgorithm::memory).memory;
  return sum;
}

}  // namespace

std::optional<ChosenAlgorithms> choose_algorithms(const std::vector<LayerChoices>& layers,
                                                  Bytes bound) {
  std::vector<std::vector<PartialChoice>> fronts = {{PartialChoice{}}};
  Bytes rest = least_memory(layers);
  for (const LayerChoices& layer : layers) {
    rest -= std::ranges::min(layer.algorithms, {}, &LayerAlgorithm::memory).memory;
    std::vector<PartialChoice> next;
    for (std::size_t before = 0; before < fronts.back().size(); ++before) {
      const PartialChoice& one = fronts.back()[before];
      for (std::size_t i = 0; i < layer.algorithms.size(); ++i) {
        const LayerAlgorithm& algorithm = layer.algorithms[i];
        const Bytes memory = one.memory + algorithm.memory;
        if (memory + rest <= bound) next.push_back({one.time + algorithm.time, memory, i, before});
      }
    }
    if (next.empty()) return std::nullopt;
    fronts.push_back(undominated(std::move(next)));
  }
  std::vector<std::size_t> chosen(layers.size());
  std::size_t at = fronts.back().size() - 1;
  for (std::size_t i = layers.size(); i-- > 0;) {
    const PartialChoice& one = fronts[i + 1][at];
    chosen[i] = one.algorithm, at = one.before;
  }
  return with_totals(layers, std::move(chosen));
}

std::optional<ChosenAlgorithms> choose_algorithms_by_milp(const std::vector<LayerChoices>& layers,
                                                          Bytes bound) {
  // Milliseconds and megabytes keep the coefficients of the program near 1.
  constexpr double kMillisecond = 1e6, kMega = 1e6;
  IntegerProgram program("exact");
  if (least_memory(layers) > bound) return std::nullopt;
  IntegerProgram::Terms memory;
  for (const LayerChoices& layer : layers) {
    IntegerProgram::Terms one;
    for (const LayerAlgorithm& algorithm : layer.algorithms) {
      const int taken = program.add(IntegerProgram::Kind::binary, 1,
                                    -static_cast<double>(algorithm.time.count()) / kMillisecond);
      one.emplace_back(taken, 1.);
      memory.emplace_back(taken, static_cast<double>(algorithm.memory.count) / kMega);
    }
    program.require(one, 1, 1);
  }
  program.require(memory, -IntegerProgram::kInfinite, static_cast<double>(bound.count) / kMega);
  const IntegerProgram::Solution solution = program.maximize();
  std::vector<std::size_t> chosen;
  std::size_t at = 0;
  for (const LayerChoices& layer : layers) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < layer.algorithms.size(); ++i, ++at) {
      if (solution.values[at] > .5) taken = i;
    }
    chosen.push_back(taken);
  }
  return with_totals(layers, std::move(chosen));
}

double speedup_of(double overhead, double gpus) {
  return gpus * (1 + overhead) / (1 + gpus * overhead);
}

std::optional<double> gpus_for_speedup(double overhead, double speedup) {
  const double left = 1 + overhead - speedup * overhead;
  if (left <= 0) return std::nullopt;
  return speedup / left;
}

double gpus_for_efficiency(double overhead, double efficiency) {
  if (overhead <= 0) return std::numeric_limits<double>::infinity();
  return ((1 + overhead) / efficiency - 1) / overhead;
}

double overhead_allowed(double efficiency, double gpus) {
  const double lost = efficiency * gpus - 1;
  return lost <= 0 ? std::numeric_limits<double>::infinity() : (1 - efficiency) / lost;
}

double servers_for(Bytes model, std::int64_t workers, Bandwidth server, Nanoseconds compute) {
  const double bytes = 2 * static_cast<double>(model.count) * static_cast<double>(workers);
  return bytes / (server.bytes_per_second * static_cast<double>(compute.count()) * 1e-9);
}

}  // namespace foretrace
