// all-to-all     (p-1) (alpha + n/p beta)
// With unequal shares (all-to-all-v) rank j receives share_j n from each other rank. The closed
// form is then the time of the busiest port; the expansion adds the waits between rounds.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class Pairwise final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(call.operation, {Operation::all_to_all});
    if (!served.empty() || call.shares.empty()) return served;
    if (call.shares.size() != call.ranks)
      return fmt::format("needs a share for each of {} ranks, got {}", call.ranks,
                         call.shares.size());
    const bool positive =
        std::all_of(call.shares.begin(), call.shares.end(), [](double share) { return share > 0; });
    return positive ? "" : "needs shares that are greater than 0";
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double others = call.ranks - 1, n = static_cast<double>(call.bytes.count);
    if (call.shares.empty()) return hockney(others, others * n / call.ranks, 0, cost_at(costs, 0));
    const double sum = std::accumulate(call.shares.begin(), call.shares.end(), 0.0);
    const double most = *std::max_element(call.shares.begin(), call.shares.end()) / sum;
    const double least = *std::min_element(call.shares.begin(), call.shares.end()) / sum;
    return hockney(others, n * std::max(others * most, 1 - least), 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks, .rounds = call.ranks - 1, .lag = 0};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t to = (rank + round + 1) % call.ranks;
    out.push_back({.to = to, .bytes = block(call, to)});
  }

 private:
  static Bytes block(const Call& call, std::uint32_t to) {
    if (call.shares.empty()) return part_of(call.bytes, call.ranks, to);
    const double sum = std::accumulate(call.shares.begin(), call.shares.end(), 0.0);
    const double bytes = static_cast<double>(call.bytes.count) * call.shares[to] / sum;
    return Bytes{std::llround(bytes)};
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_pairwise_algorithm() { return std::make_unique<Pairwise>(); }

}  // namespace foretrace
