#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

/// J. Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008. Switches of a
/// group are all joined with each other. Between each two groups there are `global_cables`, which
/// begin at different switches in turn. Routes are minimal: local, global, local. Real ones may
/// also go through a third group when a global cable is busy (UGAL); that is not modelled.
class Dragonfly final : public Topology {
 public:
  void describe(Fields& fields) override {
    describe_cable(fields);
    fields.integer("ports", ports_, "Ports of a switch that lead to hosts", 1, kMostParts);
    fields.integer("switches", switches_, "Switches of a group", 1, 1000);
    fields.bandwidth("local_bandwidth", local_.bandwidth, "Between two switches of a group");
    fields.time("local_latency", local_.latency, "Between two switches of a group", 0ns);
    fields.integer("global_cables", global_cables_, "Cables between two groups", 1, 1000);
    fields.bandwidth("global_bandwidth", global_.bandwidth, "Of each cable between two groups");
    fields.time("global_latency", global_.latency, "Of each cable between two groups", 0ns);
  }

  void wire(Wiring& wiring) const override {
    const auto ports = static_cast<std::size_t>(ports_);
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < wiring.ports().size(); ++i) {
      if (i % ports == 0) all.push_back(wiring.add_switch("router", all.size()));
      wiring.connect(wiring.ports()[i], all.back(), cable());
    }
    const auto in_group = static_cast<std::size_t>(switches_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size() && j / in_group == i / in_group; ++j)
        wiring.connect(all[i], all[j], local_);
    }
    const std::size_t groups = (all.size() + in_group - 1) / in_group;
    for (std::size_t i = 0; i < groups; ++i) {
      for (std::size_t j = i + 1; j < groups; ++j) join(wiring, all, i, j);
    }
  }

 private:
  void join(Wiring& wiring, const std::vector<std::uint32_t>& all, std::size_t one,
            std::size_t other) const {
    // Group i takes its cables to group j from other switches than those to group j + 1.
    const auto at = [&](std::size_t group, std::size_t to, std::size_t cable) {
      const std::size_t first = group * static_cast<std::size_t>(switches_);
      const std::size_t count = std::min(all.size() - first, static_cast<std::size_t>(switches_));
      return all[first + (to * static_cast<std::size_t>(global_cables_) + cable) % count];
    };
    for (std::size_t i = 0; i < static_cast<std::size_t>(global_cables_); ++i)
      wiring.connect(at(one, other, i), at(other, one, i), global_);
  }

  std::int64_t ports_ = 16, switches_ = 32, global_cables_ = 4;
  Cable local_{.bandwidth = {25e9}, .latency = 300ns},
      global_{.bandwidth = {25e9}, .latency = 800ns};
};

}  // namespace

std::unique_ptr<Topology> make_dragonfly() { return std::make_unique<Dragonfly>(); }

}  // namespace foretrace
