#pragma once

// The size of a data parallel job, after the lemmas of Zou et al., "Distributed Training
// Large-Scale Deep Architectures" (arXiv 1709.06622; recalled, the algebra is derived again).
//
// In a step on one GPU, C is computation, which G GPUs divide, and O overhead that nothing hides,
// which each of them has. With R = O / C
//
//     speed-up    S(G) = G (1 + R) / (1 + G R)  <  (1 + R) / R
//     efficiency  S(G) / G
//
// Servers that each send and receive B bytes a second hide the traffic of N workers with a model of
// P bytes behind their computation if there are at least 2 P N / (B C).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

double speedup_of(double overhead, double gpus);
/// Nothing where no number is enough.
std::optional<double> gpus_for_speedup(double overhead, double speedup);
/// Beyond them each does less than this share of one alone; infinite without overhead.
double gpus_for_efficiency(double overhead, double efficiency);
/// The greatest R with which so many GPUs are as efficient; infinite where any is.
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

/// One algorithm for each layer, so that the sum of times is least and that of memory within
/// `bound`; nothing where none fits. By the pairs of time and memory that no other pair of the same
/// layers is better than.
std::optional<ChosenAlgorithms> choose_algorithms(const std::vector<LayerChoices>& layers,
                                                  Bytes bound);
/// The same time, by an integer program. Throws Error as IntegerProgram does.
std::optional<ChosenAlgorithms> choose_algorithms_by_milp(const std::vector<LayerChoices>& layers,
                                                          Bytes bound);

}  // namespace foretrace
