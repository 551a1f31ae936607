// Eight replays of one structure in one pass. The eight finishes of a task lie side by side, so
// that one vector instruction takes the maximum in all replays, and the cost of walking through the
// structure is paid once. A task looks back at most `reach` tasks: only that many finishes are
// kept, in a ring that mostly fits the cache.

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "simulate/pass.h"

namespace foretrace {
namespace {

/// Eight numbers; the compiler splits them over the available registers.
using Eight [[gnu::vector_size(64)]] = std::int64_t;
using EightReals [[gnu::vector_size(64)]] = double;

constexpr std::size_t kBlock = 8;  ///< Tasks whose durations are gathered at a time.

struct Ring {
  Eight* finish;
  Eight* duration;  ///< Kept only where a wait counts from a start or has a tail.
  std::uint32_t mask;
};

/// Subtracts tails from `from`, computed as in TailShare::of().
[[gnu::always_inline]] inline void take_tails(Eight& from, const Eight& durations, double share) {
  from -= __builtin_convertvector(__builtin_convertvector(durations, EightReals) * share, Eight);
}

template <bool with_lags>
[[gnu::always_inline]] inline void pass_block(const Rows& rows, const Ring& ring,
                                              const Eight* durations, std::size_t begin,
                                              std::size_t end, std::int64_t earliest_of_all,
                                              Eight& greatest) {
  const std::uint32_t* const before = rows.before.data();
  for (std::size_t task = begin; task < end; ++task) {
    Eight start = Eight{} + earliest_of_all;
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

/// A block of at most kBlock rows.
struct Block {
  std::size_t begin = 0, end = 0;
  std::int64_t earliest = 0;
};

template <bool with_lags>
[[gnu::always_inline]] inline void gather_and_pass(const Rows& rows, const Ring& ring,
                                                   const EightDurations& durations,
                                                   const Block& block, Eight& greatest) {
  alignas(64) std::int64_t gathered[kBlock][kSetsAtOnce];
  for (std::size_t task = block.begin; task < block.end; ++task) {
    for (std::size_t set = 0; set < kSetsAtOnce; ++set)
      gathered[task - block.begin][set] = durations[set][task];
  }
  pass_block<with_lags>(rows, ring, reinterpret_cast<const Eight*>(gathered), block.begin,
                        block.end, block.earliest, greatest);
}

[[gnu::always_inline]] inline void pass_either(const Rows& rows, const Ring& ring,
                                               const EightDurations& durations, const Block& part,
                                               EightTimes& greatest) {
  Eight best;
  std::memcpy(&best, &greatest, sizeof best);
  for (std::size_t begin = part.begin; begin < part.end; begin += kBlock) {
    const Block block{begin, std::min(begin + kBlock, part.end), part.earliest};
    if (rows.lag.empty())
      gather_and_pass<false>(rows, ring, durations, block, best);
    else
      gather_and_pass<true>(rows, ring, durations, block, best);
  }
  std::memcpy(&greatest, &best, sizeof best);
}

using Pass = void (*)(const Rows&, const Ring&, const EightDurations&, const Block&, EightTimes&);

void pass_plain(const Rows& rows, const Ring& ring, const EightDurations& durations,
                const Block& part, EightTimes& greatest) {
  pass_either(rows, ring, durations, part, greatest);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void pass_avx2(const Rows& rows, const Ring& ring,
                                       const EightDurations& durations, const Block& part,
                                       EightTimes& greatest) {
  pass_either(rows, ring, durations, part, greatest);
}

[[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] void pass_avx512(
    const Rows& rows, const Ring& ring, const EightDurations& durations, const Block& part,
    EightTimes& greatest) {
  pass_either(rows, ring, durations, part, greatest);
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

}  // namespace

/// Allocated as Eight, to be aligned for the vectors. A pass writes each entry before it reads it,
/// so nothing is cleared between passes.
struct EightScratch::Memory {
  std::unique_ptr<Eight[]> kept;
  std::size_t size = 0;
  Eight* finish = nullptr;
  Eight* duration = nullptr;

  void provide(std::size_t count, bool with_durations) {
    const std::size_t needed = with_durations ? 2 * count : count;
    if (size < needed) kept = std::make_unique<Eight[]>(needed), size = needed;
    finish = kept.get();
    duration = with_durations ? finish + count : nullptr;
  }
  Ring ring(std::uint32_t mask) const { return {finish, duration, mask}; }
};

EightScratch::EightScratch() : memory_(std::make_unique<Memory>()) {}
EightScratch::EightScratch(EightScratch&&) noexcept = default;
EightScratch::~EightScratch() = default;

EightPass::EightPass(const Rows& rows, const EightDurations& durations,
                     const ProbeTimes& probe_times, Nanoseconds earliest, EightScratch& scratch)
    : rows_(rows),
      durations_(durations),
      probe_times_(probe_times),
      earliest_(earliest.count()),
      scratch_(scratch) {
  // At least one block, because probes are read after the block that contains them.
  const std::size_t size =
      std::bit_ceil(std::max<std::size_t>(std::size_t{rows.reach} + 1, kBlock));
  mask_ = static_cast<std::uint32_t>(size - 1);
  scratch.memory_->provide(size, !rows.lag.empty());
}

void EightPass::run(std::size_t end) {
  const Ring ring = scratch_.memory_->ring(mask_);
  static const Pass pass = best_pass();
  const std::vector<Probe>::size_type count = probe_times_.probes.size();
  while (next_ < end) {
    // Stops soon after the next probe, whose time stays in the ring for at least one block.
    const std::size_t until =
        probe_ < count ? std::min<std::size_t>(end, probe_times_.probes[probe_].task + kBlock)
                       : end;
    pass(rows_, ring, durations_, {next_, until, earliest_}, greatest_);
    next_ = until;
    read_probes(until, nullptr);
  }
}

EightTimes EightPass::enter_next() {
  const Ring ring = scratch_.memory_->ring(mask_);
  EightTimes ignored{};
  static const Pass pass = best_pass();
  pass(rows_, ring, durations_, {next_, next_ + 1, earliest_}, ignored);
  EightTimes enters;
  for (std::size_t set = 0; set < kSetsAtOnce; ++set)
    enters[set] = ring.finish[next_ & mask_][set] - durations_[set][next_];
  return enters;
}

void EightPass::leave_next(const EightTimes& enters, const EightTimes& goes_on) {
  const Ring ring = scratch_.memory_->ring(mask_);
  Eight& finish = ring.finish[next_ & mask_];
  for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
    finish[set] = goes_on[set] + durations_[set][next_];
    greatest_[set] = std::max<std::int64_t>(greatest_[set], finish[set]);
  }
  ++next_;
  read_probes(next_, &enters);
}

/// Reads the probes before `end`; `enters`, if given, has the start of the last row.
void EightPass::read_probes(std::size_t end, const EightTimes* enters) {
  const Ring ring = scratch_.memory_->ring(mask_);
  const std::size_t count = probe_times_.probes.size();
  for (; probe_ < count && probe_times_.probes[probe_].task < end; ++probe_) {
    const Probe& probe = probe_times_.probes[probe_];
    const Eight finish = ring.finish[probe.task & mask_];
    for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
      probe_times_.finishes[set * count + probe.place] = finish[set];
      probe_times_.starts[set * count + probe.place] =
          enters != nullptr ? (*enters)[set] : finish[set] - durations_[set][probe.task];
    }
  }
}

}  // namespace foretrace
