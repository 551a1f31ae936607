#include <algorithm>

#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxPorts = 1'000'000;

std::size_t count(std::int64_t value) { return static_cast<std::size_t>(value); }
std::size_t divided_up(std::size_t value, std::size_t by) { return (value + by - 1) / by; }

/// Each leaf has a cable to each spine of its pod, and each spine a cable to each core of its
/// plane:
///
///     plane     core0.0 core0.1 ...      core1.0 ...
///                  |   \  /
///     pod       spine0.0  spine0.1 ...   spine1.0 ...
///                  |    \/   |
///     hosts      leaf0     leaf1 ...
///
/// With rails, port r of a host shares a leaf with port r of other hosts, so that devices of the
/// same index are one switch apart. Bandwidth is conserved upwards, divided by the oversubscription
/// at the leaves. A cable upwards stands for as many cables as its share needs.
class FatTree final : public Topology {
 public:
  void describe(Fields& fields) override {
    describe_cable(fields);
    fields.integer("ports", ports_, "Ports of a leaf switch that lead to hosts", 1, kMaxPorts);
    fields.integer("spines", spines_, "Spine switches of a pod", 1, kMaxPorts);
    fields.integer("leaves", leaves_,
                   "Leaf switches of a pod; a machine with more has cores above the spines", 1,
                   kMaxPorts);
    fields.integer("cores", cores_, "Cores above each spine", 1, kMaxPorts);
    fields.number("oversubscription", oversubscription_,
                  "Ratio of a leaf's bandwidth to hosts to its bandwidth to spines", 1);
    fields.time("uplink_latency", uplink_latency_, "Latency of a cable between switches", 0ns);
    fields.flag(
        "rails", rails_,
        "Give the first NICs of all hosts their own switches, the second NICs theirs, and so on");
  }

  void wire(Wiring& wiring) const override {
    const std::vector<std::uint32_t> leaves = add_leaves(wiring);
    if (leaves.size() < 2) return;
    const std::size_t pods = divided_up(leaves.size(), count(leaves_));
    std::vector<std::vector<std::uint32_t>> planes(count(spines_));
    for (std::size_t pod = 0; pod < pods; ++pod) {
      for (std::size_t i = 0; i < planes.size(); ++i)
        planes[i].push_back(wiring.add_switch("spine", pod * planes.size() + i));
    }
    const Cable up =
        upwards(static_cast<double>(ports_) / oversubscription_ / static_cast<double>(spines_));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      for (const auto& plane : planes) wiring.connect(leaves[i], plane[i / count(leaves_)], up);
    }
    if (pods > 1) add_cores(wiring, planes, up.bandwidth);
  }

  std::vector<FabricTier> tiers(std::int64_t per_host) const override {
    if (oversubscription_ == 1) return {};
    const std::int64_t hosts = rails_ ? ports_ : std::max<std::int64_t>(1, ports_ / per_host);
    return {{hosts, 1 / oversubscription_}};
  }

 private:
  Cable upwards(double cables) const {
    Cable up = cable();
    up.bandwidth.bytes_per_second *= cables;
    up.latency = uplink_latency_;
    return up;
  }

  std::vector<std::uint32_t> add_leaves(Wiring& wiring) const {
    const std::size_t rails = rails_ ? wiring.per_host() : 1;
    const std::size_t ports = wiring.ports().size();
    const std::size_t groups = divided_up(ports, rails * count(ports_));
    std::vector<std::uint32_t> leaves;
    for (std::size_t i = 0; i < groups * rails; ++i) leaves.push_back(wiring.add_switch("leaf", i));
    for (std::size_t i = 0; i < ports; ++i) {
      const std::size_t group = i / (rails * count(ports_));
      wiring.connect(wiring.ports()[i], leaves[group * rails + i % rails], cable());
    }
    return leaves;
  }

  void add_cores(Wiring& wiring, const std::vector<std::vector<std::uint32_t>>& planes,
                 Bandwidth uplink) const {
    Cable up = upwards(1);
    up.bandwidth.bytes_per_second =
        uplink.bytes_per_second * static_cast<double>(leaves_) / static_cast<double>(cores_);
    std::size_t number = 0;
    for (const auto& plane : planes) {
      for (std::int64_t core = 0; core < cores_; ++core) {
        const std::uint32_t top = wiring.add_switch("core", number++);
        for (const std::uint32_t spine : plane) wiring.connect(spine, top, up);
      }
    }
  }

  std::int64_t ports_ = 32, spines_ = 32, leaves_ = 64, cores_ = 32;
  double oversubscription_ = 1;
  Nanoseconds uplink_latency_{500};
  bool rails_ = false;
};

}  // namespace

std::unique_ptr<Topology> make_fat_tree() { return std::make_unique<FatTree>(); }

}  // namespace foretrace
