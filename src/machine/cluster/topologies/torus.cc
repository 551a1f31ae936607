#include <charconv>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

/// The first dimension changes fastest: in a shape of 4x2, port 5 is the second one of the second
/// row.
class Torus final : public Topology {
 public:
  void describe(Fields& fields) override {
    fields.text("shape", shape_, "Ports along each dimension, such as 4x4x4");
    fields.flag("wrap", wrap_, "Close each line of ports into a ring");
    describe_cable(fields);
  }

  void check() const override { lengths(); }
  bool ports_relay() const override { return true; }

  std::int64_t size() const override {
    std::int64_t all = 1;
    for (const std::size_t length : lengths()) all *= static_cast<std::int64_t>(length);
    return all;
  }

  void wire(Wiring& wiring) const override {
    const auto& ports = wiring.ports();
    if (static_cast<std::int64_t>(ports.size()) != size()) {
      throw Error(fmt::format("shape: must have {} ports, as many as there are, got {}",
                              ports.size(), shape_));
    }
    std::size_t stride = 1;
    for (const std::size_t length : lengths()) {
      for (std::size_t i = 0; i < ports.size(); ++i) connect_next(wiring, i, stride, length);
      stride *= length;
    }
  }

 private:
  void connect_next(Wiring& wiring, std::size_t i, std::size_t stride, std::size_t length) const {
    const std::size_t along = i / stride % length;
    const bool last = along + 1 == length;
    if (last && (!wrap_ || length < 3)) return;  // Two ports share one cable, not two.
    const std::size_t next = last ? i - along * stride : i + stride;
    wiring.connect(wiring.ports()[i], wiring.ports()[next], cable());
  }

  std::vector<std::size_t> lengths() const {
    std::vector<std::size_t> found;
    const char* at = shape_.data();
    const char* end = at + shape_.size();
    for (std::size_t all = 1;; ++at) {
      std::size_t length = 0;
      const auto parsed = std::from_chars(at, end, length);
      at = parsed.ptr;
      constexpr std::size_t kMax = 1'000'000;
      const bool good = parsed.ec == std::errc{} && length > 0 && length <= kMax / all;
      if (!good || (at != end && *at != 'x'))
        throw Error(fmt::format(
            "shape: must be numbers with an x between them, such as 4x4x4, got \"{}\"", shape_));
      all *= length;
      found.push_back(length);
      if (at == end) return found;
    }
  }

  std::string shape_ = "4x4";
  bool wrap_ = true;
};

}  // namespace

std::unique_ptr<Topology> make_torus() { return std::make_unique<Torus>(); }

}  // namespace foretrace
