// Sends gradients as packets, of which a bounded share p may be lost (DLCP; MLT): the receiver goes
// on when the share 1 - p of a tensor has arrived, switches drop the least important packets before
// queues grow, and packets take all paths, because their order does not matter.
//
//     transfer'  =  transfer  model(packets, transport) / model(before)
//
// `model(before)` is the closed form of the same algorithm on the same links, which is what
// data_parallel and p3 add: a network without loss or queues. For recorded transfers `before` names
// the transport that they were sent by. Transfers of a step that are ready at the same time meet in
// one network, unless their lane runs them one after another: see packet_traffic.h. A transfer that
// only the network orders takes the time from when it is ready to when it has arrived, plus what
// overlapping kernels add.
//
// Importance. By layer: gradients of the front half of the model, which are sent last, tolerate
// more loss than those of the back (1.1 % against 0.4 % in DLCP's test of one model); all packets
// of the front half may be dropped early. By magnitude: packets below the median of their tensor.
// Magnitudes are assumed to be distributed exponentially, because no trace records them.
//
// Ignored: that training may need more steps to reach the same loss, unless `more_steps` states
// them; traffic of other jobs on the same links.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/known_collectives.h"
#include "transform/parallel/packet_traffic.h"

namespace foretrace {
namespace {

constexpr const char* kClosedForm = "closed";
constexpr const char* kNoTraffic =
    "nothing in the graph crosses a network; put this step after data_parallel, zero or p3, or "
    "record a job of several ranks";

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
        "Additional steps that training takes, as a share; must be given where `loss` "
        "is above 3.5 %",
        0);
    packets_.describe(fields);
    fields.text("before", before_,
                "How the transfers in the trace are sent: \"closed\", without loss or queues, as "
                "data_parallel adds them, or a transport");
    fields.choice("order", order_, {"auto", "lane", "ready"},
                  "When a transfer begins. lane: after the one before it, as NCCL runs those of a "
                  "communicator; ready: when its data is ready; auto: ready for parameter servers, "
                  "otherwise lane");
    fields.flag("front_first", front_first_,
                "With bounded after p3: switches, too, send packets of the front layers first");
    describe_ranks(fields, ranks_);
    fields.object("where", where_, "The collectives to send as packets");
  }

  void check() const override {
    packets_.check();
    if (before_ != kClosedForm) within("before", [&] { recorded().check(); });
    for (const double loss : {loss_, front_loss_.value_or(0), late_loss_.value_or(0)}) {
      if (loss <= kMaxTolerated || more_steps_) continue;
      throw Error(
          "loss: must be at most 0.035, the most that a model tolerated without more epochs (DLCP, "
          "MLT), unless more_steps says how many more steps training takes; got " +
          to_text(loss));
    }
  }

  Effect apply(Graph& graph, const Context& context) const override {
    if (graph.collectives().empty()) throw Error(kNoTraffic);
    const KnownCollectives known = known_collectives(graph, where_, ranks_);
    const std::vector<PacketTransfer> transfers = chosen(graph, known);
    const NetworkSettings network = network_behind(context);
    Communicators networks(network);
    PacketSettings after = packets_;
    after.switch_priorities = front_first_ && packets_.transport == "bounded";
    const PacketSettings before = recorded();
    PacketTraffic traffic(graph, networks, after, before_ == kClosedForm ? nullptr : &before);
    const PacketTraffic::Totals totals = traffic.send(transfers, begin_when_ready(network));
    Effect effect;
    effect.changed = transfers.size();
    known.note_unknown(effect);
    describe_effect(totals, networks, effect);
    return effect;
  }

 private:
  std::vector<PacketTransfer> chosen(const Graph& graph, const KnownCollectives& known) const {
    if (known.all.empty() && known.unknown == 0) throw Error(kNoTraffic);
    known.require();
    std::vector<PacketTransfer> found;
    for (const KnownCollective& collective : known.all) {
      if (collective.operation == Operation::all_gather && pull_loss_.value_or(0) > 0)
        throw Error(
            "pull_loss: must be 0 where parameters are gathered, as FSDP and ZeRO do, because a "
            "worker has no earlier values to fall back on; or leave them out with where");
      found.push_back({collective});
    }
    mark_front(graph, found);
    for (PacketTransfer& transfer : found) allow_loss(transfer);
    return found;
  }

  /// Marks the gradients of the front half of the model's bytes, which are ready last in each step.
  static void mark_front(const Graph& graph, std::vector<PacketTransfer>& transfers) {
    const Timeline timeline = simulate(graph, {.memory = false});
    std::map<std::int32_t, std::vector<PacketTransfer*>> steps;
    for (PacketTransfer& transfer : transfers) {
      if (transfer.is_gradient) steps[graph.task(transfer.task).step].push_back(&transfer);
    }
    for (auto& [step, gradients] : steps) {
      std::ranges::stable_sort(gradients, {}, [&](const PacketTransfer* transfer) {
        return timeline.start[index(transfer->task)];
      });
      Bytes all{}, sum{};
      for (const PacketTransfer* transfer : gradients) all += transfer->bytes;
      for (PacketTransfer* transfer : gradients) {
        transfer->is_front = sum.count * 2 >= all.count;
        sum += transfer->bytes;
      }
    }
  }

  void allow_loss(PacketTransfer& transfer) const {
    transfer.unimportant = packets_.unimportant;
    if (!transfer.is_gradient) return;
    transfer.loss = transfer.is_front ? front_loss_.value_or(loss_now()) : loss_now();
    transfer.pull_loss = pull_loss_.value_or(transfer.loss / 2);
    if (transfer.is_front) transfer.unimportant = 1;
  }

  /// Returns the network that the settings name or, if they name none, that of the earlier step,
  /// with the algorithm, slow link and servers of the settings.
  NetworkSettings network_behind(const Context& context) const {
    if (network_.is_given() || context.network.empty()) return network_;
    NetworkSettings network;
    read_json(parse_json<nlohmann::json>(context.network), network);
    if (network_.algorithm != "auto") network.algorithm = network_.algorithm;
    if (network_.slow_link != 1) network.slow_link = network_.slow_link;
    if (network_.servers > 0) network.servers = network_.servers;
    return network;
  }

  /// Whether transfers of a lane wait for nothing but their data.
  bool begin_when_ready(const NetworkSettings& network) const {
    if (order_ != "auto") return order_ == "ready";
    return network.algorithm == "parameter_server" || network.algorithm == "colocated" ||
           network.algorithm == "byteps";
  }

  double loss_now() const { return late_loss_ ? loss_ + (*late_loss_ - loss_) * progress_ : loss_; }

  PacketSettings recorded() const {
    PacketSettings settings = packets_;
    settings.transport = before_;
    return settings;
  }

  void describe_effect(const PacketTraffic::Totals& run, const Communicators& networks,
                       Effect& effect) const {
    const PacketCounts& counts = run.counts;
    const double moved = std::max(1.0, static_cast<double>(run.gradients.count));
    const auto unimportant = static_cast<double>(counts.missing_unimportant.count);
    const auto important = static_cast<double>(counts.missing_important.count);
    effect.summary = fmt::format("{} sent by {} take {} instead of {} in all, on {}",
                                 counted(effect.changed, "collective"), packets_.transport,
                                 to_text(run.after), to_text(run.before), networks.described());
    effect.figures = {{"transfer_before", run.before},
                      {"transfer_after", run.after},
                      {"message_mean", run.largest.mean},
                      {"message_p50", run.largest.median},
                      {"message_p99", run.largest.p99},
                      {"dropped_unimportant", counts.dropped_unimportant},
                      {"dropped_important", counts.dropped_important},
                      {"sent_again", counts.sent_again},
                      {"missing_share", (unimportant + important) / moved},
                      {"missing_magnitude",
                       (unimportant * 2 * kSmallHalf + important * 2 * (1 - kSmallHalf)) / moved},
                      {"timeouts", static_cast<double>(counts.timeouts)},
                      {"deepest_queue", counts.deepest_queue}};
    effect.assumptions = networks.assumed();
    if (!network_.is_given())
      effect.assumptions.push_back("packets use the network of the earlier step, " +
                                   networks.described());
    if (!run.is_settled)
      effect.notes.add(Severity::warning,
                       "the times at which transfers are ready still changed after four rounds; "
                       "the last round counts");
    describe_assumptions(run.overlapping > 0, effect);
  }

  void describe_assumptions(bool overlapping, Effect& effect) const {
    effect.assumptions.push_back(
        fmt::format("switches have {} of memory; connections are open and begin with a full "
                    "window; acknowledgements are not lost; {}",
                    to_text(packets_.buffer),
                    overlapping ? "transfers of a step share the network from when they are ready"
                                : "each transfer has the network to itself"));
    if (packets_.transport != "bounded") return;
    effect.assumptions.push_back(fmt::format(
        "up to {} of gradients may be missing: models tolerated 0.6 to 3.5 % with the same epochs "
        "and accuracy (DLCP, MLT), and it is unknown which of them your model is like",
        to_share(std::max(loss_now(), front_loss_.value_or(0)), 2)));
    effect.assumptions.push_back(
        fmt::format("unimportant packets, half of them by magnitude (assumed exponential) and all "
                    "of the front half of the model, are dropped in queues above {} (assumed)",
                    to_text(packets_.drop_threshold())));
    if (more_steps_)
      effect.assumptions.push_back(
          fmt::format("training takes {} more steps for the same accuracy, as stated; step times "
                      "do not show that",
                      to_share(*more_steps_)));
  }

  NetworkSettings network_;
  PacketSettings packets_;
  double loss_ = kMinTolerated, progress_ = 0;
  std::optional<double> front_loss_, pull_loss_, late_loss_, more_steps_;
  std::string before_ = kClosedForm, order_ = "auto";
  bool front_first_ = true;
  std::int64_t ranks_ = 0;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry drop_packets_entry() {
  return {
      .make = create<DropPackets>,
      .assumes =
          "Collectives, recorded or added by an earlier step, are sent packet by packet over "
          "the links of the network, by default that of the earlier step: queues in switches with "
          "shared memory, a transport that repairs losses or does without repair, one path or all. "
          "Transfers of a step share links while they are under way at the same time, as those of "
          "parameter servers, of p3 and of several communicators are. The time of a transfer is "
          "multiplied by the time of its packets divided by the closed "
          "form of the same algorithm on the same links, or by the time of another transport "
          "(`before`). With transport bounded a share of each gradient may be lost (DLCP, MLT); "
          "published models kept their accuracy and number of epochs with 0.6 to 3.5 %. "
          "Thresholds, the share of unimportant packets and open connections are assumed; DCTCP's "
          "constants and pFabric's "
          "buffers are published.",
      .advice = {.why_not = "say which network, and how much loss your model tolerates: "
                            "drop_packets:bandwidth=1.25GB/s,latency=20us,loss=0.01"}};
}

}  // namespace foretrace
