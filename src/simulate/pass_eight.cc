// Eight replays of one structure in one pass. The eight finishes of a task lie side by side, so
// that few vector instructions take the maximum in all replays, and the cost of walking through the
// structure is paid once. A task looks back at most `reach` tasks: only that many finishes are
// kept, in a ring that mostly fits the cache.

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "simulate/pass.h"

namespace foretrace {

/// A time of one task, its finish or its duration, in each replay: one line of the cache.
struct alignas(64) Eight {
  EightTimes times;
};

namespace {

struct Ring {
  Eight* finish;
  Eight* duration;  ///< Kept only where a wait counts from a start or has a tail.
  std::uint32_t mask;
};

/// Rows from `begin` up to, but not including, `end`; none starts before `earliest`.
struct RowRange {
  std::size_t begin = 0, end = 0;
  std::int64_t earliest = 0;
};

/// Times that one instruction handles. They must fit a register: GCC compares wider vectors number
/// by number, through memory, which makes the whole pass five times as slow.
using One [[gnu::vector_size(8)]] = std::int64_t;
using Four [[gnu::vector_size(32)]] = std::int64_t;

template <class Numbers>
[[gnu::always_inline]] inline void raise_to(Numbers& time, const Numbers& other) {
  time = time > other ? time : other;
}

/// Turns finishes of tasks with these durations into the earliest starts that a wait for them
/// allows. Tails are computed as in TailShare::of().
template <class Numbers>
[[gnu::always_inline]] inline void apply_lag(const Rows& rows, std::uint32_t wait,
                                             const Numbers& durations, Numbers& times) {
  using Reals [[gnu::vector_size(sizeof(Numbers))]] = double;
  if (rows.before[wait] & Rows::kFromStart) times -= durations;
  if (rows.before[wait] & Rows::kTail)
    times -= __builtin_convertvector(__builtin_convertvector(durations, Reals) * rows.tail[wait],
                                     Numbers);
  times += rows.lag[wait];
}

template <class Numbers, bool with_lags>
[[gnu::always_inline]] inline void pass_rows(const Rows& rows, const Ring& ring,
                                             const EightDurations& durations, const RowRange& range,
                                             EightTimes& greatest) {
  constexpr std::size_t kWidth = sizeof(Numbers) / sizeof(std::int64_t);
  constexpr std::size_t kCount = kSetsAtOnce / kWidth;
  struct All {
    Numbers part[kCount];
  };
  const std::uint32_t* const before = rows.before.data();
  auto* const finishes = reinterpret_cast<Numbers*>(ring.finish);
  auto* const kept = reinterpret_cast<Numbers*>(ring.duration);
  All soonest, latest;
  for (Numbers& numbers : soonest.part) numbers = Numbers{} + range.earliest;
  std::memcpy(&latest, &greatest, sizeof latest);
  for (std::size_t task = range.begin; task < range.end; ++task) {
    All start = soonest;
    for (std::uint32_t wait = rows.first[task]; wait < rows.first[task + 1]; ++wait) {
      const std::size_t from = (before[wait] & ring.mask) * kCount;
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kCount; ++i) {
        Numbers earliest = finishes[from + i];
        if constexpr (with_lags) apply_lag(rows, wait, kept[from + i], earliest);
        raise_to(start.part[i], earliest);
      }
    }
    const std::size_t at = (task & ring.mask) * kCount;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kCount; ++i) {
      Numbers duration{};
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kWidth; ++k) duration[k] = durations[i * kWidth + k][task];
      const Numbers finish = start.part[i] + duration;
      finishes[at + i] = finish;
      if constexpr (with_lags) kept[at + i] = duration;
      raise_to(latest.part[i], finish);
    }
  }
  std::memcpy(&greatest, &latest, sizeof latest);
}

template <class Numbers>
[[gnu::always_inline]] inline void pass_range(const Rows& rows, const Ring& ring,
                                              const EightDurations& durations,
                                              const RowRange& range, EightTimes& greatest) {
  if (rows.lag.empty())
    pass_rows<Numbers, false>(rows, ring, durations, range, greatest);
  else
    pass_rows<Numbers, true>(rows, ring, durations, range, greatest);
}

void pass_plain(const Rows& rows, const Ring& ring, const EightDurations& durations,
                const RowRange& range, EightTimes& greatest) {
  pass_range<One>(rows, ring, durations, range, greatest);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void pass_avx2(const Rows& rows, const Ring& ring,
                                       const EightDurations& durations, const RowRange& range,
                                       EightTimes& greatest) {
  pass_range<Four>(rows, ring, durations, range, greatest);
}

/// AVX-512 was no faster on a Zen 4: gathering the durations takes longer than the maxima.
auto best_pass() { return __builtin_cpu_supports("avx2") ? pass_avx2 : pass_plain; }
#else
auto best_pass() { return pass_plain; }
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
  const std::size_t size = std::bit_ceil(std::size_t{rows.reach} + 1);
  mask_ = static_cast<std::uint32_t>(size - 1);
  scratch.memory_->provide(size, !rows.lag.empty());
}

void EightPass::run(std::size_t end) {
  const Ring ring = scratch_.memory_->ring(mask_);
  static const auto pass = best_pass();
  const std::vector<Probe>::size_type count = probe_times_.probes.size();
  while (next_ < end) {
    // Stops after the next probe, whose time is in the ring then.
    const std::size_t until =
        probe_ < count ? std::min<std::size_t>(end, probe_times_.probes[probe_].task + 1) : end;
    pass(rows_, ring, durations_, {next_, until, earliest_}, greatest_);
    next_ = until;
    read_probes(until, nullptr);
  }
}

EightTimes EightPass::enter_next() {
  const Ring ring = scratch_.memory_->ring(mask_);
  EightTimes ignored{};
  static const auto pass = best_pass();
  pass(rows_, ring, durations_, {next_, next_ + 1, earliest_}, ignored);
  EightTimes enters;
  for (std::size_t set = 0; set < kSetsAtOnce; ++set)
    enters[set] = ring.finish[next_ & mask_].times[set] - durations_[set][next_];
  return enters;
}

void EightPass::leave_next(const EightTimes& enters, const EightTimes& goes_on) {
  const Ring ring = scratch_.memory_->ring(mask_);
  EightTimes& finish = ring.finish[next_ & mask_].times;
  for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
    finish[set] = goes_on[set] + durations_[set][next_];
    greatest_[set] = std::max(greatest_[set], finish[set]);
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
    const EightTimes& finish = ring.finish[probe.task & mask_].times;
    for (std::size_t set = 0; set < kSetsAtOnce; ++set) {
      probe_times_.finishes[set * count + probe.place] = finish[set];
      probe_times_.starts[set * count + probe.place] =
          enters != nullptr ? (*enters)[set] : finish[set] - durations_[set][probe.task];
    }
  }
}

}  // namespace foretrace
