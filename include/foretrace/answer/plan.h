#pragma once

// The answer of `foretrace plan`: the fastest layouts of a job, what else is worth a look, and why
// the others lost.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/generation.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

struct PlanRow {
  std::string role{};    ///< "yours" or "plain data parallelism"; empty for the others.
  std::string layout{};  ///< For --layout of `generate`.
  std::int64_t gpus = 1;
  Nanoseconds time{0}, lower{0}, upper{0};  ///< 80 % of measured steps should lie between them.
  Nanoseconds bubble{0}, network{0}, kernels{0};  ///< Their sum is the time.
  Bytes reserved{};                               ///< On the fullest device.
  std::optional<double> cost{};                   ///< Of 1,000 steps.
  bool is_covered = false;                        ///< Steps of this shape were measured.
  bool fits = true;
  /// Where most of what it is behind the fastest comes from: memory (it does not fit), bubble,
  /// network or kernels. Empty for the fastest.
  std::string loss{};
};

/// Stages behind each other that are alike.
struct PlanStages {
  std::string first{}, last{};  ///< Layers.
  std::size_t stages = 1;
  std::size_t layers = 1;  ///< Of each.
  std::int64_t gpus = 1;   ///< Of each.
  Nanoseconds time{0};     ///< A micro-batch takes so long in each.
};

/// The choice of a strategy other than the exhaustive search.
struct PlanStrategy {
  std::string name{};
  Nanoseconds time{0};  ///< Of a step, by its own model.
  std::int64_t micro_batch = 1;
  std::string schedule{};
  bool recomputes = false;
  std::vector<PlanStages> stages{};
  bool is_ranked = false;  ///< It is a layout, and the first that is ranked.
};

struct PlanReport {
  std::string model, machine;
  std::string trace{};  ///< Of the job, where `model` is not described but recorded.
  std::int64_t global_batch = 1;
  Bytes limit{};                          ///< Memory of a device that layouts may use.
  std::string currency;                   ///< Of prices; empty without them.
  std::optional<PlanStrategy> strategy;   ///< Nothing: the exhaustive search.
  std::size_t layouts = 0, replayed = 0;  ///< All that the model allows; those not bounded away.
  std::vector<PlanRow> ranked;            ///< Fastest first; then plain data parallelism, yours.
  std::vector<PlanRow> front;             ///< None is better in time, memory and price.
  std::vector<std::pair<std::string, std::size_t>> losses;  ///< Why the layouts not shown lost.
  /// The fastest layout that a program has flags for; no flags where it has them for none.
  std::string command{};  ///< That answers for the fastest alone.
  struct Launch {
    std::string program;
    std::optional<PlanRow> row;
    std::vector<std::string> flags;
  };
  std::vector<Launch> launches;
  std::optional<GenerationReport> measured;  ///< How the user's measured runs are reproduced.
  std::vector<std::string> assumptions;
  Notes notes;
};

/// Whether a measured run lies in its interval, or ran out of memory as predicted.
bool is_reproduced(const GeneratedRow& row);

}  // namespace foretrace
