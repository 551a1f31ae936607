#include <charconv>
#include <fmt/core.h>
#include <limits>

#include "base/fields/assignments.h"
#include "foretrace/error.h"
#include "machine/cluster/topologies/topology.h"

namespace foretrace {
namespace {

/// The levels 2*ring, 4*switch connect neighbors 0 and 1, 2 and 3, ... by rings, and then the ports
/// with the same place in their ring, 0, 2, 4, 6 and 1, 3, 5, 7, by one switch each.
class Hierarchical final : public Topology {
 public:
  void describe(Fields& fields) override {
    fields.texts("levels", levels_,
                 "Number of ports and topology of each level, innermost first, such as "
                 "8*switch:bandwidth=400GB/s,latency=900ns");
  }

  void check() const override { levels(); }
  bool ports_relay() const override { return true; }

  std::int64_t size() const override {
    std::int64_t all = 1;
    for (const Level& level : levels()) all *= static_cast<std::int64_t>(level.size);
    return all;
  }

  void wire(Wiring& wiring) const override {
    const std::size_t ports = wiring.ports().size();
    if (ports != static_cast<std::size_t>(size())) {
      throw Error(
          fmt::format("levels: must join {} ports, as many as there are, got {}", ports, size()));
    }
    std::size_t stride = 1;
    for (const Level& level : levels()) {
      std::size_t number = 0;
      for (std::size_t first = 0; first < ports; ++first) {
        if (first / stride % level.size != 0) continue;
        std::vector<std::uint32_t> joined;
        for (std::size_t i = 0; i < level.size; ++i)
          joined.push_back(wiring.ports()[first + i * stride]);
        Wiring part = wiring.part(std::move(joined), fmt::format("level{}.{}/", stride, number++));
        level.topology->wire(part);
      }
      stride *= level.size;
    }
  }

 private:
  struct Level {
    std::size_t size = 0;
    std::unique_ptr<Topology> topology;
  };

  std::vector<Level> levels() const {
    std::vector<Level> found;
    std::size_t all = 1;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      within(fmt::format("levels[{}]", i), [&] {
        found.push_back(read_level(levels_[i], 1'000'000 / all));
        all *= found.back().size;
      });
    }
    if (found.empty()) throw Error("levels: must be given, such as 8*switch");
    return found;
  }

  static Level read_level(std::string_view text, std::size_t most) {
    Level level;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, level.size);
    if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '*' || level.size == 0 ||
        level.size > most) {
      throw Error(fmt::format(
          "must be a number of ports and a topology, such as 8*switch:bandwidth=50GB/s, got \"{}\"",
          text));
    }
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr + 1 - text.data()));
    const std::size_t colon = std::min(text.find(':'), text.size());
    if (text.substr(0, colon) == "hierarchical") throw Error("must not be hierarchical itself");
    level.topology = make_topology(text.substr(0, colon));
    if (colon < text.size()) read_assigned(text.substr(colon + 1), *level.topology);
    return level;
  }

  std::vector<std::string> levels_ = {"8*switch"};
};

}  // namespace

std::unique_ptr<Topology> make_hierarchical() { return std::make_unique<Hierarchical>(); }

}  // namespace foretrace
