#pragma once

// The transfers of a job as packets, and how long each of them then takes. Transfers of one step
// that may be under way at the same time meet in one network:
//
//     backward   |B4 B3 B2 B1|
//     transfers     |44444444|         each from when it is ready; where they share links, packets
//                      |333333|        of the most urgent one go first
//                         |2222|
//
// The times at which they are ready come from a replay. As those may change with how long transfers
// take, it replays and sends again: at most four times, and no more once none moves by 1 us.
//
// Transfers of a lane begin one after another, unless the lane has priorities, or `when_ready` says
// that nothing but the network orders them. Such a lane is then shared by what is under way.

#include <map>
#include <tuple>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/known_collectives.h"

namespace foretrace {

struct PacketTransfer : KnownCollective {
  bool is_gradient = false, is_front = false;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

class PacketTraffic {
 public:
  /// `before`: how the graph's transfers are sent; none: as the closed form has it. Everything
  /// outlives this.
  PacketTraffic(Graph& graph, Communicators& networks, const PacketSettings& after,
                const PacketSettings* before)
      : graph_(graph), networks_(networks), after_(after), before_(before) {}

  struct Totals {
    Nanoseconds before{0}, after{0};  ///< With a transfer under way, or waiting for its lane.
    PacketCounts counts;
    Bytes gradients{};     ///< Sum over their messages.
    PacketRun largest;     ///< Of those that were sent together or by themselves.
    std::size_t meet = 0;  ///< Transfers that meet others.
    bool is_settled = true;
  };

  /// Gives each transfer its new duration. Throws Error as Communicator does.
  Totals send(const std::vector<PacketTransfer>& transfers, bool when_ready);

 private:
  struct Alone {
    Nanoseconds before{0};
    PacketRun after;
  };
  /// The transfers of a step, in the order of their lanes.
  struct Step {
    std::vector<const PacketTransfer*> transfers;
    std::vector<Nanoseconds> durations;  ///< As they were.
    std::vector<AskedPackets> asked;
    std::vector<Nanoseconds> before;
    std::vector<RoundsTimes> times;
    PacketRun run;
  };

  void loosen(const std::vector<PacketTransfer>& transfers, bool when_ready);
  void wait_for_all(LaneId lane);
  bool may_meet(const Step& step) const;
  void queue_up(Step& step) const;
  void send_alone(const PacketTransfer& one, Totals& totals);
  const Alone& alone(const PacketTransfer& one);
  Timeline send_together(std::vector<Step>& steps, Totals& totals);
  bool moves(Step& step, const Timeline& timeline) const;
  Nanoseconds ready(const Step& step, std::size_t which, const Timeline& timeline) const;
  void run(Step& step, std::int64_t number);
  Nanoseconds closed(const Step& step, std::size_t which);
  static void add(const PacketRun& packets, Bytes gradients, Totals& totals);

  Graph& graph_;
  Communicators& networks_;
  const PacketSettings& after_;
  const PacketSettings* before_;
  std::vector<char> is_loose_;  ///< By lane: 1 nothing orders its tasks, 2 they had priorities.
  std::map<std::tuple<std::int32_t, Operation, std::int64_t, bool, bool>, Alone> known_;
};

}  // namespace foretrace
