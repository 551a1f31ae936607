#include "network/flow/rounds.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <queue>

#include "foretrace/error.h"
#include "network/flow/repeating_rounds.h"

namespace foretrace {
namespace {

/// Counts the messages of each round that have not arrived yet, by endpoint. Rounds that all
/// endpoints have completed are dropped.
class PendingMessages {
 public:
  PendingMessages(const Algorithm& algorithm, const Call& call, const Plan& plan)
      : algorithm_(algorithm), call_(call), plan_(plan), complete_rounds_(plan.endpoints) {}

  /// Returns whether all messages sent to `rank` in rounds up to `round` have arrived.
  bool has_all(std::uint32_t rank, std::uint32_t round) {
    complete_rounds_[rank] = std::max(complete_rounds_[rank], dropped_);
    while (complete_rounds_[rank] <= round && row(complete_rounds_[rank]).by_endpoint[rank] == 0)
      ++complete_rounds_[rank];
    return complete_rounds_[rank] > round;
  }

  void arrived(std::uint32_t rank, std::uint32_t round) {
    Row& counts = row(round);
    --counts.by_endpoint[rank];
    --counts.total;
    while (!rows_.empty() && rows_.front().total == 0) rows_.pop_front(), ++dropped_;
  }

  /// Rounds that all endpoints have completed.
  std::uint32_t completed() const { return dropped_; }
  /// Skips rounds that send alike.
  void skip(std::uint32_t rounds) { dropped_ += rounds; }
  void describe(std::vector<std::int64_t>& out) const {
    for (const Row& row : rows_)
      out.insert(out.end(), row.by_endpoint.begin(), row.by_endpoint.end());
  }

  std::size_t bytes() const { return (rows_.size() + 1) * plan_.endpoints * sizeof(std::uint32_t); }

 private:
  struct Row {
    std::vector<std::uint32_t> by_endpoint;
    std::uint64_t total = 0;
  };

  Row& row(std::uint32_t round) {
    while (dropped_ + rows_.size() <= round) add_row();
    return rows_[round - dropped_];
  }

  void add_row() {
    const auto round = static_cast<std::uint32_t>(dropped_ + rows_.size());
    Row& added = rows_.emplace_back();
    added.by_endpoint.resize(plan_.endpoints);
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
      messages_.clear();
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) ++added.by_endpoint[message.to];
      added.total += messages_.size();
    }
  }

  const Algorithm& algorithm_;
  const Call& call_;
  const Plan& plan_;
  std::vector<std::uint32_t> complete_rounds_;
  std::deque<Row> rows_;
  std::uint32_t dropped_ = 0;
  std::vector<Message> messages_;
};

struct MessageInFlight {
  std::size_t collective = 0;
  std::uint32_t from = 0, to = 0, round = 0;
  Nanoseconds reduce{0};
  bool streams = false;
  bool is_active = false;
};

struct Arrival {
  Nanoseconds at;
  std::uint32_t to, round;
  /// The sender, whose round this completes; kNobody if the sender continued earlier.
  std::uint32_t from;
  bool operator>(const Arrival& other) const {
    return at != other.at ? at > other.at : to != other.to ? to > other.to : from > other.from;
  }
};

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// The messages in flight of all collectives, by the id that their network assigned.
struct SharedState {
  MessageNetwork& network;
  std::vector<MessageInFlight> in_flight = {};
  Expansion expansion = {};
};

/// One collective and the progress of each of its endpoints.
class Rounds {
 public:
  Rounds(SharedState& shared, std::size_t number, const CollectiveRun& run)
      : shared_(shared),
        number_(number),
        algorithm_(*run.algorithm),
        call_(run.call),
        costs_(run.costs),
        plan_(algorithm_.plan(call_, costs_)),
        pending_(algorithm_, call_, plan_),
        round_(plan_.endpoints),
        sending_(plan_.endpoints) {}

  void begin(Nanoseconds now) {
    now_ = now;
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) advance(rank);
  }

  /// Returns when the next message that only its latency still delays arrives.
  Nanoseconds next() const { return arrivals_.empty() ? Nanoseconds::max() : arrivals_.top().at; }

  /// A streaming message occupies its sender only until its last byte has left.
  void on_departure(const MessageInFlight& message, Nanoseconds now) {
    if (!message.streams) return;
    --open_;
    if (--sending_[message.from] == 0) arrivals_.push({now, message.from, kNobody, kNobody});
  }

  void on_arrival(const MessageInFlight& message, Nanoseconds at) {
    arrivals_.push(
        {at + message.reduce, message.to, message.round, message.streams ? kNobody : message.from});
    --open_;
  }

  void advance_to(Nanoseconds now) {
    now_ = now;
    woken_.clear();
    while (next() == now) arrive();
    for (const std::uint32_t rank : woken_) advance(rank);
  }

  /// Skips the rounds that would repeat the last one. REQUIRES: this collective is alone, and
  /// nothing is left to do at `now`. Returns by how much the clock advances.
  Nanoseconds skip_repeating(Flows& flows, Nanoseconds now) {
    const std::uint32_t completed = pending_.completed();
    if (plan_.lag == 0 || completed == checked_ || completed < next_try_) return Nanoseconds(0);
    const Nanoseconds took = now - checked_at_;
    const bool may_repeat = completed == checked_ + 1 && took == took_;
    const bool is_watched = !watched_.empty();
    checked_ = completed, checked_at_ = now, took_ = took;
    if (!may_repeat && !is_watched) return Nanoseconds(0);
    if (!is_watched) {
      watch(flows, now);
      return Nanoseconds(0);
    }
    const bool repeats = may_repeat && !flows.is_sensitive() && described(flows, now) == watched_;
    watched_.clear();
    next_try_ = completed + kFirstWait + completed / 8;
    return repeats ? skip(flows, took) : Nanoseconds(0);
  }

  Bytes moved() const { return moved_; }
  bool is_done() const { return open_ == 0 && arrivals_.empty(); }
  std::size_t state() const { return pending_.bytes() + (round_.size() + sending_.size()) * 4; }

 private:
  /// Begins to watch whether a round that sends like those after it also takes as long.
  void watch(Flows& flows, Nanoseconds now) {
    const std::uint32_t completed = pending_.completed();
    if (repeating_.end <= completed)
      repeating_ = repeating_rounds(algorithm_, call_, plan_, costs_, completed);
    if (skippable() == 0) {
      next_try_ = std::max(completed + kFirstWait, repeating_.end);
      return;
    }
    flows.watch(repeating_.least, repeating_.most);
    watched_ = described(flows, now);
  }

  /// Rounds that can be skipped if they repeat.
  std::uint32_t skippable() const {
    const auto [least, most] = std::ranges::minmax(round_);
    return least >= repeating_.first && most + 2 < repeating_.end ? repeating_.end - most - 2 : 0;
  }

  /// Continues as many rounds later as can be skipped.
  Nanoseconds skip(Flows& flows, Nanoseconds took) {
    const std::uint32_t rounds = skippable();
    const Nanoseconds by = rounds * took;
    Bytes moved = repeating_.moved;
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
      moved -= moved_in(rank, repeating_.first, round_[rank]);
      round_[rank] += rounds;
      moved -= moved_in(rank, round_[rank], repeating_.end);
    }
    moved_ += moved;
    shared_.expansion.moved += moved;
    shared_.expansion.skipped += rounds * repeating_.messages;
    shared_.expansion.messages += rounds * repeating_.messages;
    for (MessageInFlight& message : shared_.in_flight) message.round += rounds;
    pending_.skip(rounds);
    checked_ += rounds;
    next_try_ = 0;
    flows.shift(by);
    std::vector<Arrival> arrivals;
    for (; !arrivals_.empty(); arrivals_.pop()) arrivals.push_back(arrivals_.top());
    for (Arrival& arrival : arrivals) {
      arrival.at += by;
      if (arrival.round != kNobody) arrival.round += rounds;
      arrivals_.push(arrival);
    }
    now_ += by, checked_at_ += by;
    return by;
  }

  Bytes moved_in(std::uint32_t rank, std::uint32_t first, std::uint32_t end) {
    Bytes moved{};
    for (std::uint32_t round = first; round < end; ++round) {
      messages_.clear();
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) moved += message.bytes;
    }
    return moved;
  }

  /// All that decides how the rounds continue, relative to the time and to the completed rounds.
  std::vector<std::int64_t> described(Flows& flows, Nanoseconds now) const {
    const std::uint32_t completed = pending_.completed();
    std::vector<std::int64_t> all;
    for (const std::uint32_t round : round_) all.push_back(std::int64_t{round} - completed);
    all.insert(all.end(), sending_.begin(), sending_.end());
    pending_.describe(all);
    for (auto arrivals = arrivals_; !arrivals.empty(); arrivals.pop()) {
      const Arrival& arrival = arrivals.top();
      all.insert(all.end(),
                 {(arrival.at - now).count(), arrival.to, arrival.from,
                  arrival.round == kNobody ? -1 : std::int64_t{arrival.round} - completed});
    }
    std::vector<std::vector<std::int64_t>> messages;
    for (std::uint32_t id = 0; id < shared_.in_flight.size(); ++id) {
      const MessageInFlight& message = shared_.in_flight[id];
      if (!message.is_active) continue;
      messages.push_back({message.from, message.to, std::int64_t{message.round} - completed,
                          message.reduce.count(), message.streams ? 1 : 0});
      flows.describe(id, messages.back());
    }
    std::ranges::sort(messages);
    for (const auto& message : messages) all.insert(all.end(), message.begin(), message.end());
    return all;
  }

  void arrive() {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    if (arrival.round != kNobody && plan_.lag > 0) pending_.arrived(arrival.to, arrival.round);
    if (arrival.round != kNobody && plan_.lag == 0) ++received_of(arrival);
    woken_.push_back(arrival.to);
    if (arrival.from == kNobody) return;
    if (--sending_[arrival.from] == 0) woken_.push_back(arrival.from);
  }

  std::uint32_t& received_of(const Arrival& arrival) {
    if (received_.empty()) count_first_phase();
    return arrival.round < plan_.second_phase ? received_[arrival.to] : later_;
  }

  /// Counts the messages that each endpoint receives before the second phase.
  void count_first_phase() {
    received_.assign(plan_.endpoints, 0);
    expected_.assign(plan_.endpoints, 0);
    if (plan_.second_phase >= plan_.rounds) return;
    std::vector<Message> messages;
    for (std::uint32_t round = 0; round < plan_.second_phase; ++round) {
      for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank)
        algorithm_.sends(call_, plan_, rank, round, messages);
      for (const Message& message : messages) ++expected_[message.to];
      messages.clear();
    }
  }

  bool may_start(std::uint32_t rank) {
    const std::uint32_t round = round_[rank];
    if (plan_.lag > 0) {
      const bool is_source = plan_.switches_from < plan_.endpoints && rank < plan_.switches_from;
      return is_source || round < plan_.lag || pending_.has_all(rank, round - plan_.lag);
    }
    if (round < plan_.second_phase) return true;
    if (received_.empty()) count_first_phase();
    return received_[rank] >= expected_[rank];
  }

  void advance(std::uint32_t rank) {
    while (sending_[rank] == 0 && round_[rank] < plan_.rounds && may_start(rank)) {
      messages_.clear();
      const std::uint32_t round = round_[rank]++;
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) send(rank, round, message);
    }
  }

  void send(std::uint32_t from, std::uint32_t round, const Message& message) {
    const LinkCost& cost = costs_[std::min<std::size_t>(message.level, costs_.size() - 1)];
    const std::uint32_t id = shared_.network.begin(number_, from, message, now_);
    if (id >= shared_.in_flight.size()) shared_.in_flight.resize(id + 1);
    const double reduce = message.reduces ? cost.reduce_ns_per_byte : 0;
    shared_.in_flight[id] = {
        number_,
        from,
        message.to,
        round,
        Nanoseconds(std::llround(static_cast<double>(message.bytes.count) * reduce)),
        message.streams,
        true};
    ++sending_[from];
    open_ += message.streams ? 2 : 1;
    ++shared_.expansion.messages;
    shared_.expansion.moved += message.bytes;
    moved_ += message.bytes;
  }

  SharedState& shared_;
  std::size_t number_;
  const Algorithm& algorithm_;
  const Call& call_;
  LinkCosts costs_;
  Plan plan_;
  PendingMessages pending_;
  std::vector<std::uint32_t> round_;                ///< The next round to start.
  std::vector<std::uint32_t> sending_;              ///< Messages in flight of the previous round.
  std::vector<std::uint32_t> received_, expected_;  ///< Before the second phase.
  std::uint32_t later_ = 0;
  /// Messages that have not arrived, and streaming messages that have not left.
  std::size_t open_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<std::uint32_t> woken_;
  std::vector<Message> messages_;
  Bytes moved_{};
  Nanoseconds now_{0};

  /// After an attempt to skip rounds, the next one is this many rounds later, or an eighth.
  static constexpr std::uint32_t kFirstWait = 4;
  RepeatingRounds repeating_;
  std::vector<std::int64_t> watched_;  ///< The state when the watched round began; else empty.
  std::uint32_t checked_ = 0, next_try_ = 0;
  Nanoseconds checked_at_{0}, took_{0};
};

/// Runs all collectives on one clock.
class CollectiveScheduler {
 public:
  CollectiveScheduler(MessageNetwork& network, std::span<const CollectiveRun> collectives,
                      std::vector<CollectiveTimes>& times)
      : shared_{network}, collectives_(collectives), times_(times), running_(collectives.size()) {
    times_.assign(collectives.size(), {});
    for (std::size_t i = 0; i < collectives.size(); ++i)
      if (collectives[i].predecessor == CollectiveRun::kNoPredecessor)
        due_.emplace(collectives[i].at, i);
  }

  Expansion run() {
    while (step()) continue;
    shared_.expansion.time = now_;
    return shared_.expansion;
  }

 private:
  /// Advances to the next moment at which something begins, leaves or arrives; returns false if
  /// there is none.
  bool step() {
    Nanoseconds limit = due_.empty() ? Nanoseconds::max() : due_.top().first;
    for (const std::size_t i : active_) limit = std::min(limit, running_[i]->next());
    const std::optional<Nanoseconds> next = shared_.network.next(limit);
    if (!next && limit == Nanoseconds::max()) return false;
    if (collectives_.size() == 1 && !active_.empty() && shared_.network.flows()) {
      const Nanoseconds by = running_[0]->skip_repeating(*shared_.network.flows(), now_);
      now_ += by;
      if (by > Nanoseconds(0)) return true;
    }
    now_ = next ? std::min(*next, limit) : limit;
    count_state();
    left_.clear();
    arrived_.clear();
    shared_.network.take(now_, left_, arrived_);
    for (const std::uint32_t id : left_) {
      const MessageInFlight& message = shared_.in_flight[id];
      running_[message.collective]->on_departure(message, now_);
    }
    for (const std::uint32_t id : arrived_) {
      MessageInFlight& message = shared_.in_flight[id];
      message.is_active = false;
      running_[message.collective]->on_arrival(message, now_ + shared_.network.latency(id));
    }
    for (const std::size_t i : active_) running_[i]->advance_to(now_);
    do {
      std::erase_if(active_, [&](std::size_t i) { return running_[i]->is_done() && end(i); });
    } while (begin_due());
    return true;
  }

  /// Begins one collective that is due; returns false if none is.
  bool begin_due() {
    if (due_.empty() || due_.top().first > now_) return false;
    const std::size_t i = due_.top().second;
    due_.pop();
    running_[i] = std::make_unique<Rounds>(shared_, i, collectives_[i]);
    times_[i].begin = now_;
    active_.push_back(i);
    running_[i]->begin(now_);
    return true;
  }

  bool end(std::size_t i) {
    times_[i].end = now_;
    times_[i].moved = running_[i]->moved();
    for (std::size_t other = 0; other < collectives_.size(); ++other)
      if (collectives_[other].predecessor == i)
        due_.emplace(std::max(collectives_[other].at, now_), other);
    return true;
  }

  void count_state() {
    std::size_t state = shared_.network.active() * sizeof(MessageInFlight);
    for (const std::size_t i : active_) state += running_[i]->state();
    const Bytes bytes{static_cast<std::int64_t>(state)};
    shared_.expansion.state = std::max(shared_.expansion.state, bytes);
  }

  SharedState shared_;
  std::span<const CollectiveRun> collectives_;
  std::vector<CollectiveTimes>& times_;
  std::vector<std::unique_ptr<Rounds>> running_;
  std::vector<std::size_t> active_;
  using DueTime = std::pair<Nanoseconds, std::size_t>;
  std::priority_queue<DueTime, std::vector<DueTime>, std::greater<>> due_;
  std::vector<std::uint32_t> left_, arrived_;
  Nanoseconds now_{0};
};

}  // namespace

Expansion run_rounds(MessageNetwork& network, std::span<const CollectiveRun> collectives,
                     std::vector<CollectiveTimes>& times) {
  return CollectiveScheduler(network, collectives, times).run();
}

}  // namespace foretrace
