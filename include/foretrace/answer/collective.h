#pragma once

// The answer of `foretrace collective`: how long a collective takes, by size, and how far that is
// from what was measured. Bandwidths are those of nccl-tests: algbw = bytes / time, and busbw =
// algbw times the bytes that the operation moves over a rank's port for each byte.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// The messages of a collective that was simulated packet by packet. Some transports may lose part
/// of a message.
struct PacketFigures {
  std::string transport;
  Nanoseconds mean{0}, median{0}, p99{0};  ///< Completion times of messages.
  /// Bytes of packets; `missing` ones were never delivered, as the transport allows.
  Bytes dropped_important{}, dropped_unimportant{}, sent_again{}, missing{};
  Bytes deepest_queue{};
  std::uint64_t timeouts = 0;
};

struct CollectiveRow {
  std::string operation;
  std::uint32_t ranks = 0, nodes = 1;
  Bytes bytes{};
  std::string algorithm;  ///< "ring", "Tree LL128": ours, or NCCL's with its protocol.
  Nanoseconds time{0};
  /// Interval of the time. For groups that share links: from running alone to running one after the
  /// other. For calibrated times: as the measured shapes on either side behave. Otherwise `time`.
  Nanoseconds lower{0}, upper{0};
  double algorithm_bandwidth = 0;  ///< Bytes per second.
  double bus_bandwidth = 0;
  /// "closed form", "flow" or "packets", with " without NVLS" where NCCL would reduce in the
  /// NVSwitch; "NCCL's model", "calibrated", "extrapolated".
  std::string basis;
  std::optional<PacketFigures> packets = {};
  std::optional<Nanoseconds> measured;  ///< Median of the rows with the same shape and size.

  /// (time - measured) / measured.
  std::optional<double> error() const;
};

/// Errors against measured times, for one shape or all.
struct CollectiveError {
  std::string what;  ///< "all", "2 nodes x 4 ranks"
  std::size_t rows = 0;
  double median = 0, highest = 0;  ///< Absolute relative errors.
};

/// The recorded collectives of one operation, group and size. Times of several collectives are the
/// lower of the middle two, so that each is a time that a rank recorded.
struct RecordedCollectives {
  std::string operation;    ///< "all_gather"; as recorded if it is none that is priced.
  std::string group;        ///< "ranks 0, 1", or the name of the group.
  std::uint32_t ranks = 0;  ///< Size of the group; 0 if unknown.
  std::uint32_t nodes = 1;  ///< Nodes of the machine that the group spans; 1 without a machine.
  Bytes bytes{};            ///< The whole buffer, as nccl-tests counts it; 0 if unknown.
  std::size_t count = 0;
  std::size_t matched = 0;      ///< Those that several ranks recorded, which have a skew.
  std::size_t kernels = 0;      ///< Recorded kernels; `count` times the ranks that recorded one.
  Nanoseconds kernel_total{0};  ///< Time of all these kernels, with their waits for others.
  Nanoseconds kernel{0};        ///< Time of a typical one.

  struct Spread {
    Nanoseconds typical{0}, least{0}, most{0};
  };
  /// From the first entry to the last, over the ranks; nullopt if no other rank recorded it.
  std::optional<Spread> skew;
  /// From the last entry to the exit of the rank that entered last, which is the whole kernel of
  /// that rank and needs no common clock; nullopt if no other rank recorded it.
  std::optional<Spread> transfer;
  struct Last {
    std::int64_t rank = 0;  ///< In a log of NCCL Inspector, of the communicator.
    std::size_t times = 0;
  };
  /// The rank that entered last most often; nullopt if none was later than others.
  std::optional<Last> last{};
  double bus_bandwidth = 0;           ///< Bytes per second, of the typical transfer; 0 if unknown.
  std::optional<Nanoseconds> priced;  ///< nullopt without a machine, and for unknown sizes.

  /// (priced - transfer) / transfer, for the typical transfer.
  std::optional<double> error() const;
};

struct CollectiveReport {
  std::string machine;   ///< With the source of its figures; or "uniform network".
  std::string fidelity;  ///< "closed", "flow" or "packet"
  std::uint32_t groups = 1;
  std::vector<CollectiveRow> rows;
  /// All collectives of the recording that --against names, those with most time first.
  std::vector<RecordedCollectives> recorded;
  std::vector<CollectiveError> errors;  ///< Empty without --against.
  std::vector<std::string> assumptions;
  Notes notes;              ///< Warnings about the files of the recording.
  std::string calibration;  ///< Path of the calibration file; empty without one.
};

class Document;
/// For people, in every form.
Document document_of(const CollectiveReport& report);
/// The object with schema "foretrace.collective/1".
nlohmann::json to_json(const CollectiveReport& report);
/// One row for each size; for a recording, one for each operation, group and size.
void write_csv(const CollectiveReport& report, std::ostream& out);

}  // namespace foretrace
