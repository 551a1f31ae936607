#include "network/flow/repeating_rounds.h"

#include <algorithm>
#include <cmath>

namespace foretrace {
namespace {

bool is_sent_alike(const Message& a, const Message& b) {
  return a.to == b.to && a.level == b.level && a.reduces == b.reduces && a.streams == b.streams;
}

/// The messages of all endpoints in one round.
class RoundMessages {
 public:
  RoundMessages(const Algorithm& algorithm, const Call& call, const Plan& plan, std::uint32_t round)
      : algorithm_(algorithm), call_(call), plan_(plan) {
    for (std::uint32_t rank = 0; rank < plan.endpoints; ++rank) {
      algorithm.sends(call, plan, rank, round, messages_);
      ends_.push_back(messages_.size());
    }
  }

  /// Calls visit(message) for the messages of another round. Returns false, early, if they are
  /// other messages, or visit() returns false.
  template <class Visit>
  bool each_in(std::uint32_t round, const Visit& visit) {
    auto expected = messages_.begin();
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
      sent_.clear();
      algorithm_.sends(call_, plan_, rank, round, sent_);
      const auto end = messages_.begin() + static_cast<std::ptrdiff_t>(ends_[rank]);
      if (!std::equal(expected, end, sent_.begin(), sent_.end(), is_sent_alike)) return false;
      if (!std::ranges::all_of(sent_, visit)) return false;
      expected = end;
    }
    return true;
  }

  std::uint64_t size() const { return messages_.size(); }

 private:
  const Algorithm& algorithm_;
  const Call& call_;
  const Plan& plan_;
  std::vector<Message> messages_, sent_;
  std::vector<std::size_t> ends_;  ///< Into messages_, by endpoint.
};

/// Whether messages of the least and of the most bytes are reduced in the same time.
bool are_reduced_alike(const RepeatingRounds& rounds, LinkCosts costs) {
  return std::ranges::all_of(costs, [&](const LinkCost& cost) {
    const auto time = [&](Bytes bytes) {
      return std::llround(static_cast<double>(bytes.count) * cost.reduce_ns_per_byte);
    };
    return time(rounds.least) == time(rounds.most);
  });
}

}  // namespace

RepeatingRounds repeating_rounds(const Algorithm& algorithm, const Call& call, const Plan& plan,
                                 LinkCosts costs, std::uint32_t first) {
  RoundMessages messages(algorithm, call, plan, first);
  RepeatingRounds found{.first = first, .end = first + 1, .messages = messages.size()};
  for (std::uint32_t round = first; round < plan.rounds; ++round) {
    RepeatingRounds more = found;
    const auto add = [&](const Message& message) {
      if (more.most.count == 0) more.least = more.most = message.bytes;
      more.least = std::min(more.least, message.bytes);
      more.most = std::max(more.most, message.bytes);
      more.moved += message.bytes;
      return more.least.count > 0 && more.most.count - more.least.count <= 1;
    };
    if (!messages.each_in(round, add) || !are_reduced_alike(more, costs)) break;
    found = more;
    found.end = round + 1;
  }
  return found;
}

}  // namespace foretrace
