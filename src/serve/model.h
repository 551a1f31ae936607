#pragma once

// A model as an engine holds it: its weights by precision, its cache of keys and values, and what a
// step computes and reads on one device.
//
//     described transformer --precision, placement--> bytes, and operations of a step
//
// A device of a tensor parallel group holds 1/t of each layer. Ranks of data parallel attention
// hold all of it, but share the experts with each other.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/machine.h"
#include "foretrace/units.h"
#include "machine/operation_rates.h"
#include "serve/loop.h"

namespace foretrace::serve {

/// The settings of a described transformer that serving needs. Sizes in elements.
struct Model {
  std::string name;
  double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head = 0, value = 0;
  double ffn = 0, matrices = 3, vocabulary = 0;
  double experts = 0, active = 0, expert_ffn = 0, shared_ffn = 0, dense_layers = 0;
  double query_rank = 0, kv_rank = 0, rotary = 0;  ///< Latent attention; 0: none.
  double window = 0;                               ///< Tokens that `window_layers` attend back to.
  double window_layers = 0;                        ///< Layers with a window.
  double state_layers = 0;           ///< Layers with a state of constant size instead of a cache.
  double state_bytes = 0;            ///< In all these layers, for one sequence.
  std::int64_t context = 0;          ///< Longest request.
  bool narrow_experts_only = false;  ///< Published narrow weights keep the rest in half precision.
  bool is_tied = false;

  double attention_parameters() const;  ///< In a layer.
  double expert_parameters() const;     ///< In one expert.
  double parameters() const;
};

/// A preset or file of find_workload(), which must describe a transformer. Throws Error.
Model find_model(const std::string& name);

struct Precision {
  std::string name;
  Arithmetic dense = Arithmetic::half, experts = Arithmetic::half;
  double dense_bytes = 2, expert_bytes = 2;  ///< For a parameter, with its scales.
  double cache_bytes = 2;                    ///< For an element of the cache.
};

/// Weights: bf16, fp8, fp8_block, fp4 (of nvfp4 or, by the model, mxfp4), int4. The cache: auto,
/// bf16, fp8 or fp4; auto is fp8 with weights of 8 or 4 bits, as measured deployments suggest
/// (their times fit better so), else bf16. Throws Error if the device has no such arithmetic.
Precision precision_of(const Model& model, const std::string& weights, const std::string& cache,
                       const DeviceModel& device);

/// How one copy of a model is placed. Experts are on tensor x data devices: `expert` groups of
/// them, each with its own experts.
struct Placement {
  std::int64_t tensor = 1, data = 1, expert = 1;

  double devices() const { return static_cast<double>(tensor * data); }
};

/// Throws Error if the placement does not divide the model.
void check_placement(const Model& model, const Placement& placement);

/// Bytes of one device.
double weight_bytes(const Model& model, const Precision& precision, const Placement& placement);
/// For one token in layers whose cache grows.
double cache_bytes_per_token(const Model& model, const Precision& precision, std::int64_t tensor);
/// For one sequence, whatever its length: windows and states.
double cache_bytes_per_sequence(const Model& model, const Precision& precision,
                                std::int64_t tensor);

/// One kind of operation of a step on one device, `count` times.
struct Operation {
  OperationKind kind;
  Arithmetic arithmetic;
  double count = 1;
  double flops = 0, weights = 0, cache = 0, moved = 0;  ///< For one; the last three are bytes.
};

/// The operations of a step, and the sums over tensor parallel ranks.
struct StepOperations {
  std::vector<Operation> operations;
  double exchanges = 0, exchanged = 0;  ///< Number of sums, bytes of each.
  double dispatched = 0;                ///< Bytes that experts on other devices get, all layers.
};
StepOperations operations_of(const Model& model, const Precision& precision,
                             const Placement& placement, const StepWork& work);

/// Expected number of distinct experts of `experts` that `tokens` tokens reach, each `active` of
/// them at random.
double distinct_experts(double experts, double active, double tokens);

/// Tokens of a step of speculative decoding: (1 - a^(g + 1)) / (1 - a).
double tokens_per_step(double acceptance, std::int64_t drafts);

}  // namespace foretrace::serve
