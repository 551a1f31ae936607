// Runs a job recorded on one GPU on many: each trains on batches of its own, and gradients are
// summed in buckets while the backward pass goes on (S. Li et al., PyTorch Distributed, VLDB 2020).
//
//     stream   |FFFF|B4 B3 c B2 B1 c|CU|       c: gradients into a bucket, C: out of all of them
//     network            |RRRR|  |RR|          R: all-reduce of a bucket, once its last gradient
//                                                 is ready; the update waits for the last one
//
// A bucket takes gradients in the order in which they are ready, until it holds `bucket` bytes; the
// first one only `first_bucket`. The all-reduce takes what the network's model says. Copies into
// and out of buckets read and write each gradient once.
//
// Kernels and collectives that overlap take longer: see contention.cc.
//
// The slowest worker is ready later than a typical one: by E(N) (lateness + lateness_share x time
// of both passes), where E(N) is the expected greatest of N standard normal numbers. A bucket that
// is ready half way through the passes waits for half of that.
//
// Ignored: the host's work for buckets.

#include <fmt/core.h>

#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/gradient_exchange.h"

namespace foretrace {
namespace {

class DataParallel final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "Workers in all, each on a GPU of its own", 1, 1'000'000);
    network_.describe(fields);
    exchange_.describe(fields);
    fields.bytes("gradient_bytes", gradient_bytes_,
                 "All gradients of a step; 0B: from the trace, estimated where it shows no memory");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    if (gpus_ == 1) return single_gpu_effect();
    const Timeline timeline = simulate(graph, {.memory = false});
    const Gradients found = find_gradients(graph, timeline, gradient_bytes_);
    Communicator communicator(network_, gpus_, context.gpus_per_worker);
    GradientExchange exchange(graph, timeline, communicator, exchange_, gpus_);
    if (exchange_.copies) exchange.copy_with(memory_rate(graph, context, "copies"));
    for (const BackwardPass& pass : found.passes) exchange.send(pass, Operation::all_reduce);
    // Buckets take as much memory as the gradients that are copied into them.
    if (exchange_.copies)
      add_permanent_block(graph, exchange.totals().largest, MemoryUse::gradient);
    Effect effect;
    effect.changed = exchange.changed();
    effect.changed += contend(graph, exchange_.workers.contention).changed;
    describe_effect(found, exchange, communicator, effect);
    return effect;
  }

  JobChange job_change() const override { return JobChange::on(gpus_, gpus_, network_.text()); }

 private:
  static Effect single_gpu_effect() {
    Effect effect;
    effect.summary = "a single GPU exchanges no gradients";
    return effect;
  }

  static void describe_effect(const Gradients& found, const GradientExchange& exchange,
                              const Communicator& communicator, Effect& effect) {
    const GradientExchange::Totals& totals = exchange.totals();
    effect.summary = fmt::format("{} of gradients a step in {} among {}", to_text(totals.largest),
                                 counted(totals.buckets / found.passes.size(), "bucket"),
                                 communicator.described());
    effect.figures = exchange.figures(found.passes.size());
    effect.transfers = communicator.doubt();
    effect.assumptions = communicator.assumed();
    assume_gradients(found, effect.assumptions);
    effect.assumptions.emplace_back(
        "every worker takes as long for its batch as the recorded one, except that all wait for "
        "the latest, by as much as published scaling on DGX machines shows; kernels and "
        "collectives that overlap slow each other down by fixed shares");
  }

  std::int64_t gpus_ = 8;
  NetworkSettings network_;
  ExchangeSettings exchange_;
  Bytes gradient_bytes_{};
};

}  // namespace

TransformEntry data_parallel_entry() {
  return {
      .make = create<DataParallel>,
      .assumes =
          "Each worker trains as the recorded one on a batch of its own. Gradients, as the "
          "trace shows them or as many bytes as given, fill buckets in the order in which they "
          "are ready; a bucket is summed over all workers by an all-reduce as soon as its last "
          "gradient is ready, one after the other, and the update waits for the last. An "
          "all-reduce takes what NCCL's own model says of the machine, or what a uniform "
          "network takes. Copies into and out of buckets run on the stream of the backward "
          "pass. Buckets of DistributedDataParallel: 25 MiB, the first 1 MiB.",
      .advice = {.why_not =
                     "say how many GPUs and which network: data_parallel:gpus=8,machine=dgx-a100"}};
}

}  // namespace foretrace
