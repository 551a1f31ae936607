#include <algorithm>

#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxParts = 1'000'000;

/// J. Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008. All switches of
/// a group are connected with each other. Each pair of groups has `global_cables` cables, which
/// begin at different switches in turn. Routes are minimal: local, global, local.
///
/// Real switches also detour through other switches of the group when a cable is busy (UGAL),
/// packet by packet. With `adaptive`, all cables of a switch act as one: a node stands for the
/// cables inside the group, and each switch has one link to it with the bandwidth of all its
/// cables. The load that detours put on other cables is not modelled, nor are detours through a
/// third group.
///
///     minimal    router0 --- router1         adaptive    router0 === group0 === router1
class Dragonfly final : public Topology {
 public:
  void describe(Fields& fields) override {
    describe_cable(fields);
    fields.integer("ports", ports_, "Ports of a switch that lead to hosts", 1, kMaxParts);
    fields.integer("switches", switches_, "Switches of a group", 1, 1000);
    fields.bandwidth("local_bandwidth", local_.bandwidth,
                     "Bandwidth between two switches of a group");
    fields.time("local_latency", local_.latency, "Latency between two switches of a group", 0ns);
    fields.integer("global_cables", global_cables_, "Cables between two groups", 1, 1000);
    fields.bandwidth("global_bandwidth", global_.bandwidth,
                     "Bandwidth of each cable between two groups");
    fields.time("global_latency", global_.latency, "Latency of each cable between two groups", 0ns);
    fields.flag("adaptive", adaptive_, "Traffic takes all cables of a group, not the shortest way");
  }

  void wire(Wiring& wiring) const override {
    const auto ports = static_cast<std::size_t>(ports_);
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < wiring.ports().size(); ++i) {
      if (i % ports == 0) all.push_back(wiring.add_switch("router", all.size()));
      wiring.connect(wiring.ports()[i], all.back(), cable());
    }
    if (all.size() < 2) return;
    if (adaptive_)
      join_adaptive(wiring, all);
    else
      join_minimal(wiring, all);
  }

 private:
  std::size_t groups_of(std::size_t all) const {
    const auto in_group = static_cast<std::size_t>(switches_);
    return (all + in_group - 1) / in_group;
  }

  void join_adaptive(Wiring& wiring, const std::vector<std::uint32_t>& all) const {
    std::vector<std::uint32_t> groups;
    for (std::size_t i = 0; i < groups_of(all.size()); ++i)
      groups.push_back(wiring.add_switch("group", i));
    Cable up = local_, across = global_;
    const double cables = static_cast<double>(std::max<std::int64_t>(1, switches_ - 1));
    const double own_global = static_cast<double>(global_cables_) / static_cast<double>(switches_) *
                              static_cast<double>(groups.size() - 1);
    up.bandwidth.bytes_per_second =
        cables * up.bandwidth.bytes_per_second + own_global * across.bandwidth.bytes_per_second;
    up.latency /= 2;  // A path through the group takes half of a local cable on either side.
    for (std::size_t i = 0; i < all.size(); ++i)
      wiring.connect(all[i], groups[i / static_cast<std::size_t>(switches_)], up);
    across.bandwidth.bytes_per_second *= static_cast<double>(global_cables_);
    across.latency += local_.latency;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t j = i + 1; j < groups.size(); ++j)
        wiring.connect(groups[i], groups[j], across);
    }
  }

  void join_minimal(Wiring& wiring, const std::vector<std::uint32_t>& all) const {
    const auto in_group = static_cast<std::size_t>(switches_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size() && j / in_group == i / in_group; ++j)
        wiring.connect(all[i], all[j], local_);
    }
    const std::size_t groups = groups_of(all.size());
    for (std::size_t i = 0; i < groups; ++i) {
      for (std::size_t j = i + 1; j < groups; ++j) join(wiring, all, i, j);
    }
  }

  void join(Wiring& wiring, const std::vector<std::uint32_t>& all, std::size_t a,
            std::size_t b) const {
    // Group i uses different switches for its cables to group j and to group j + 1.
    const auto at = [&](std::size_t group, std::size_t to, std::size_t cable) {
      const std::size_t first = group * static_cast<std::size_t>(switches_);
      const std::size_t count = std::min(all.size() - first, static_cast<std::size_t>(switches_));
      return all[first + (to * static_cast<std::size_t>(global_cables_) + cable) % count];
    };
    for (std::size_t i = 0; i < static_cast<std::size_t>(global_cables_); ++i)
      wiring.connect(at(a, b, i), at(b, a, i), global_);
  }

  bool adaptive_ = false;
  std::int64_t ports_ = 16, switches_ = 32, global_cables_ = 4;
  Cable local_{.bandwidth = {25e9}, .latency = 300ns},
      global_{.bandwidth = {25e9}, .latency = 800ns};
};

}  // namespace

std::unique_ptr<Topology> make_dragonfly() { return std::make_unique<Dragonfly>(); }

}  // namespace foretrace
