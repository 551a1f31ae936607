// Eight replays of one structure in one pass. The finishes of a task in all eight stand side by
// side, so that one vector instruction takes the latest of all of them, and what a replay spends on
// finding its way through the structure is spent once. A task looks back at most `reach` tasks:
// only that many finishes are kept, in a ring that mostly fits the cache.

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "simulate/pass.h"

namespace foretrace {
namespace {

/// Eight numbers; the compiler splits them over the registers there are.
using Eight [[gnu::vector_size(64)]] = std::int64_t;
using EightReals [[gnu::vector_size(64)]] = double;

constexpr std::size_t kBlock = 8;  ///< Tasks whose durations are gathered side by side at a time.

struct Ring {
  Eight* finish;
  Eight* duration;  ///< Kept only where a wait counts from a start or has a tail.
  std::uint32_t mask;
};

/// Each as Tail::of() has it.
[[gnu::always_inline]] inline void take_tails(Eight& from, const Eight& durations, double share) {
  from -= __builtin_convertvector(__builtin_convertvector(durations, EightReals) * share, Eight);
}

template <bool with_lags>
[[gnu::always_inline]] inline void pass_block(const Rows& rows, const Ring& ring,
                                              const Eight* durations, std::size_t begin,
                                              std::size_t end, Eight& greatest) {
  const std::uint32_t* const before = rows.before.data();
  for (std::size_t task = begin; task < end; ++task) {
    Eight start = {};
    for (std::uint32_t wait = rows.first[task]; wait < rows.first[task + 1]; ++wait) {
      Eight earliest = ring.finish[before[wait] & ring.mask];
      if constexpr (with_lags) {
        if (before[wait] & Rows::kFromStart) earliest -= ring.duration[before[wait] & ring.mask];
        if (before[wait] & Rows::kTail)
          take_tails(earliest, ring.duration[before[wait] & ring.mask], rows.tail[wait]);
        earliest += rows.lag[wait];
      }
      start = start > earliest ? start : earliest;
    }
    const Eight duration = durations[task - begin];
    const Eight finish = start + duration;
    ring.finish[task & ring.mask] = finish;
    if constexpr (with_lags) ring.duration[task & ring.mask] = duration;
    greatest = greatest > finish ? greatest : finish;
  }
}

using Durations = const std::int64_t* const (&)[kSetsAtOnce];
using Greatest = std::int64_t (&)[kSetsAtOnce];

/// Reads the probes of tasks of the block that ends before `end`, from the probe `next` on. Returns
/// the first probe behind the block.
std::size_t read_probes(const Ring& ring, const ProbeTimes& wanted, std::size_t next,
                        std::size_t end, Durations durations) {
  const std::size_t count = wanted.probes.size();
  for (; next < count && wanted.probes[next].task < end; ++next) {
    const Probe& probe = wanted.probes[next];
    const Eight finish = ring.finish[probe.task & ring.mask];
    for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
      wanted.finishes[set * count + probe.place] = finish[set];
      wanted.starts[set * count + probe.place] = finish[set] - durations[set][probe.task];
    }
  }
  return next;
}

template <bool with_lags>
[[gnu::always_inline]] inline void pass_all(const Rows& rows, const Ring& ring, Durations durations,
                                            Greatest greatest, const ProbeTimes& wanted) {
  alignas(64) std::int64_t gathered[kBlock][kSetsAtOnce];
  Eight best = {};
  std::size_t probe = 0;
  for (std::size_t begin = 0; begin < rows.task_count(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, rows.task_count());
    for (std::size_t task = begin; task < end; ++task) {
      for (std::size_t set = 0; set < kSetsAtOnce; ++set)
        gathered[task - begin][set] = durations[set][task];
    }
    pass_block<with_lags>(rows, ring, reinterpret_cast<const Eight*>(gathered), begin, end, best);
    if (probe < wanted.probes.size() && wanted.probes[probe].task < end)
      probe = read_probes(ring, wanted, probe, end, durations);
  }
  std::memcpy(greatest, &best, sizeof greatest);
}

[[gnu::always_inline]] inline void pass_either(const Rows& rows, const Ring& ring,
                                               Durations durations, Greatest greatest,
                                               const ProbeTimes& wanted) {
  if (rows.lag.empty()) {
    pass_all<false>(rows, ring, durations, greatest, wanted);
  } else {
    pass_all<true>(rows, ring, durations, greatest, wanted);
  }
}

using Pass = void (*)(const Rows&, const Ring&, Durations, Greatest, const ProbeTimes&);

void pass_plain(const Rows& rows, const Ring& ring, Durations durations, Greatest greatest,
                const ProbeTimes& wanted) {
  pass_either(rows, ring, durations, greatest, wanted);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void pass_avx2(const Rows& rows, const Ring& ring, Durations durations,
                                       Greatest greatest, const ProbeTimes& wanted) {
  pass_either(rows, ring, durations, greatest, wanted);
}

[[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] void pass_avx512(const Rows& rows,
                                                                       const Ring& ring,
                                                                       Durations durations,
                                                                       Greatest greatest,
                                                                       const ProbeTimes& wanted) {
  pass_either(rows, ring, durations, greatest, wanted);
}

Pass best_pass() {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return pass_avx512;
  }
  return __builtin_cpu_supports("avx2") ? pass_avx2 : pass_plain;
}
#else
Pass best_pass() { return pass_plain; }
#endif

/// Memory for rings, aligned for the vectors. Each thread keeps its own: to have some megabytes
/// mapped and zeroed anew takes longer than to pass over them. Nothing in it is read before the
/// pass at hand has written it.
Eight* scratch_for(std::size_t count) {
  thread_local std::unique_ptr<Eight[]> kept;
  thread_local std::size_t size = 0;
  if (size < count) {
    kept = std::make_unique<Eight[]>(count);
    size = count;
  }
  return kept.get();
}

}  // namespace

void pass_eight(const Rows& rows, const std::int64_t* const (&durations)[kSetsAtOnce],
                std::int64_t (&greatest)[kSetsAtOnce], const ProbeTimes& wanted) {
  // A whole block, so that probes can be read behind it.
  const auto size = static_cast<std::uint32_t>(
      std::bit_ceil(std::max<std::size_t>(std::size_t{rows.reach} + 1, kBlock)));
  Eight* const scratch = scratch_for(rows.lag.empty() ? size : 2 * std::size_t{size});
  const Ring ring{scratch, rows.lag.empty() ? nullptr : scratch + size, size - 1};
  best_pass()(rows, ring, durations, greatest, wanted);
}

}  // namespace foretrace
