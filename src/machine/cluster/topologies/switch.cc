#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

class Switch final : public Topology {
 public:
  void describe(Fields& fields) override { describe_cable(fields); }

  void wire(Wiring& wiring) const override {
    const std::uint32_t middle = wiring.add_switch("switch", 0);
    for (const std::uint32_t port : wiring.ports()) wiring.connect(port, middle, cable());
  }
};

}  // namespace

std::unique_ptr<Topology> make_switch() { return std::make_unique<Switch>(); }

}  // namespace foretrace
