#include "report/prediction/kineto_layout.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>

namespace foretrace {
namespace {

constexpr std::int64_t kProcessesPerRank = 10'000;
constexpr std::int64_t kHostProcess = 9'000;   ///< Devices have their ordinals.
constexpr std::int64_t kNewStream = 1'000;     ///< Lanes that are no recorded stream.
constexpr std::int64_t kOverflow = 1'000'000;  ///< Added for each further row of a lane.
constexpr std::int64_t kWaits = 100'000'000;

/// 7 of "stream 7" and of "rank 0 stream 7".
std::optional<std::int64_t> number_at_end(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  if (begin == name.size() || name.size() - begin > 5) return {};
  std::int64_t number = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return number;
}

}  // namespace

bool is_host_lane(const Lane& lane) {
  return lane.kind == LaneKind::host_thread || lane.kind == LaneKind::worker ||
         lane.kind == LaneKind::origin || lane.kind == LaneKind::storage;
}

KinetoLayout::KinetoLayout(const Graph& graph)
    : places_(graph.lane_count()),
      devices_(graph.lane_count()),
      rows_(graph.lane_count()),
      wait_rows_(graph.lane_count()) {
  std::int32_t first_rank = 0;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const std::int32_t rank = graph.lane(static_cast<LaneId>(i)).rank;
    first_rank = i == 0 ? rank : std::min(first_rank, rank);
  }
  std::set<std::pair<std::int64_t, std::int64_t>> taken;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(static_cast<LaneId>(i));
    const auto number = static_cast<std::int64_t>(i);
    devices_[i] = std::max<std::int64_t>(lane.device, 0);
    Track& place = places_[i];
    place.process = kProcessesPerRank * (lane.rank - first_rank) +
                    (is_host_lane(lane) ? kHostProcess : devices_[i]);
    place.thread = kNewStream + number;
    const auto known =
        is_host_lane(lane) ? std::optional<std::int64_t>() : number_at_end(lane.name);
    if (known && taken.insert({place.process, *known}).second) place.thread = *known;
    taken.insert({place.process, place.thread});
  }
}

std::size_t KinetoLayout::room(Rows& rows, Nanoseconds start, Nanoseconds finish) {
  const auto free =
      std::find_if(rows.begin(), rows.end(), [&](Nanoseconds until) { return until <= start; });
  const auto row = static_cast<std::size_t>(free - rows.begin());
  if (free == rows.end()) rows.push_back(finish);
  rows[row] = finish;
  return row;
}

Track KinetoLayout::track_for(LaneId lane, Nanoseconds start, Nanoseconds finish) {
  Track track = places_[index(lane)];
  track.thread += kOverflow * static_cast<std::int64_t>(room(rows_[index(lane)], start, finish));
  return track;
}

Track KinetoLayout::wait_track_for(LaneId lane, Nanoseconds start, Nanoseconds finish) {
  Track track = places_[index(lane)];
  track.thread +=
      kWaits + kOverflow * static_cast<std::int64_t>(room(wait_rows_[index(lane)], start, finish));
  return track;
}

void KinetoLayout::write_names(KinetoFile& file, const Graph& graph) const {
  std::set<std::int64_t> named;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(static_cast<LaneId>(i));
    if (rows_[i].empty() && wait_rows_[i].empty()) continue;
    const Track place = places_[i];
    if (named.insert(place.process).second) {
      const std::string what =
          is_host_lane(lane) ? "host" : "device " + std::to_string(devices_[i]);
      file.name_process(place.process, "rank " + std::to_string(lane.rank) + " " + what,
                        2 * place.process + (is_host_lane(lane) ? -kProcessesPerRank : 1));
    }
    const auto position = static_cast<std::int64_t>(10 * i);
    const auto name_rows = [&](const Rows& rows, std::int64_t offset, const std::string& label) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const Track track{place.process,
                          place.thread + offset + kOverflow * static_cast<std::int64_t>(row)};
        file.name_thread(track, row == 0 ? label : label + " (overlapping)",
                         position + (offset > 0 ? 5 : 0));
      }
    };
    name_rows(rows_[i], 0, lane.name);
    name_rows(wait_rows_[i], kWaits, lane.name + " (waits)");
  }
}

}  // namespace foretrace
