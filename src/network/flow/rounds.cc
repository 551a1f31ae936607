#include "network/flow/rounds.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// How many messages of each round have not arrived yet, by endpoint. Rounds that all have behind
/// them are dropped.
class Missing {
 public:
  Missing(const Algorithm& algorithm, const Call& call, const Plan& plan)
      : algorithm_(algorithm), call_(call), plan_(plan), whole_(plan.endpoints) {}

  /// Whether all that was sent to `rank` in rounds up to `round` has arrived.
  bool has_all(std::uint32_t rank, std::uint32_t round) {
    whole_[rank] = std::max(whole_[rank], dropped_);
    while (whole_[rank] <= round && row(whole_[rank]).left[rank] == 0) ++whole_[rank];
    return whole_[rank] > round;
  }

  void arrived(std::uint32_t rank, std::uint32_t round) {
    Row& one = row(round);
    --one.left[rank];
    --one.all;
    while (!rows_.empty() && rows_.front().all == 0) rows_.pop_front(), ++dropped_;
  }

  std::size_t bytes() const { return (rows_.size() + 1) * plan_.endpoints * sizeof(std::uint32_t); }

 private:
  struct Row {
    std::vector<std::uint32_t> left;
    std::uint64_t all = 0;
  };

  Row& row(std::uint32_t round) {
    while (dropped_ + rows_.size() <= round) add_row();
    return rows_[round - dropped_];
  }

  void add_row() {
    const auto round = static_cast<std::uint32_t>(dropped_ + rows_.size());
    Row& added = rows_.emplace_back();
    added.left.resize(plan_.endpoints);
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
      messages_.clear();
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) ++added.left[message.to];
      added.all += messages_.size();
    }
  }

  const Algorithm& algorithm_;
  const Call& call_;
  const Plan& plan_;
  std::vector<std::uint32_t> whole_;
  std::deque<Row> rows_;
  std::uint32_t dropped_ = 0;
  std::vector<Message> messages_;
};

struct UnderWay {
  std::uint32_t from = 0, to = 0, round = 0;
  Nanoseconds reduce{0};
  bool streams = false;
};

struct Arrival {
  Nanoseconds at;
  std::uint32_t to, round;
  std::uint32_t from;  ///< Its round is done with this; kNobody if it went on before.
  bool operator>(const Arrival& other) const {
    return at != other.at ? at > other.at : to != other.to ? to > other.to : from > other.from;
  }
};

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

class RoundsRun {
 public:
  RoundsRun(Carrier& carrier, const Algorithm& algorithm, const Call& call, LinkCosts costs)
      : carrier_(carrier),
        algorithm_(algorithm),
        call_(call),
        costs_(costs),
        plan_(algorithm.plan(call, costs)),
        missing_(algorithm, call, plan_),
        round_(plan_.endpoints),
        sending_(plan_.endpoints) {}

  Expansion run() {
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) go_on(rank);
    while (step()) continue;
    expansion_.time = now_;
    expansion_.state = Bytes{static_cast<std::int64_t>(most_state_)};
    return expansion_;
  }

 private:
  /// The next moment at which something leaves or arrives; false when there is none.
  bool step() {
    const Nanoseconds limit = arrivals_.empty() ? Nanoseconds::max() : arrivals_.top().at;
    const std::optional<Nanoseconds> next = carrier_.next(limit);
    if (!next && arrivals_.empty()) return false;
    now_ = next ? std::min(*next, limit) : limit;
    most_state_ = std::max(most_state_, carrier_.active() * sizeof(UnderWay) + missing_.bytes() +
                                            (round_.size() + sending_.size()) * 4);
    left_.clear();
    arrived_.clear();
    carrier_.take(now_, left_, arrived_);
    for (const std::uint32_t id : left_) leave(under_way_[id]);
    for (const std::uint32_t id : arrived_) come(under_way_[id], carrier_.latency(id));
    woken_.clear();
    while (!arrivals_.empty() && arrivals_.top().at == now_) arrive();
    for (const std::uint32_t rank : woken_) go_on(rank);
    return true;
  }

  /// A message that streams keeps its sender only until it has left.
  void leave(const UnderWay& message) {
    if (message.streams && --sending_[message.from] == 0)
      arrivals_.push({now_, message.from, kNobody, kNobody});
  }

  void come(const UnderWay& message, Nanoseconds latency) {
    arrivals_.push({now_ + latency + message.reduce, message.to, message.round,
                    message.streams ? kNobody : message.from});
  }

  void arrive() {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    if (arrival.round != kNobody && plan_.lag > 0) missing_.arrived(arrival.to, arrival.round);
    if (arrival.round != kNobody && plan_.lag == 0) ++received_of(arrival);
    woken_.push_back(arrival.to);
    if (arrival.from == kNobody) return;
    if (--sending_[arrival.from] == 0) woken_.push_back(arrival.from);
  }

  std::uint32_t& received_of(const Arrival& arrival) {
    if (received_.empty()) count_first_phase();
    return arrival.round < plan_.second_phase ? received_[arrival.to] : later_;
  }

  /// Counts what each endpoint gets before the second phase.
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
      return is_source || round < plan_.lag || missing_.has_all(rank, round - plan_.lag);
    }
    if (round < plan_.second_phase) return true;
    if (received_.empty()) count_first_phase();
    return received_[rank] >= expected_[rank];
  }

  void go_on(std::uint32_t rank) {
    while (sending_[rank] == 0 && round_[rank] < plan_.rounds && may_start(rank)) {
      messages_.clear();
      const std::uint32_t round = round_[rank]++;
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) send(rank, round, message);
    }
  }

  void send(std::uint32_t from, std::uint32_t round, const Message& message) {
    const LinkCost& cost = costs_[std::min<std::size_t>(message.level, costs_.size() - 1)];
    const std::uint32_t id = carrier_.begin(from, message, now_);
    if (id >= under_way_.size()) under_way_.resize(id + 1);
    const double reduce = message.reduces ? cost.reduce_ns_per_byte : 0;
    under_way_[id] = {from, message.to, round,
                      Nanoseconds(std::llround(static_cast<double>(message.bytes.count) * reduce)),
                      message.streams};
    ++sending_[from];
    ++expansion_.messages;
    expansion_.moved += message.bytes;
  }

  Carrier& carrier_;
  const Algorithm& algorithm_;
  const Call& call_;
  LinkCosts costs_;
  Plan plan_;
  Missing missing_;
  std::vector<std::uint32_t> round_;    ///< The next to start.
  std::vector<std::uint32_t> sending_;  ///< Messages of the round before that are under way.
  std::vector<std::uint32_t> received_, expected_;  ///< Before the second phase.
  std::uint32_t later_ = 0;
  std::vector<UnderWay> under_way_;  ///< By id.
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<std::uint32_t> left_, arrived_, woken_;
  std::vector<Message> messages_;
  Nanoseconds now_{0};
  std::size_t most_state_ = 0;
  Expansion expansion_;
};

}  // namespace

Expansion run_rounds(Carrier& carrier, const Algorithm& algorithm, const Call& call,
                     LinkCosts costs) {
  return RoundsRun(carrier, algorithm, call, costs).run();
}

}  // namespace foretrace
