#pragma once

// The collectives that the ranks of a job recorded, as a table beside which prices are put.
//
//     rank 0   ...|~~~~~~TTTTT|     ~ waits for others
//     rank 1   ......|~~~TTTTTT|
//     rank 2   .........|TTTTTT|    T transfer: the whole kernel of the rank that entered last
//                 |-----| skew      from the first entry to the last, on a common clock

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "network/nccl/measured.h"
#include "question/collective/pricing.h"

namespace foretrace {

/// Whether a path is a trace, a log of NCCL Inspector or a folder, not a table of times, judged by
/// its ending and its first bytes.
bool is_recording(const std::string& path);

struct Recording {
  /// By operation, group and size, those with most time first, without prices.
  std::vector<RecordedCollectives> rows;
  std::vector<std::string> assumptions;
  Notes notes;  ///< Warnings about the files.
};

/// All collectives of a recording. The ranks of a trace are placed in order, as many to a node as
/// the machine has near each other; without a machine, all are on one node. Throws TraceError if
/// the recording cannot be read or its ranks are not of one job, and Error if it has no collective.
Recording recorded_in(const CollectiveQuestion& question, const std::string& path);
/// The same for logs of NCCL Inspector (inspected.cc), which say how many hosts there are.
Recording inspected_in(const CollectiveQuestion& question, const std::string& path);

/// The typical transfers of those that have one, a size and a known operation. `path` is for
/// errors. Throws Error if there are none.
std::vector<MeasuredCollective> measured_in(const std::string& path,
                                            const std::vector<RecordedCollectives>& recorded);

/// Prices each on the machine of the question, by the calibration if it is not null. Those of
/// unknown operation or size, and those of one rank, keep no price. Throws Error if the machine is
/// too small.
void price_recorded(const CollectiveQuestion& question, const Calibration* calibration,
                    std::vector<RecordedCollectives>& recorded);

}  // namespace foretrace
