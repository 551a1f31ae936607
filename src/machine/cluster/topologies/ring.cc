#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

class Ring final : public Topology {
 public:
  void describe(Fields& fields) override { describe_cable(fields); }
  bool ports_relay() const override { return true; }

  void wire(Wiring& wiring) const override {
    const auto& ports = wiring.ports();
    for (std::size_t i = 1; i < ports.size(); ++i) wiring.connect(ports[i - 1], ports[i], cable());
    if (ports.size() > 2) wiring.connect(ports.back(), ports.front(), cable());
  }
};

}  // namespace

std::unique_ptr<Topology> make_ring() { return std::make_unique<Ring>(); }

}  // namespace foretrace
