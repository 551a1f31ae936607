#pragma once

// Collectives: what a group of ranks exchanges, by which algorithm, and how long that takes.
//
// An algorithm consists of a closed form and of the messages behind it, and the two must agree.
// Messages are a pure function of rank and round, so expanding them takes no memory per message.
//
//     ring all-reduce, 4 ranks          round 0   0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0
//     2 (p - 1) rounds of n / p bytes   round 1   the same, with what arrived in round 0
//
// Cost of a message (Hockney, gamma for the reduction): alpha + bytes beta [+ bytes gamma]. The
// message keeps a port of sender and receiver busy for that long, the reduction does not. Bytes are
// those of nccl-tests: the whole buffer, for all-gather and reduce-scatter that of all ranks
// together.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

enum class Operation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_receive,  ///< Each rank sends to the next one.
};

std::string_view to_string(Operation operation);
/// Also reads "allreduce", "AllReduce", "all-to-all", "sendrecv". Throws Error with the nearest.
Operation read_operation(std::string_view name);
const std::vector<std::string_view>& operation_names();
/// Finds the operation in a longer name that c10d or NCCL recorded: "_allgather_base",
/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL". Returns nullopt for other names.
std::optional<Operation> operation_recorded_as(std::string_view name);

/// busbw / algbw as nccl-tests defines them: 2 (n - 1) / n for an all-reduce, (n - 1) / n for
/// all-gather, reduce-scatter and all-to-all, 1 for the others.
double bus_factor(Operation operation, std::uint32_t ranks);

struct Call {
  Operation operation = Operation::all_reduce;
  std::uint32_t ranks = 2;
  Bytes bytes{};
  /// Group sizes from the innermost level out, for algorithms with levels; their product is
  /// `ranks`.
  std::vector<std::uint32_t> levels{};
  std::uint32_t servers = 0;  ///< Hosts that only serve, for a parameter server.
  /// Relative shares of the ranks in an all-to-all; empty: all alike.
  std::vector<double> shares{};
};

/// The cost of a message on one level of the machine.
struct LinkCost {
  Nanoseconds latency{0};         ///< alpha
  Bandwidth bandwidth{};          ///< 1 / beta, of one direction of a rank's port. Above 0.
  double reduce_ns_per_byte = 0;  ///< gamma
};

/// Costs by level, from the innermost out. Levels beyond the last cost the same as the last. Never
/// empty.
using LinkCosts = std::span<const LinkCost>;

struct Message {
  std::uint32_t to = 0;
  Bytes bytes{};
  std::uint8_t level = 0;
  bool reduces = false;  ///< The receiver reduces it into its own data before it continues.
  /// Follows other messages on its connection: its bytes keep the ports busy, its latency does not.
  bool streams = false;
};

/// The shape of an expansion, the same for all ranks.
struct Plan {
  std::uint32_t endpoints = 0;  ///< Ranks, then servers and switches.
  std::uint32_t rounds = 0;
  std::uint32_t chunks = 1;  ///< Pieces that follow each other through a pipeline.
  /// A send of round r waits for what arrived in rounds up to r - lag; 0: see `second_phase`.
  std::uint32_t lag = 1;
  /// With a lag of 0: sends from this round on wait for everything that arrived in earlier rounds,
  /// and sends before it wait for nothing.
  std::uint32_t second_phase = ~std::uint32_t{0};
  /// Endpoints from this one on are switches, with a port for each peer. If there are any, only
  /// they wait for arrivals.
  std::uint32_t switches_from = ~std::uint32_t{0};
};

/// One algorithm; each is a file in src/network/collectives. Stateless.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  /// Why it cannot serve a call, as a sentence without its full stop; empty if it can. Every other
  /// member REQUIRES that it can.
  virtual std::string refusal(const Call& call) const = 0;
  /// The published closed form.
  virtual Nanoseconds closed_form(const Call& call, LinkCosts costs) const = 0;
  /// `costs` only decides into how many chunks a pipeline cuts the data.
  virtual Plan plan(const Call& call, LinkCosts costs) const = 0;
  /// Appends the messages that an endpoint sends in a round to `out`, in order.
  virtual void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
                     std::vector<Message>& out) const = 0;
};

struct AlgorithmEntry {
  std::string_view name, summary;
  std::unique_ptr<Algorithm> (*make)();
};
/// One per line of collectives.def, sorted.
const std::vector<AlgorithmEntry>& algorithms();
/// Throws Error with all names and the nearest.
std::unique_ptr<Algorithm> find_algorithm(std::string_view name);
/// Throws Error, naming the algorithm, if it cannot serve the call, and Error if a bandwidth is 0
/// or the call takes 1000 hours or more, which would not fit the clock with others.
void check_call(std::string_view name, const Algorithm& algorithm, const Call& call,
                LinkCosts costs);

/// A call with the algorithm that serves it.
struct PreparedCollective {
  std::string name;
  std::unique_ptr<Algorithm> base;  ///< `algorithm` may refer to it.
  std::unique_ptr<Algorithm> algorithm;
  Call call;
  LinkCost cost;
};

struct Expansion {
  Nanoseconds time{0};  ///< When the last rank has all it needs.
  std::uint64_t messages = 0;
  std::uint64_t skipped = 0;         ///< Messages of rounds that repeat others; none was simulated.
  Bytes moved{};                     ///< Sum over all messages.
  Bytes state{};                     ///< Memory that the expansion held.
  std::uint64_t computed_rates = 0;  ///< Of flows that share links: a measure of the work.
};

}  // namespace foretrace
