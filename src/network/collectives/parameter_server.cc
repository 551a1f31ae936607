// There are w workers with n bytes of gradients each, and servers that each hold a part of the
// parameters:
//
//     parameter_server    s hosts of their own    2 max(w/s, 1) n beta        push, then pull
//     colocated           on all w hosts          2 (w-1)/w n beta            push, then pull
//     byteps              on w and k more hosts   2 w (w-1) / (w^2 + k w - 2 k) n beta
//
// each with 2 alpha. BytePS (Jiang et al., OSDI'20, section 4.1) gives each worker's host a share a
// of the parameters, and each additional host a share b, so that all ports carry the same load
// while pushes and pulls of different chunks overlap:
//
//     1 + a (w - 2) = b w,  a w + b k = 1

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kTensorPieces = 256;  ///< Pieces of a tensor in BytePS; our choice.

std::string refused(const Call& call) {
  const std::string served = unsupported_operation(call.operation, {Operation::all_reduce});
  if (!served.empty()) return served;
  return call.ranks >= 2 ? "" : fmt::format("needs at least 2 ranks, got {}", call.ranks);
}

class SeparateServers final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string reason = refused(call);
    if (!reason.empty() || call.servers > 0) return reason;
    return "needs at least 1 server";
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double n = static_cast<double>(call.bytes.count);
    return hockney(2, 2 * std::max(n * call.ranks / call.servers, n), 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks + call.servers,
            .rounds = call.servers + call.ranks,
            .lag = 0,
            .second_phase = call.servers};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t w = call.ranks, s = call.servers;
    const bool pulls = round >= s, serves = rank >= w;
    if (pulls != serves) return;
    const std::uint32_t server = pulls ? rank - w : (rank + round) % s;
    const std::uint32_t to = pulls ? (server + round - s) % w : w + server;
    out.push_back(
        {.to = to, .bytes = part_of(call.bytes, s, server), .reduces = !pulls, .streams = true});
  }
};

class Colocated final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override { return refused(call); }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double others = call.ranks - 1;
    return hockney(2, 2 * others * static_cast<double>(call.bytes.count) / call.ranks, 0,
                   cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks,
            .rounds = 2 * (call.ranks - 1),
            .lag = 0,
            .second_phase = call.ranks - 1};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t w = call.ranks;
    const bool pulls = round >= w - 1;
    const std::uint32_t to = (rank + 1 + (pulls ? round - (w - 1) : round)) % w;
    out.push_back({.to = to,
                   .bytes = part_of(call.bytes, w, pulls ? rank : to),
                   .reduces = !pulls,
                   .streams = true});
  }
};

class BytePs final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string reason = refused(call);
    if (!reason.empty() || call.servers <= call.ranks) return reason;
    return fmt::format("needs at most as many servers as ranks, {}, got {}", call.ranks,
                       call.servers);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double w = call.ranks, k = call.servers;
    const double load = 2 * w * (w - 1) / (w * w + k * w - 2 * k);
    return hockney(2, load * static_cast<double>(call.bytes.count), 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    const std::uint32_t others = call.ranks + call.servers - 1;
    return {.endpoints = others + 1,
            .rounds = (kTensorPieces + 2) * others,
            .chunks = kTensorPieces,
            .lag = others};
  }

  /// In round i of a chunk, a rank sends to the rank i + 1 places after it. A chunk is pulled two
  /// laps after it was pushed.
  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t others = plan.endpoints - 1, lap = round / others, w = call.ranks;
    const std::uint32_t to = (rank + 1 + round % others) % plan.endpoints;
    if (lap < plan.chunks && rank < w) add(call, plan, to, to, lap, true, out);
    if (lap >= 2 && to < w) add(call, plan, rank, to, lap - 2, false, out);
  }

 private:
  static void add(const Call& call, const Plan& plan, std::uint32_t server, std::uint32_t to,
                  std::uint32_t chunk, bool reduces, std::vector<Message>& out) {
    const Bytes bytes = part_of(shard(call, server), plan.chunks, chunk);
    if (bytes.count == 0) return;
    out.push_back({.to = to, .bytes = bytes, .reduces = reduces, .streams = true});
  }

  /// The shards are whole bytes and add up to the size of the tensor.
  static Bytes shard(const Call& call, std::uint32_t server) {
    return Bytes{end_of(call, server + 1) - end_of(call, server)};
  }
  static std::int64_t end_of(const Call& call, std::uint32_t servers) {
    const double w = call.ranks, k = call.servers, n = static_cast<double>(call.bytes.count);
    const double a = (w - k) / (w * w + k * w - 2 * k), b = k > 0 ? (1 - w * a) / k : 0;
    const double share = a * std::min<double>(servers, w) + b * std::max(0.0, servers - w);
    return std::llround(share * n);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_parameter_server_algorithm() {
  return std::make_unique<SeparateServers>();
}
std::unique_ptr<Algorithm> make_colocated_algorithm() { return std::make_unique<Colocated>(); }
std::unique_ptr<Algorithm> make_byteps_algorithm() { return std::make_unique<BytePs>(); }

}  // namespace foretrace
