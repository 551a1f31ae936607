// Gradients as packets, of which a bounded share may be lost (DLCP; MLT): the receiver goes on when
// 1 - p of a tensor is there, switches drop what matters least before queues grow, and packets take
// all paths, as their order does not matter.
//
//     transfer'  =  transfer  model(packets, transport) / model(before)
//
// `model(before)` is the closed form of the same algorithm on the same links, which is what
// data_parallel and p3 add: a network without loss or queues. For recorded transfers `before` names
// the transport that they were sent by.
//
// Importance. By layer: gradients of the front half of the model, which are sent last, tolerate
// more loss than those of the back (1.1 % against 0.4 % in DLCP's test of one model); all packets
// of the front half may be dropped early. By magnitude: packets below the median of their tensor.
// Magnitudes are assumed to be distributed exponentially, as no trace tells them.
//
// Ignored: more steps until the loss is as low, unless `more_steps` states them; what other jobs
// send on the same links; transfers of one job that overlap each other.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "network/packet/packet_on.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/known_collectives.h"

namespace foretrace {
namespace {

constexpr const char* kClosedForm = "closed";
constexpr const char* kNoTraffic =
    "nothing in the graph crosses a network; put it behind data_parallel, zero or p3, or record a "
    "job of several ranks";

/// Exponential magnitudes below the median make up 1/2 - ln(2)/2 of the sum.
constexpr double kSmallHalf = 0.1534;

class DropPackets final : public Transform {
 public:
  DropPackets() { packets_.transport = "bounded"; }

  void describe(Fields& fields) override {
    network_.describe(fields);
    fields.number(
        "loss", loss_,
        "Share of a gradient that may be missing when it is added up; the default is what "
        "the most sensitive of more than ten models tolerated (DLCP)",
        0, 1);
    fields.optional_number("front_loss", front_loss_,
                           "The same for the front half of the model; `loss` by default", 0);
    fields.optional_number("pull_loss", pull_loss_,
                           "Share that may be missing on the way back, where each value stands for "
                           "all workers; half of `loss` by default (assumed)",
                           0);
    fields.optional_number("late_loss", late_loss_,
                           "`loss` at the end of training; it changes evenly until then (assumed)",
                           0);
    fields.number("progress", progress_, "Share of the training that is done, for late_loss", 0, 1);
    fields.optional_number(
        "more_steps", more_steps_,
        "Share of further steps that training takes; must be stated where `loss` "
        "is above 3.5 %",
        0);
    packets_.describe(fields);
    fields.text("before", before_,
                "How the transfers in the trace are sent: \"closed\", without loss or queues, as "
                "data_parallel adds them, or a transport");
    describe_ranks(fields, ranks_);
    fields.object("where", where_, "The collectives to send so");
  }

  void check() const override {
    packets_.check();
    if (before_ != kClosedForm) within("before", [&] { recorded().check(); });
    for (const double loss : {loss_, front_loss_.value_or(0), late_loss_.value_or(0)}) {
      if (loss <= kMostTolerated || more_steps_) continue;
      throw Error(
          "loss: must be at most 0.035, the most that a model tolerated without more epochs (DLCP, "
          "MLT), unless more_steps says how many more steps training takes; got " +
          to_text(loss));
    }
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (graph.collectives().empty()) throw Error(kNoTraffic);
    const KnownCollectives known = known_collectives(graph, where_, ranks_);
    const std::vector<Transfer> transfers = chosen(graph, known);
    Run run{.networks = Communicators(network_)};
    for (const Transfer& one : transfers) {
      const Priced& priced = price(one, run);
      Nanoseconds& duration = graph.task(one.task).duration;
      run.before += duration;
      duration = scaled(duration, ratio(priced.after.expansion.time, priced.before));
      run.after += duration;
      add(priced.after, one.is_gradient, run);
    }
    Effect effect;
    effect.changed = transfers.size();
    known.note_unknown(effect);
    describe_effect(run, effect);
    return effect;
  }

 private:
  struct Transfer : KnownCollective {
    bool is_gradient = false, is_front = false;
  };
  struct Priced {
    Nanoseconds before{0};
    PacketRun after;
  };
  struct Run {
    Communicators networks;
    std::map<std::tuple<std::int32_t, Operation, std::int64_t, bool, bool>, Priced> known;
    Nanoseconds before{0}, after{0};
    PacketCounts counts;
    Bytes moved{};
    const PacketRun* largest = nullptr;
  };

  std::vector<Transfer> chosen(const Graph& graph, const KnownCollectives& known) const {
    if (known.all.empty() && known.unknown == 0) throw Error(kNoTraffic);
    known.require();
    std::vector<Transfer> found;
    for (const KnownCollective& one : known.all) {
      const bool adds =
          one.operation == Operation::all_reduce || one.operation == Operation::reduce_scatter;
      if (one.operation == Operation::all_gather && pull_loss_.value_or(0) > 0)
        throw Error(
            "pull_loss: must be 0 where parameters are gathered, as FSDP and ZeRO do, because a "
            "worker has no earlier values to fall back on; or leave them out with where");
      found.push_back({one, adds && graph.task(one.task).phase != Phase::forward});
    }
    mark_front(graph, found);
    return found;
  }

  /// The front half of the model's bytes is ready last, in each step.
  static void mark_front(const Graph& graph, std::vector<Transfer>& transfers) {
    const Timeline timeline = simulate(graph, {.memory = false});
    std::map<std::int32_t, std::vector<Transfer*>> steps;
    for (Transfer& one : transfers) {
      if (one.is_gradient) steps[graph.task(one.task).step].push_back(&one);
    }
    for (auto& [step, gradients] : steps) {
      std::ranges::stable_sort(
          gradients, {}, [&](const Transfer* one) { return timeline.start[index(one->task)]; });
      Bytes all{}, sum{};
      for (const Transfer* one : gradients) all += one->bytes;
      for (Transfer* one : gradients) {
        one->is_front = sum.count * 2 >= all.count;
        sum += one->bytes;
      }
    }
  }

  double loss_now() const { return late_loss_ ? loss_ + (*late_loss_ - loss_) * progress_ : loss_; }

  PacketSettings recorded() const {
    PacketSettings settings = packets_;
    settings.transport = before_;
    return settings;
  }

  PacketSettings settings_for(const Transfer& one) const {
    PacketSettings settings = packets_;
    if (!one.is_gradient) return settings;
    settings.loss = one.is_front ? front_loss_.value_or(loss_now()) : loss_now();
    settings.pull_loss = pull_loss_.value_or(settings.loss / 2);
    if (one.is_front) settings.unimportant = 1;
    return settings;
  }

  const Priced& price(const Transfer& one, Run& run) const {
    const auto [found, is_new] = run.known.try_emplace(
        {one.ranks, one.operation, one.bytes.count, one.is_gradient, one.is_front});
    if (!is_new) return found->second;
    const Communicator& network = run.networks.among(one.ranks);
    found->second.after = network.as_packets(one.operation, one.bytes, settings_for(one));
    if (before_ == kClosedForm) {
      found->second.before = network.on_links(one.operation, one.bytes);
    } else {
      found->second.before =
          network.as_packets(one.operation, one.bytes, recorded()).expansion.time;
    }
    return found->second;
  }

  static void add(const PacketRun& packets, bool is_gradient, Run& run) {
    const PacketCounts& counts = packets.counts;
    run.counts.dropped_important += counts.dropped_important;
    run.counts.dropped_unimportant += counts.dropped_unimportant;
    run.counts.sent_again += counts.sent_again;
    run.counts.missing_important += counts.missing_important;
    run.counts.missing_unimportant += counts.missing_unimportant;
    run.counts.timeouts += counts.timeouts;
    run.counts.deepest = std::max(run.counts.deepest, counts.deepest);
    if (is_gradient) run.moved += packets.expansion.moved;
    if (run.largest == nullptr || packets.expansion.moved > run.largest->expansion.moved)
      run.largest = &packets;
  }

  void describe_effect(const Run& run, Effect& effect) const {
    const PacketCounts& counts = run.counts;
    const double moved = std::max(1.0, static_cast<double>(run.moved.count));
    const auto unimportant = static_cast<double>(counts.missing_unimportant.count);
    const auto important = static_cast<double>(counts.missing_important.count);
    effect.summary = counted(static_cast<std::int64_t>(effect.changed), "collective") +
                     " sent by " + packets_.transport + " take " + to_text(run.after) +
                     " instead of " + to_text(run.before) + " in all, on " +
                     run.networks.described();
    effect.figures = {{"transfer_before", run.before},
                      {"transfer_after", run.after},
                      {"message_mean", run.largest->mean},
                      {"message_p50", run.largest->median},
                      {"message_p99", run.largest->p99},
                      {"dropped_unimportant", counts.dropped_unimportant},
                      {"dropped_important", counts.dropped_important},
                      {"sent_again", counts.sent_again},
                      {"missing_share", (unimportant + important) / moved},
                      {"missing_magnitude",
                       (unimportant * 2 * kSmallHalf + important * 2 * (1 - kSmallHalf)) / moved},
                      {"timeouts", static_cast<double>(counts.timeouts)},
                      {"deepest_queue", counts.deepest}};
    effect.assumptions = run.networks.assumed();
    describe_assumptions(effect);
  }

  void describe_assumptions(Effect& effect) const {
    effect.assumptions.emplace_back(
        "switches have " + to_text(packets_.buffer) +
        " of memory; connections are open and begin with a full window; acknowledgements are not "
        "lost; each transfer has the network to itself");
    if (packets_.transport != "bounded") return;
    effect.assumptions.push_back(
        "up to " + to_share(std::max(loss_now(), front_loss_.value_or(0)), 2) +
        " of gradients may be missing: models tolerated 0.6 to 3.5 % with the same epochs and "
        "accuracy (DLCP, MLT), and nobody knows which of them yours is like");
    effect.assumptions.push_back(
        "unimportant packets, half of them by magnitude (assumed exponential) and all of the front "
        "half of the model, are dropped in queues above " +
        to_text(packets_.drop_threshold()) + " (assumed)");
    if (more_steps_)
      effect.assumptions.push_back(
          "training takes " + to_share(*more_steps_) +
          " more steps for the same accuracy, as stated; step times do not "
          "show that");
  }

  NetworkSettings network_;
  PacketSettings packets_;
  double loss_ = kLeastTolerated, progress_ = 0;
  std::optional<double> front_loss_, pull_loss_, late_loss_, more_steps_;
  std::string before_ = kClosedForm;
  std::int64_t ranks_ = 0;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry drop_packets_entry() {
  return {
      .make = made<DropPackets>,
      .assumes =
          "Collectives, recorded or added by a step in front, are sent packet by packet over "
          "the links of the network, each by itself: queues in switches with shared memory, a "
          "transport that repairs losses or does without them, one path or all. A transfer "
          "changes by the time of its packets over the closed form of the same algorithm on "
          "the same links, or over that of another transport (`before`). With transport "
          "bounded a share of each gradient may be lost (DLCP, MLT); 0.6 to 3.5 % left "
          "accuracy and epochs of published models as they were. Thresholds, the share of "
          "unimportant packets and open connections are assumed; DCTCP's constants and pFabric's "
          "buffers are published.",
      .worth = {.why_not = "which network and which loss your model tolerates is your question: "
                           "drop_packets:bandwidth=1.25GB/s,latency=20us,loss=0.01"}};
}

}  // namespace foretrace
