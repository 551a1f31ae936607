#pragma once

// Sends the transfers of a job as packets, to find how long each of them takes. Transfers of one
// step that may overlap share one network:
//
//     backward   |B4 B3 B2 B1|
//     transfers     |44444444|         each from when it is ready; where they share links, packets
//                      |333333|        of the most urgent one go first
//                         |2222|
//
// A replay gives the times at which transfers are ready. Because these may change with how long
// transfers take, it replays and sends again: at most four times, and only until no transfer moves
// by more than 1 us.
//
// Transfers of a lane begin one after another, unless the lane has priorities, or `when_ready` says
// that nothing but the network orders them. Such a lane becomes shared, so that its transfers
// overlap.

#include <map>
#include <tuple>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/known_collectives.h"

namespace foretrace {

struct PacketTransfer : KnownCollective {
  bool is_front = false;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

class PacketTraffic {
 public:
  /// `before` says how the transfers in the graph were sent; nullptr: as the closed form has it.
  /// REQUIRES: all references outlive this.
  PacketTraffic(Graph& graph, Communicators& networks, const PacketSettings& after,
                const PacketSettings* before)
      : graph_(graph), networks_(networks), after_(after), before_(before) {}

  struct Totals {
    /// Sums of the transfers' durations. In `after`, transfers that overlap count only the time
    /// during which any of them runs.
    Nanoseconds before{0}, after{0};
    PacketCounts counts;
    Bytes gradients{};  ///< Bytes of all messages of gradients.
    PacketRun largest;  ///< The run, of transfers alone or together, that moved the most bytes.
    std::size_t overlapping = 0;  ///< Transfers that overlap others.
    bool is_settled = true;
  };

  /// Gives each transfer its new duration. Throws Error as Communicator does.
  Totals send(const std::vector<PacketTransfer>& transfers, bool when_ready);

 private:
  struct IsolatedRun {
    Nanoseconds before{0};
    PacketRun after;
  };
  /// The transfers of a step, in the order of their lanes.
  struct Step {
    std::vector<const PacketTransfer*> transfers;
    std::vector<Nanoseconds> durations;  ///< Before packets were sent.
    std::vector<PacketRequest> requests;
    std::vector<Nanoseconds> before;
    std::vector<CollectiveTimes> times;
    PacketRun run;
  };

  void share_lanes(const std::vector<PacketTransfer>& transfers, bool when_ready);
  void wait_for_all(LaneId lane);
  bool may_overlap(const Step& step) const;
  void assign_queues(Step& step) const;
  void send_isolated(const PacketTransfer& transfer, Totals& totals);
  const IsolatedRun& isolated_run(const PacketTransfer& transfer);
  Timeline send_overlapping(std::vector<Step>& steps, Totals& totals);
  bool update_ready_times(Step& step, const Timeline& timeline) const;
  Nanoseconds ready(const Step& step, std::size_t which, const Timeline& timeline) const;
  void run(Step& step, std::int64_t number);
  Nanoseconds closed_form_time(const Step& step, std::size_t which);
  static void add(const PacketRun& packets, Bytes gradients, Totals& totals);

  Graph& graph_;
  Communicators& networks_;
  const PacketSettings& after_;
  const PacketSettings* before_;
  std::vector<char> shared_lanes_;  ///< By lane: 1 made shared, 2 with priorities before, else 0.
  std::map<std::tuple<std::int32_t, Operation, std::int64_t, bool, bool>, IsolatedRun>
      isolated_runs_;
};

}  // namespace foretrace
