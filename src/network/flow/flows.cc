#include "network/flow/flows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>

#include "foretrace/error.h"
#include "network/flow/fair_rates.h"

namespace foretrace {
namespace {

/// Tolerance for rounding: less than this fraction of a byte counts as nothing.
constexpr double kRounding = 1e-3;
/// Comparisons that come closer than this to the rounding are taken for sensitive.
constexpr double kUnclear = 1e-4;
constexpr Nanoseconds kNever = Nanoseconds::max();

}  // namespace

struct Flows::Impl {
  /// A flow within its entry. It ends when each flow of the entry has received `until` bytes.
  struct FlowEnd {
    double until = 0;
    double bytes = 0;
    FlowId flow = 0;
    bool operator>(const FlowEnd& other) const {
      return until != other.until ? until > other.until : flow > other.flow;
    }
  };

  struct EntryProgress {
    double received = 0;  ///< Bytes that each flow of the entry has received since the entry began.
    Nanoseconds at{0};
    Nanoseconds due = kNever;     ///< When its next flow ends.
    Nanoseconds queued = kNever;  ///< When its earliest event is, at most `due`.
    std::priority_queue<FlowEnd, std::vector<FlowEnd>, std::greater<>> ends;
  };

  struct Event {
    Nanoseconds at;
    std::uint32_t entry;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : entry > other.entry;
    }
  };

  FairRates rates;
  std::vector<EntryProgress> progress;  ///< By entry.
  std::vector<std::uint32_t> entry_of;
  std::vector<double> begins;  ///< By flow: what the flows of its entry had received when it began.
  std::vector<FlowId> unused;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<FairRates::Change> changed;
  std::vector<FlowId> ended;  ///< Flows that end at the same time.
  Nanoseconds now{0};
  std::size_t active = 0;
  double least = 0, most = 0;  ///< Bytes, see watch().
  bool is_sensitive = false;

  explicit Impl(std::vector<Bandwidth> capacities) : rates(capacities) {}

  FlowId new_flow() {
    if (unused.empty()) {
      entry_of.push_back(0);
      begins.push_back(0);
      return static_cast<FlowId>(entry_of.size() - 1);
    }
    const FlowId flow = unused.back();
    unused.pop_back();
    return flow;
  }

  std::uint32_t entry_for(std::span<const std::uint32_t> route) {
    if (const auto found = rates.find(route)) return *found;
    const std::uint32_t entry = rates.add(route);
    if (entry >= progress.size()) progress.resize(entry + 1);
    progress[entry].received = 0;
    progress[entry].at = now;
    return entry;
  }

  /// Updates the bytes transferred up to `now`.
  void advance(std::uint32_t entry, double rate) {
    EntryProgress& state = progress[entry];
    state.received += rate * static_cast<double>((now - state.at).count()) * 1e-9;
    state.at = now;
  }
  void advance(std::uint32_t entry) { advance(entry, rates.rate(entry)); }

  /// Computes new rates for all affected entries, and when the first flow of each ends.
  void update_rates() {
    changed.clear();
    rates.update_rates(changed);
    for (const auto& [entry, before] : changed) {
      advance(entry, before);
      schedule(entry);
    }
  }

  void schedule(std::uint32_t entry) {
    EntryProgress& state = progress[entry];
    state.due = kNever;
    // With fewer bytes a flow could have ended before the rate changed.
    if (!state.ends.empty() &&
        state.ends.top().until - (most - least) - kRounding <= state.received + kUnclear)
      is_sensitive = true;
    const double rate = rates.rate(entry);
    if (state.ends.empty() || rate <= 0) return;
    const double left = std::max(0.0, state.ends.top().until - state.received - kRounding);
    const double wait = std::ceil(left * 1e9 / rate);
    if (wait > 9e18) return;
    state.due = now + Nanoseconds(static_cast<std::int64_t>(wait));
    if (state.due < state.queued) queue(entry);
  }

  void queue(std::uint32_t entry) {
    progress[entry].queued = progress[entry].due;
    events.push({progress[entry].due, entry});
  }

  void remove_entry(std::uint32_t entry) {
    progress[entry].due = kNever;
    rates.remove(entry);
  }

  /// Returns the first event at which a flow ends, if there is any. An entry that was delayed has
  /// its event too early, and queues another one then.
  const Event* first_event() {
    while (!events.empty()) {
      const Event& event = events.top();
      EntryProgress& state = progress[event.entry];
      if (state.due == event.at) return &event;
      const std::uint32_t entry = event.entry;
      const bool is_its_earliest = state.queued == event.at;
      events.pop();
      if (!is_its_earliest) continue;
      state.queued = kNever;
      if (state.due != kNever) queue(entry);
    }
    return nullptr;
  }

  void advance_clock(Nanoseconds time) {
    if (time == now) return;
    update_rates();
    now = time;
  }

  /// Notes whether a flow with fewer bytes would have ended earlier, or one with more bytes later.
  void note_end(const EntryProgress& state, const FlowEnd& end, double rate) {
    const double earliest = end.until - end.bytes + least - kRounding;
    const double latest = end.until - end.bytes + most - kRounding;
    if (earliest <= state.received - rate * 1e-9 + kUnclear || latest > state.received - kUnclear)
      is_sensitive = true;
  }

  void end_flows(std::uint32_t entry, std::vector<FlowId>& out) {
    advance(entry);
    EntryProgress& state = progress[entry];
    while (!state.ends.empty() && state.ends.top().until <= state.received + 2 * kRounding) {
      note_end(state, state.ends.top(), rates.rate(entry));
      out.push_back(state.ends.top().flow);
      state.ends.pop();
      rates.add_flows(entry, -1);
      --active;
    }
    if (state.ends.empty())
      remove_entry(entry);
    else
      schedule(entry);
  }
};

Flows::Flows(std::vector<Bandwidth> capacities) {
  for (const Bandwidth capacity : capacities) {
    if (!(capacity.bytes_per_second > 0))
      throw Error("bandwidth: must be greater than 0, got " + to_text(capacity));
  }
  impl_ = std::make_unique<Impl>(std::move(capacities));
}
Flows::Flows(Flows&&) noexcept = default;
Flows::~Flows() = default;

FlowId Flows::begin(std::span<const std::uint32_t> route, Bytes bytes, Nanoseconds now) {
  CHECK(now >= impl_->now);
  impl_->advance_clock(now);
  const FlowId flow = impl_->new_flow();
  if (route.empty() || bytes.count <= 0) {
    impl_->ended.push_back(flow);
    return flow;
  }
  const std::uint32_t entry = impl_->entry_for(route);
  impl_->advance(entry);
  impl_->entry_of[flow] = entry;
  impl_->begins[flow] = impl_->progress[entry].received;
  impl_->progress[entry].ends.push(
      {impl_->progress[entry].received + static_cast<double>(bytes.count),
       static_cast<double>(bytes.count), flow});
  impl_->rates.add_flows(entry, 1);
  if (impl_->rates.rate(entry) > 0) impl_->schedule(entry);  // It may end before the others.
  ++impl_->active;
  return flow;
}

std::optional<Nanoseconds> Flows::next() {
  if (!impl_->ended.empty()) return impl_->now;
  impl_->update_rates();
  const Impl::Event* first = impl_->first_event();
  return first ? std::optional(first->at) : std::nullopt;
}

void Flows::take_ended(Nanoseconds now, std::vector<FlowId>& out) {
  impl_->advance_clock(now);
  const std::size_t before = out.size();
  out.insert(out.end(), impl_->ended.begin(), impl_->ended.end());
  impl_->ended.clear();
  for (const Impl::Event* event = impl_->first_event(); event && event->at <= now;
       event = impl_->first_event()) {
    const std::uint32_t entry = event->entry;
    impl_->events.pop();
    impl_->progress[entry].queued = kNever;
    impl_->end_flows(entry, out);
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  impl_->unused.insert(impl_->unused.end(), out.begin() + static_cast<std::ptrdiff_t>(before),
                       out.end());
}

void Flows::watch(Bytes least, Bytes most) {
  impl_->least = static_cast<double>(least.count);
  impl_->most = static_cast<double>(most.count);
  impl_->is_sensitive = !impl_->ended.empty();
}

bool Flows::is_sensitive() const { return impl_->is_sensitive; }

void Flows::describe(FlowId flow, std::vector<std::int64_t>& out) const {
  const std::uint32_t entry = impl_->entry_of[flow];
  const Impl::EntryProgress& state = impl_->progress[entry];
  out.push_back((impl_->now - state.at).count());
  out.push_back(state.due == kNever ? -1 : (state.due - impl_->now).count());
  out.push_back(std::bit_cast<std::int64_t>(state.received));
  out.push_back(std::bit_cast<std::int64_t>(impl_->begins[flow]));
  out.push_back(std::bit_cast<std::int64_t>(impl_->rates.rate(entry)));
  out.push_back(impl_->rates.limit(entry));
}

void Flows::shift(Nanoseconds by) {
  impl_->now += by;
  impl_->events = {};
  for (std::uint32_t entry = 0; entry < impl_->progress.size(); ++entry) {
    Impl::EntryProgress& state = impl_->progress[entry];
    state.at += by;
    state.queued = kNever;
    if (state.due == kNever) continue;
    state.due += by;
    impl_->queue(entry);
  }
}

std::size_t Flows::active() const { return impl_->active; }

std::uint64_t Flows::computed_rates() const { return impl_->rates.computed(); }

double Flows::rate(FlowId flow) {
  impl_->update_rates();
  return impl_->rates.rate(impl_->entry_of[flow]);
}

}  // namespace foretrace
