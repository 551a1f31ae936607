#pragma once

// `foretrace serve`: what a deployment of a model does under a load, or how far predictions are
// from measured deployments.

#include <string>
#include <vector>

#include "foretrace/answer/serving.h"
#include "foretrace/fields.h"

namespace foretrace {

struct ServeQuestion final : Described {
  void describe(Fields& fields) override;
  /// Parts of it, for questions about the same.
  void describe_served(Fields& fields);
  void describe_measured(Fields& fields);
  void describe_memory(Fields& fields);
  void describe_prices(Fields& fields);

  std::string model;            ///< For find_workload(); a transformer.
  std::string machine;          ///< For find_cluster().
  std::string engine = "vllm";  ///< A scheduler with settings: "vllm:max_num_seqs=64".
  std::string version{};        ///< Of the engine; empty: a recent one.
  std::string load{};           ///< Settings of a load: "concurrency=64,input=1024".
  std::string weights = "bf16", cache = "auto";
  std::int64_t tensor = 1, data = 1, expert = 1;
  std::int64_t replicas = 1, prefill_replicas = 0;
  std::string router = "least_busy";  ///< Or round_robin.
  double utilization = 0;             ///< Share of memory for the engine; 0: its own rule.
  std::string table{};      ///< CSV of measured steps instead of a price by model and device.
  std::string calibrate{};  ///< CSV of measured deployments to correct by.
  std::string against{};    ///< CSV of measured deployments to compare with.
  std::string goodput{};    ///< Demanded times: "ttft=500ms,tpot=50ms".
  std::string slo{};        ///< Latencies that must hold: "ttft_p99=2s,tpot_p99=50ms".
  std::string prices{};     ///< As in TrainingQuestion.
  std::string vary{};       ///< "tensor=2,4": a setting of this, of the engine or of the load.

 private:
  void describe_layout(Fields& fields);
};

/// Throws Error if the question cannot be answered; with `vary`, only if no point can.
ServingReport serve_model(const ServeQuestion& question);

}  // namespace foretrace
