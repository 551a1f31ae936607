// Sends the same messages through ns-3 and through our packet simulation: an incast and a ring of
// hosts around one switch, by TCP, with buffers that lose nothing. Prints the times and rates of
// both, and fails if times differ by more than a tenth. Built only where ns-3 is installed.
//
//     ns3_check [senders]      8 by default

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "network/packet/packet_run.h"
#include "outcome.h"

namespace ns3_check {
namespace {

Outcome by_us(std::uint32_t hosts, const Pairs& pairs) {
  using namespace foretrace;
  PacketSettings settings;
  settings.slice = {kPayload};
  settings.header = {kHeaders};
  settings.buffer = {0};
  settings.trains = false;
  PacketPaths paths = uniform_paths(hosts, {1us, Bandwidth{kBitsPerSecond / 8}, 0});
  for (std::uint32_t i = 0; i < hosts; ++i) paths.links[2 * i + 1].latency = 1us;
  std::vector<TimedMessage> messages;
  for (const auto& [from, to] : pairs)
    messages.push_back({{.from = from, .to = to, .bytes = {kBytes}}, 0ns});
  const double begin = now();
  const PacketRun run = run_messages(paths, settings, messages);
  return {static_cast<double>(run.expansion.time.count()) * 1e-9, now() - begin,
          static_cast<double>(run.counts.hops)};
}

bool compare(const char* name, std::uint32_t hosts, const Pairs& pairs) {
  const Outcome theirs = by_ns3(hosts, pairs), ours = by_us(hosts, pairs);
  const double error = ours.seconds / theirs.seconds - 1;
  std::printf("%-10s ns-3 %.3f ms, ours %.3f ms (%+.1f %%); %.2f and %.2f M hops/s, %.1f x\n", name,
              theirs.seconds * 1e3, ours.seconds * 1e3, 100 * error,
              theirs.hops / theirs.wall / 1e6, ours.hops / ours.wall / 1e6,
              theirs.wall / ours.wall);
  return std::abs(error) <= .1;
}

}  // namespace
}  // namespace ns3_check

int main(int argc, char** argv) {
  using namespace ns3_check;
  const auto senders = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 8);
  Pairs incast, ring;
  for (std::uint32_t i = 1; i <= senders; ++i) incast.emplace_back(i, 0);
  for (std::uint32_t i = 0; i < senders; ++i) ring.emplace_back(i, (i + 1) % senders);
  const bool same_incast = compare("incast", senders + 1, incast);
  const bool same_ring = compare("ring", senders, ring);
  return same_incast && same_ring ? 0 : 1;
}
