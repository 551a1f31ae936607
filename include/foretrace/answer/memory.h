#pragma once

// Reports how the memory of a device is used, block by block: how much is in use and when most, for
// which purpose, by which op, how long blocks live, and how long they are unused.
//
//     bytes |        ____               made .. freed     lifetime
//           |   ____| b  |_             r   w      r      accesses; between two of them lies an
//           |__| a        |__           |---|------|      access interval (ATI), in which a block
//           +----------------> time                       could be elsewhere
//
// The questions are those of J. Li et al., "Pinpointing the Memory Behaviors of DNN Training"
// (ISPASS 2021). A block of S bytes leaves and comes back unnoticed if S/out + S/in <= ATI;
// conflicts between copies are computed with one copy at a time per direction, as in J. Zhang et
// al., "Efficient Memory Management for GPU-based Deep Learning Systems" (2019). Accesses are known
// as far as the graph has them; for blocks from before the recording that are never freed in it,
// only the sum is known.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"
#include "foretrace/units.h"

namespace foretrace {

constexpr std::size_t kMemoryUses = 8;
/// Bytes by MemoryUse.
using BytesByUse = std::array<Bytes, kMemoryUses>;

struct MemoryQuestion {
  std::optional<std::int32_t> device;  ///< By default the one with the highest peak.
  std::optional<std::int64_t> step;    ///< Number in the name of the step; by default all steps.
  std::size_t top = 10;                ///< Rows of each list.
  Bandwidth out{}, in{};               ///< Bandwidth of copies to the host, and back.
};

/// A block with its times. Blocks that outlive the recording end with it.
struct TimedBlock {
  std::uint32_t allocation = 0;  ///< Into Graph::allocations().
  Nanoseconds made{0}, freed{0};
  bool was_there = false;  ///< Made before the recording.
  bool is_left = false;    ///< Not freed in the recording.
};

/// A place in the recording, in terms that people use.
struct MemoryMoment {
  Nanoseconds time{0};
  std::string step;        ///< "ProfilerStep#7", or empty.
  Nanoseconds in_step{0};  ///< Since the step began on the host.
  Phase phase = Phase::none;
  std::string op;    ///< Op that requested the block; that of the task, if the block has none.
  std::string line;  ///< Innermost source line of the user's code, or empty.
  Bytes bytes{};     ///< Size of the block that was made.
};

struct UseRow {
  MemoryUse use = MemoryUse::unknown;
  Bytes at_peak{}, average{}, most{};
  std::int64_t blocks_at_peak = 0;
};

struct PhaseRow {
  Phase phase = Phase::none;
  Nanoseconds time{0};  ///< How long the allocator was in this phase.
  Bytes most{}, average{};
  BytesByUse average_by_use{};
};

/// An op or place whose memory is in use at the peak.
struct RequesterRow {
  std::string name;
  Bytes bytes{};
  std::int64_t blocks = 0;
  Nanoseconds lifetime{0};  ///< Median over its blocks, as far as recorded.
};

struct Quantiles {
  Nanoseconds least{0}, tenth{0}, median{0}, ninetieth{0}, most{0};
};

/// One decade of times: from `from` to below ten times as much; the first from 0.
struct TimeBin {
  Nanoseconds from{0};
  std::int64_t count = 0;
  Bytes bytes{};              ///< Sum over the blocks.
  std::int64_t hideable = 0;  ///< Access intervals long enough for a copy out and in.
};

struct LifetimeSection {
  std::int64_t blocks = 0;  ///< Made in the window.
  Bytes bytes{};
  std::int64_t inside_op = 0;  ///< Made and freed inside one op.
  Bytes inside_op_bytes{};
  std::int64_t left = 0;  ///< Made in the window and not freed in the recording.
  Bytes left_bytes{};
  std::int64_t was_there = 0;  ///< Blocks from before the recording that are freed in it.
  Bytes was_there_bytes{};
  Quantiles times;  ///< Over the blocks made and freed.
  std::vector<TimeBin> bins;
};

/// Blocks of one op and line that pile up: some were made and not freed in at least two steps other
/// than the last.
struct LeakRow {
  std::string op, line;
  std::int64_t blocks = 0;
  std::int64_t steps = 0;
  Bytes per_step{};
};

struct GrowthSection {
  struct Start {
    std::string step;
    Bytes allocated{};
  };
  std::vector<Start> starts;        ///< The level at which each step begins.
  std::optional<Bytes> per_step;    ///< Median change, without the first; with 3 steps or more.
  std::vector<LeakRow> candidates;  ///< The greatest first.
};

/// A block that could be away between two accesses; the same block in several steps is one row.
struct SwapRow {
  Bytes bytes{};
  Nanoseconds interval{0};  ///< The shortest interval between the two accesses.
  Nanoseconds copies{0};    ///< Time to copy it out and in.
  std::int64_t times = 0;   ///< Number of such intervals.
  MemoryUse use = MemoryUse::unknown;
  std::string op, line;       ///< Op and line that made the block.
  std::string before, after;  ///< Tasks that access it.
};

struct IntervalSection {
  bool known = false;  ///< Whether the accesses of blocks are known.
  std::int64_t accesses = 0, intervals = 0, hideable = 0;
  Bandwidth out{}, in{};
  Quantiles times;
  std::vector<TimeBin> bins;
  std::int64_t candidates = 0;  ///< Hideable intervals, between two accesses, of at least 1 MB.
  std::vector<SwapRow> best;
  /// Memory needed by tasks on the device: each block from its first access to its last. The host,
  /// which makes and frees blocks, may run far ahead of that.
  std::vector<MemoryCurve::Point> needs;
  Bytes needed{};   ///< Peak of `needs`.
  Bytes bound{};    ///< That peak if all candidates were away and the link were free for each.
  Bytes planned{};  ///< That peak with copies one at a time per direction, each in time.
  std::int64_t moved = 0;  ///< Blocks that the plan moves.
  Bytes moved_bytes{};     ///< Sum of those, one way.
};

/// The blocks of one step, with places that are planned ahead (block_pool.h).
struct PoolSection {
  std::string step;  ///< Step with the peak; empty: the whole window.
  std::int64_t blocks = 0;
  std::int64_t by_load = 0;  ///< Smallest blocks, which get no place: only their load counts.
  Bytes load{};              ///< Greatest sum of blocks in use.
  Bytes footprint{};         ///< Top of the highest place.
};

struct PeriodSection {
  bool repeats = false;
  std::int64_t first = 0;   ///< Blocks before the first iteration.
  std::int64_t blocks = 0;  ///< Blocks in one iteration.
  std::int64_t iterations = 0;
  std::string first_irregular;  ///< The block after the last iteration; empty if there is none.
};

/// The result of a replay of the caching allocator, and its difference from the recording.
struct ReplayedAllocator {
  std::string settings;                                                    ///< In words.
  Bytes allocated{}, active{}, requested{}, reserved{}, inactive_split{};  ///< Peak of each.
  /// Levels when most was reserved.
  Bytes allocated_then{}, requested_then{}, inactive_split_then{};
  Nanoseconds reserved_time{0};
  std::int64_t driver_mallocs = 0, driver_frees = 0, retries = 0;
  struct Point {
    Nanoseconds time{0};
    Bytes reserved{};
  };
  std::vector<Point> curve;
  struct Refused {
    MemoryMoment moment;  ///< `bytes` is the requested size.
    Bytes allocated{}, reserved{}, segment{}, largest_free{};
  };
  std::optional<Refused> refused;
  std::optional<Bytes> recorded_reserved, recorded_allocated;  ///< The greatest recorded value.
  /// The recorded requests, replayed and compared event by event (memory_check.h).
  struct Check {
    std::string start;  ///< The cache it starts with: "empty" or "as found".
    std::int64_t events = 0;
    double allocated_error = 0, reserved_error = 0;  ///< Relative errors of the peaks.
    double mean_reserved_error = 0;                  ///< In bytes, without sign.
    Bytes most_reserved_error{};
  };
  std::vector<Check> checks;
};

/// One device, or the fullest device of one rank.
struct MemorySummary {
  std::int32_t rank = 0;
  std::int32_t device = 0;
  std::string name;
  Bytes peak{};
  std::optional<Bytes> reserved;
  bool fits = true;
};

struct MemoryReport {
  std::string trace;
  std::int32_t rank = 0;
  std::int32_t device = 0;
  std::string device_name;
  Bytes capacity{};       ///< Memory of the device; 0 if unknown.
  Bytes limit{};          ///< Limit that was asked about; 0: none.
  bool has_times = true;  ///< False: times are positions in the recording.

  Nanoseconds from{0}, to{0};  ///< The window that is reported.
  std::string step;            ///< Name of the step in the window, if one was asked for.
  std::int64_t blocks = 0, events = 0;
  Bytes at_begin{};  ///< In use when the window begins.
  Bytes unnamed{};   ///< Memory from before that is never freed: only the sum is known.
  Bytes peak{};
  Bytes average{};
  MemoryMoment peak_moment;

  /// Uses that occur, sorted by their bytes at the peak, greatest first.
  std::vector<UseRow> uses;
  std::vector<PhaseRow> phases;  ///< In order of Phase.
  std::vector<RequesterRow> ops, lines, modules, layers;
  LifetimeSection lifetimes;
  GrowthSection growth;
  IntervalSection intervals;
  PoolSection pool;
  std::optional<PeriodSection> period;
  std::optional<ReplayedAllocator> allocator;

  std::vector<MemoryCurve::Point> curve;  ///< Curve over the window.
  std::vector<TimedBlock> timed_blocks;   ///< All blocks of the window, in order of number.
  struct StepBegin {
    std::string name;
    Nanoseconds time{0};
  };
  std::vector<StepBegin> step_begins;
  /// Phases of the allocator's events in the window.
  std::vector<std::pair<Nanoseconds, Phase>> phase_begins;

  std::vector<MemorySummary> devices;  ///< Devices of this rank.
  std::vector<MemorySummary> ranks;    ///< For several ranks, the fullest device of each.
  std::vector<std::string> assumptions;
  Notes notes;
};

/// Why a trace has no memory events, and how to record them.
inline constexpr std::string_view kNoMemoryEvents =
    "no memory events; record them with profile_memory=True in torch.profiler.profile, with "
    "`foretrace collect --memory`, or as a snapshot with `foretrace collect --memory-history`";

/// Describes memory without replaying the allocator. Throws TraceError if the graph has no
/// allocations, and Error if the question names a device or step that it does not have.
MemoryReport describe_memory(const Graph& graph, const Timeline& timeline,
                             const MemoryQuestion& question = {});

/// A block's place in the recording, in the form of MemoryReport::peak_moment.
MemoryMoment moment_of(const Graph& graph, const Timeline& timeline, std::uint32_t allocation,
                       Nanoseconds time);

/// Whether no request was refused under the limit or, without a replay of the allocator, whether
/// the peak is within it.
bool fits(const MemoryReport& report);

class Document;
/// For people, in every form.
Document document_of(const MemoryReport& report);
/// The object with schema "foretrace.memory/1".
nlohmann::json to_json(const MemoryReport& report);

/// One row per block.
void write_csv(const MemoryReport& report, const Graph& graph, std::ostream& out);
/// Writes a self-contained page with the level, blocks over time, and all tables.
void write_memory_html(const MemoryReport& report, const Graph& graph, std::ostream& out);

struct AllocatorOutcome;
struct AllocatorProgram;

/// The object with schema "foretrace.allocator/1": the levels, peaks and blocks of an allocator
/// after a program.
nlohmann::ordered_json to_json(const AllocatorProgram& program, const AllocatorOutcome& outcome);
Document document_of(const AllocatorProgram& program, const AllocatorOutcome& outcome);

}  // namespace foretrace
