#include "network/packet/train.h"

#include <algorithm>

namespace foretrace {

Train::Train(const Ports& ports, std::span<const std::span<const std::uint32_t>> paths,
             const Shape& shape, Picoseconds begun)
    : shape_(shape),
      paths_(static_cast<std::uint32_t>(paths.size())),
      hops_(paths[0].size()),
      begun_(begun) {
  for (const auto& path : paths) {
    Picoseconds before = 0, last_before = 0, slowest = 0, latency = 0;
    fits_ = fits_ && path.size() == hops_;
    for (std::size_t i = 0; i < path.size() && fits_; ++i) {
      const Picoseconds time = ports.time_on(path[i], shape.whole);
      // A link that not all paths share must be no slower than the links before it.
      const bool is_shared = std::ranges::all_of(
          paths, [&](const auto& other) { return i < other.size() && other[i] == path[i]; });
      if (is_shared) slowest = std::max(slowest, time);
      fits_ = fits_ && time <= slowest;
      hops_of_.push_back({path[i], time, ports.time_on(path[i], shape.last), ports.latency(path[i]),
                          before, last_before, slowest});
      before += time + ports.latency(path[i]);
      last_before += hops_of_.back().last_time + ports.latency(path[i]);
      latency += ports.latency(path[i]);
    }
    fits_ =
        fits_ && (whole_time_ == 0 || whole_time_ == before) && (back_ == 0 || back_ == latency);
    whole_time_ = before, back_ = latency, slowest_ = slowest;
  }
  fits_ = fits_ && static_cast<Picoseconds>(shape.window) * slowest_ >= round_trip();
}

Picoseconds Train::enters(std::uint32_t k) const {
  if (k < shape_.window) return begun_;
  return begun_ + static_cast<Picoseconds>(k - shape_.window) * slowest_ + round_trip();
}

Picoseconds Train::starts(std::uint32_t k, std::size_t hop) const {
  if (k + 1 == shape_.packets) return last_starts(hop);
  const Hop& at = hop_of(k, hop);
  return std::max(begun_ + static_cast<Picoseconds>(k) * at.slowest, enters(k)) + at.before;
}

/// The last packet follows the packet before it, which has full size.
Picoseconds Train::last_starts(std::size_t hop) const {
  const std::uint32_t k = shape_.packets - 1;
  Picoseconds start = enters(k);
  for (std::size_t i = 0; i <= hop; ++i) {
    if (i > 0) {
      const Hop& before = hop_of(k, i - 1);
      start += before.last_time + before.latency;
    }
    const Hop& at = hop_of(k, i);
    if (k > 0 && at.link == hop_of(k - 1, i).link) start = std::max(start, leaves(k - 1, i));
  }
  return start;
}

Picoseconds Train::leaves(std::uint32_t k, std::size_t hop) const {
  const Hop& at = hop_of(k, hop);
  return starts(k, hop) + (k + 1 == shape_.packets ? at.last_time : at.time);
}

Picoseconds Train::arrives(std::uint32_t k) const {
  return leaves(k, hops_ - 1) + hop_of(k, hops_ - 1).latency;
}

std::uint32_t Train::acknowledged_by(Picoseconds now) const {
  const Picoseconds first = begun_ + whole_time_ + back_;
  if (now < first || shape_.packets < 2) return 0;
  const auto count = (now - first) / slowest_ + 1;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(count, shape_.packets - 1));
}

}  // namespace foretrace
