#pragma once

// Sizes a data parallel job, following the lemmas of Zou et al., "Distributed Training Large-Scale
// Deep Architectures" (arXiv 1709.06622; recalled, with the algebra derived again).
//
// In a step on one GPU, C is the computation, which G GPUs divide among them, and O is the overhead
// that nothing hides and that each GPU has. With R = O / C
//
//     speed-up    S(G) = G (1 + R) / (1 + G R)  <  (1 + R) / R
//     efficiency  S(G) / G
//
// If each server sends and receives B bytes a second, at least 2 P N / (B C) servers are needed to
// hide the traffic of N workers with a model of P bytes behind their computation.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

double speedup_of(double overhead, double gpus);
/// Returns nullopt if no number of GPUs reaches the speed-up.
std::optional<double> gpus_for_speedup(double overhead, double speedup);
/// Returns the number of GPUs beyond which the efficiency of each falls below this share; infinite
/// without overhead.
double gpus_for_efficiency(double overhead, double efficiency);
/// Returns the greatest R with which so many GPUs reach this efficiency; infinite if any R does.
double overhead_allowed(double efficiency, double gpus);
double servers_for(Bytes model, std::int64_t workers, Bandwidth server, Nanoseconds compute);

struct LayerAlgorithm {
  std::string name{};
  Nanoseconds time{0};
  Bytes memory{};  ///< Work space.
};

struct LayerChoices {
  std::string name{};
  std::vector<LayerAlgorithm> algorithms{};
};

struct ChosenAlgorithms {
  std::vector<std::size_t> chosen;  ///< By layer.
  Nanoseconds time{0};
  Bytes memory{};
};

/// Chooses one algorithm per layer such that the total time is minimal and the total memory is
/// within `bound`. Returns nullopt if no choice fits. Works on the Pareto-optimal pairs of time and
/// memory over the first layers.
std::optional<ChosenAlgorithms> choose_algorithms(const std::vector<LayerChoices>& layers,
                                                  Bytes bound);
/// Finds the same time by an integer program. Throws Error as IntegerProgram does.
std::optional<ChosenAlgorithms> choose_algorithms_by_milp(const std::vector<LayerChoices>& layers,
                                                          Bytes bound);

}  // namespace foretrace
