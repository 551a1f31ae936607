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

#include "ask/collective/pricing.h"
#include "foretrace/notes.h"
#include "network/nccl/measured.h"

namespace foretrace {

/// Whether a path is a trace or a folder of traces, not a table of times, judged by its ending.
bool is_recording(const std::string& path);

/// Number of devices of the machine that are near each other: on one host, or in one NVLink domain.
/// Returns 0 without a machine. Throws Error as find_cluster() does.
std::uint32_t devices_per_node(const CollectiveQuestion& question);

/// All collectives of a recording by operation, group and size, those with most time first, without
/// prices. Ranks are placed in order, `per_node` to a node; 0 puts all on one node. Adds the
/// warnings about the files to `notes`. Throws TraceError if the recording cannot be read or its
/// ranks are not of one job, and Error if it has no collective.
std::vector<RecordedCollectives> recorded_in(const std::string& path, std::uint32_t per_node,
                                             Notes& notes);

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
