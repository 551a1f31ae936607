#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

class FullyConnected final : public Topology {
 public:
  void describe(Fields& fields) override { describe_cable(fields); }

  void wire(Wiring& wiring) const override {
    const auto& ports = wiring.ports();
    for (std::size_t i = 0; i < ports.size(); ++i) {
      for (std::size_t j = i + 1; j < ports.size(); ++j)
        wiring.connect(ports[i], ports[j], cable());
    }
  }
};

}  // namespace

std::unique_ptr<Topology> make_fully_connected() { return std::make_unique<FullyConnected>(); }

}  // namespace foretrace
