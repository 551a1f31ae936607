#pragma once

// The caching allocator of PyTorch (native back end), rule by rule: the memory that a program
// requests differs from the memory that the device provides. Requests are rounded, served from the
// best fitting free block of their stream, or from a new segment that the driver is asked for;
// freed blocks stay reserved. Whether a job fits depends on this, not on the sum of its tensors.
//
//     malloc 16MiB x, malloc 16MiB y, free x, malloc 6MiB z
//
//     segment 0  |zzzzzz..........|      32 MiB reserved, 22 MiB allocated, 10 MiB inactive split
//     segment 1  |yyyyyyyyyyyyyyyy|
//
// The rules are those of PyTorch 2.x, from its sources. Ignored: private pools of CUDA graphs,
// other back ends (cudaMallocAsync), callbacks that free memory, and the memory that a driver uses
// for itself.

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/units.h"

namespace foretrace {

/// The settings of PYTORCH_CUDA_ALLOC_CONF, and the device's memory.
class AllocatorSettings final : public Described {
 public:
  void describe(Fields& fields) override;

  Bytes limit{};               ///< The driver provides no more than this in total; 0: unlimited.
  double memory_fraction = 1;  ///< Share of the limit that the process may use.
  Bytes max_split_size{};      ///< Blocks of at least this are never split; 0: no such limit.
  /// "4", or by size as PyTorch writes it, "[256:1,512:2,1024:4,>:8]"; empty: none.
  std::string roundup_power2_divisions;
  Bytes max_non_split_rounding{20 << 20};   ///< Excess allowed for an unsplit block.
  double garbage_collection_threshold = 0;  ///< Share of what the process may use; 0: never.
  bool expandable_segments = false;
};

/// Reads the text of PYTORCH_CUDA_ALLOC_CONF, such as
/// "max_split_size_mb:512,expandable_segments:True,roundup_power2_divisions:[256:1,512:2]". Names
/// that PyTorch knows but that change nothing here are skipped. Throws Error on others (with the
/// nearest), and on values that PyTorch would refuse.
void read_alloc_conf(std::string_view text, AllocatorSettings& settings);

/// All in bytes, as torch.cuda.memory_stats() names them.
struct AllocatorLevels {
  std::int64_t allocated = 0;       ///< Blocks in use, in their full size.
  std::int64_t active = 0;          ///< Allocated blocks and blocks that wait for another stream.
  std::int64_t requested = 0;       ///< Requested bytes of active blocks.
  std::int64_t reserved = 0;        ///< All segments.
  std::int64_t inactive_split = 0;  ///< Free blocks of segments that are partly in use.

  /// The share of what is reserved that is not allocated.
  double fragmentation() const {
    return reserved == 0
               ? 0
               : static_cast<double>(reserved - allocated) / static_cast<double>(reserved);
  }
  friend bool operator==(const AllocatorLevels&, const AllocatorLevels&) = default;
};

/// A free or used stretch of a segment.
struct AllocatorBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested = 0;  ///< 0 for a free block.
  std::int64_t handle = -1;    ///< As given to malloc(), also while pending; -1 for a free block.
  bool pending = false;        ///< Freed, and still in use by another stream.
};

/// In an expandable segment, each mapped stretch counts as a segment.
struct AllocatorSegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t stream = 0;
  bool is_small = false;
  bool is_expandable = false;
  std::vector<AllocatorBlock> blocks;  ///< In order of address.
};

/// A refused request. An allocator returns it; it is never thrown.
struct OutOfMemory {
  std::int64_t handle = -1;  ///< The handle of the refused request.
  std::int64_t requested = 0;
  std::int64_t segment = 0;       ///< The size of the segment that the driver was asked for.
  AllocatorLevels levels;         ///< When it was refused.
  std::int64_t largest_free = 0;  ///< Largest free block, on any stream.
};

/// The bytes that a request of `requested` counts for, if a free block can be split for it.
Bytes block_size(Bytes requested, const AllocatorSettings& settings = {});

/// The allocator of one device. Handles are the caller's numbers for blocks: 0 or more, each in use
/// once at a time. Calls with a handle that is not in use do nothing. Logarithmic in the number of
/// blocks.
class CachingAllocator {
 public:
  /// Throws Error if roundup_power2_divisions cannot be read.
  explicit CachingAllocator(const AllocatorSettings& settings = {});
  CachingAllocator(CachingAllocator&&) noexcept;
  CachingAllocator& operator=(CachingAllocator&&) noexcept;
  ~CachingAllocator();

  /// Returns nullopt if the request was served. A request of 0 bytes always is, and gets no block.
  /// `now` may not decrease; it decides which pending blocks are done.
  std::optional<OutOfMemory> malloc(std::int64_t handle, Bytes bytes, std::int64_t stream = 0,
                                    Nanoseconds now = 0ns);
  /// Like malloc(), but serves requests beyond the limit as well, so that everything after them is
  /// as if the device had just had enough memory. Only a request larger than any address space is
  /// refused.
  std::optional<OutOfMemory> malloc_beyond(std::int64_t handle, Bytes bytes,
                                           std::int64_t stream = 0, Nanoseconds now = 0ns);
  void free(std::int64_t handle, Nanoseconds now = 0ns);
  /// `stream` uses the block, and will be done with it at `done`.
  void record_stream(std::int64_t handle, std::int64_t stream, Nanoseconds done);
  /// Waits for all streams and frees what can be freed.
  void empty_cache();
  /// Adds a segment with its blocks (those with a handle; the space between them is free) as it is,
  /// regardless of the rules and the limit.
  void adopt(const AllocatorSegment& segment);
  /// The driver will put the next segment that is not expandable at this recorded address; 0:
  /// anywhere.
  void place_next_segment(std::uint64_t address);
  bool holds(std::int64_t handle) const;
  std::uint64_t address(std::int64_t handle) const;  ///< 0 if not held.

  const AllocatorLevels& levels() const;
  /// The greatest of each level so far, not necessarily at one time.
  const AllocatorLevels& peaks() const;
  /// In the order in which the driver provided them.
  std::vector<AllocatorSegment> segments() const;
  std::int64_t driver_mallocs() const;  ///< Includes mappings of expandable segments.
  std::int64_t driver_frees() const;
  std::int64_t retries() const;  ///< How often the cache was given back to serve a request.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The state of one device's allocator over a timeline.
struct AllocatorRun {
  std::int32_t device = 0;
  struct Point {
    Nanoseconds time{};
    AllocatorLevels levels;
  };
  std::vector<Point> curve;  ///< One point after each event; the levels hold until the next point.
  AllocatorLevels peaks;
  Nanoseconds peak_reserved_time{};
  /// The first refused request; what follows is replayed as if it had been served.
  std::optional<OutOfMemory> out_of_memory;
  /// Index into Graph::allocations(), if out_of_memory; kWasThereBefore if the memory from before
  /// the recording, in unknown blocks, exceeds the limit.
  std::uint32_t refused = 0;
  static constexpr std::uint32_t kWasThereBefore = 0xffffffff;
  Nanoseconds refused_time{};
  std::int64_t driver_mallocs = 0, driver_frees = 0, retries = 0;
};

/// Replays the allocations of `graph` in the order in which `timeline` makes and frees them, on an
/// allocator that starts empty; memory from before the recording is requested first. Returns one
/// run for each device with allocations. Blocks used on other streams than their own
/// (Graph::accesses()) are held back until those are done. The requested size of a block is
/// `requested`, or `bytes` if that is unknown. Throws Error as CachingAllocator does.
std::vector<AllocatorRun> replay_allocator(const Graph& graph, const Timeline& timeline,
                                           const AllocatorSettings& settings = {});

/// A text with one request to an allocator per line; see src/allocator/allocator_programs.md for
/// all of its lines.
///
///     limit 48MiB
///     malloc x 16MiB
///     free x
struct AllocatorStep {
  enum class Verb : std::uint8_t { malloc, free, record, sync, empty_cache };
  Verb verb = Verb::malloc;
  std::uint32_t name = 0;        ///< Into AllocatorProgram::names; for malloc, free and record.
  Bytes bytes{};                 ///< The size, for malloc.
  std::int64_t stream = 0;       ///< For malloc, record and sync; -1 in sync means all.
  std::size_t line = 0;          ///< From 1.
  Nanoseconds busy_until = 0ns;  ///< For record: when `stream` is done.
};
struct AllocatorProgram {
  AllocatorSettings settings;
  std::vector<AllocatorStep> steps;
  std::vector<std::string> names;
};

/// Throws Error with the line number if the text is invalid or frees a block that is not in use.
/// Settings missing from the text come from `settings`.
AllocatorProgram parse_allocator_program(std::string_view text,
                                         const AllocatorSettings& settings = {});

/// Reads a program of at most 64 MiB. Throws Error as above, and if it has no steps.
AllocatorProgram read_allocator_program(std::istream& in);

/// Handles of blocks are the numbers of their names. The run ends before a refused step.
struct AllocatorOutcome {
  AllocatorLevels levels, peaks;
  std::vector<AllocatorSegment> segments;
  std::int64_t driver_mallocs = 0, driver_frees = 0, retries = 0;
  std::optional<OutOfMemory> out_of_memory;
  std::size_t refused_line = 0;
};
AllocatorOutcome run_allocator_program(const AllocatorProgram& program);

}  // namespace foretrace
