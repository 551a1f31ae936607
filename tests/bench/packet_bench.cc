// Packets: how many hops a second of CPU time are simulated where packets compete, and how long
// large networks take.
//
//     packet_bench [hosts]      144 by default; prints one line for each case

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "arguments.h"
#include "network/packet/packet_run.h"

namespace foretrace {
namespace {

constexpr LinkCost kCable{2us, Bandwidth{12.5e9}, 0};

template <class Run>
void time_case(const std::string& name, const Run& run) {
  const std::clock_t begin = std::clock();
  const PacketRun ran = run();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const PacketCounts& counts = ran.counts;
  std::printf("%-34s %8.3f s %8.2f M hops, %5.1f %% in trains %8.2f M hops/s\n", name.c_str(),
              seconds, static_cast<double>(counts.hops) / 1e6,
              100 * static_cast<double>(counts.in_trains) /
                  static_cast<double>(counts.sent > 0 ? counts.sent : 1),
              static_cast<double>(counts.hops) / 1e6 / seconds);
}

PacketSettings by(const std::string& transport) {
  PacketSettings settings;
  settings.transport = transport;
  settings.slice = {1500};
  settings.loss = .01;
  settings.pull_loss = .005;
  return settings;
}

PacketRun incast(const std::string& transport) {
  std::vector<TimedMessage> messages;
  for (std::uint32_t i = 1; i <= 64; ++i) {
    messages.push_back(
        {{.from = i, .to = 0, .bytes = {3'000'000}, .loss = .01, .unimportant = .5}, 0ns});
  }
  return run_messages(uniform_paths(65, kCable), by(transport), messages);
}

/// All-reduce of ResNet-50's gradients, with the parameters spread over all hosts.
PacketRun servers(std::uint32_t hosts, const std::string& transport) {
  const Network network(
      find_cluster("fat_tree:hosts=" + std::to_string(hosts) +
                   ",ports=16,spines=4,leaves=9,bandwidth=12.5GB/s,latency=500ns"));
  const auto algorithm = find_algorithm("colocated");
  PacketSettings settings = by(transport);
  settings.slice = {9000};
  settings.spray = transport == "bounded";
  return simulate_packets(paths_of(network, 1), settings, *algorithm,
                          {.ranks = hosts, .bytes = {102'000'000}}, {&kCable, 1});
}

/// Each rank sends to the same rank of the next host, so every message has its links to itself.
PacketRun neighbors(std::uint32_t ranks) {
  const Network network(find_cluster("dgx-h100", ranks));
  std::vector<TimedMessage> messages;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    messages.push_back({{.from = i, .to = (i + 8) % ranks, .bytes = {100'000'000}}, 0ns});
  }
  // One rank in 200 shares a NIC with another message.
  for (std::uint32_t i = 0; i < ranks; i += 200)
    messages.push_back({{.from = i, .to = (i + 16) % ranks, .bytes = {10'000'000}}, 50us});
  PacketSettings settings = by("reliable");
  settings.slice = {9000};
  return run_messages(paths_of(network, 1), settings, messages);
}

/// An all-reduce of all ranks in which no two messages share a link, beside one of 64 ranks with
/// parameter servers, whose cables (1 in 256) queue.
PacketRun crowded(std::uint32_t ranks) {
  const auto wide = find_algorithm("halving_doubling"), narrow = find_algorithm("colocated");
  const LinkCosts costs(&kCable, 1);
  const std::vector<PacketCollective> both = {
      {.rounds = {.algorithm = wide.get(),
                  .call = {.ranks = ranks, .bytes = {100'000'000}},
                  .costs = costs}},
      {.rounds = {.algorithm = narrow.get(),
                  .call = {.ranks = std::min(64U, ranks), .bytes = {100'000'000}},
                  .costs = costs}}};
  PacketSettings settings = by("dctcp");
  settings.slice = {9000};
  std::vector<CollectiveTimes> times;
  return simulate_packets(uniform_paths(ranks, kCable), settings, both, times);
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  using namespace foretrace;
  const auto hosts = bench::Arguments(argc, argv, "[hosts]").number<std::uint32_t>(1, 144);
  for (const char* transport : {"reliable", "dctcp", "pfabric", "bounded"})
    time_case(std::string("incast of 64, ") + transport, [&] { return incast(transport); });
  for (const char* transport : {"dctcp", "bounded"}) {
    time_case(std::to_string(hosts) + " hosts with servers, " + transport,
              [&] { return servers(hosts, transport); });
  }
  const std::uint32_t many = hosts == 144 ? 16'384 : hosts;
  time_case(std::to_string(many) + " ranks, neighbors", [&] { return neighbors(many); });
  time_case(std::to_string(many) + " ranks, all-reduce", [&] { return crowded(many); });
}
