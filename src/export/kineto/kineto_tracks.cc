#include "export/kineto/kineto_tracks.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>
#include <type_traits>

namespace foretrace {
namespace {

constexpr std::int64_t kSyncTracks = 1'000'000'000;
constexpr std::int64_t kFurtherRow = 1'000'000;
constexpr std::uint8_t kMaxRows = 16;             ///< The last row takes all remaining records.
constexpr std::int64_t kDevicesLast = 5'000'000;  ///< Sort index of PyTorch's profiler.

/// For each record, the first row of its stream that is free when the record starts.
template <class Record>
std::vector<std::uint8_t> rows_of(const std::vector<Record>& records, std::size_t streams) {
  const auto has_place = [](const Record& record) {
    if constexpr (std::is_same_v<Record, DeviceRecord>)
      return record.kind != DeviceKind::annotation;  // Annotations enclose the other records.
    else
      return true;
  };
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (has_place(records[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return records[a].start_ns < records[b].start_ns;
  });
  std::vector<std::vector<std::int64_t>> taken(streams + 1);  // When each row becomes free.
  std::vector<std::uint8_t> rows(records.size(), 0);
  for (const std::uint32_t i : order) {
    const Record& record = records[i];
    auto& until = taken[std::min<std::size_t>(record.stream, streams)];
    const auto free = std::find_if(until.begin(), until.end(),
                                   [&](std::int64_t end) { return end <= record.start_ns; });
    rows[i] =
        static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(free - until.begin(), kMaxRows - 1));
    if (rows[i] == until.size()) until.push_back(0);
    until[rows[i]] = std::max(until[rows[i]], record.start_ns + record.duration_ns);
  }
  return rows;
}

Track row_of(Track track, std::uint8_t row) {
  return {track.process, track.thread + kFurtherRow * row};
}

class TrackNames {
 public:
  TrackNames(const Trace& trace, const KinetoTracks& tracks, const RankView* view, KinetoFile& file)
      : trace_(trace), tracks_(tracks), view_(view), file_(file) {
    for (const Thread& thread : trace.threads) {
      threads_.insert({thread.process, thread.id});
      processes_.insert(thread.process);
      // Readers take the name of a process for the name of its thread 0.
      if (thread.id == 0 && thread.name.empty()) nameless_.insert(thread.process);
    }
  }

  void write() {
    for (const std::int64_t process : processes_)
      write_process(process, name_of_process(process), "CPU", position_of_process(process));
    for (const Thread& thread : trace_.threads) {
      if (!thread.name.empty())
        file_.name_thread({thread.process, thread.id}, thread.name, thread.id);
    }
    std::set<std::int64_t> devices;
    for (const Stream& stream : trace_.streams) devices.insert(stream.device);
    for (const std::int64_t device : devices) {
      // A process may have the same number as a device; its name takes precedence.
      if (processes_.count(device) > 0) continue;
      write_device(device);
    }
    for (const Stream& stream : trace_.streams)
      name({stream.device, stream.id}, "stream " + std::to_string(stream.id), stream.id);
    for (std::size_t i = 0; i < trace_.devices.size(); ++i)
      name_row(tracks_.device(i), trace_.devices[i].stream, " (overlapping)");
    for (std::size_t i = 0; i < trace_.syncs.size(); ++i)
      name_row(tracks_.sync(i), trace_.syncs[i].stream, " (sync)");
  }

 private:
  void write_process(std::int64_t process, const std::string& name, const std::string& label,
                     std::int64_t position) {
    const Track track{process, 0};
    if (nameless_.count(process) == 0)
      file_.describe("process_name", track, "name", json_string(name));
    file_.describe("process_labels", track, "labels", json_string(label));
    file_.describe("process_sort_index", track, "sort_index", std::to_string(position));
  }

  std::string name_of_process(std::int64_t process) const {
    return view_ ? view_->processes.at(process) : "process " + std::to_string(process);
  }

  /// The process of each rank comes before its devices.
  std::int64_t position_of_process(std::int64_t process) const {
    if (view_ == nullptr) return process;
    const std::string& rank = view_->processes.at(process);
    for (const auto& [device, name] : view_->devices) {
      if (name.starts_with(rank + ",")) return 2 * device;
    }
    return kDevicesLast;
  }

  void write_device(std::int64_t device) {
    if (view_ != nullptr)
      return write_process(device, view_->devices.at(static_cast<std::int32_t>(device)),
                           label_of(device), 2 * device + 1);
    write_process(device, label_of(device), "GPU " + std::to_string(device), kDevicesLast + device);
  }

  void name(Track track, const std::string& label, std::int64_t position) {
    if (threads_.count(track) == 0) file_.name_thread(track, label, position);
  }

  /// Names a track beside the main track of the stream.
  void name_row(Track track, std::uint32_t stream, std::string_view what) {
    if (stream == kNone) return;
    const std::int64_t id = trace_.streams[stream].id;
    if (track.thread != id && named_.insert(track).second)
      name(track, fmt::format("stream {}{}", id, what), id);
  }

  std::string label_of(std::int64_t device) const {
    for (const Device& known : trace_.properties) {
      if (known.ordinal == device && !known.name.empty()) return known.name;
    }
    return "GPU " + std::to_string(device);
  }

  const Trace& trace_;
  const KinetoTracks& tracks_;
  const RankView* view_;  ///< nullptr if the trace is of one rank.
  KinetoFile& file_;
  std::set<Track> threads_, named_;
  std::set<std::int64_t> processes_, nameless_;
};

}  // namespace

KinetoTracks::KinetoTracks(const Trace& trace)
    : trace_(trace),
      device_rows_(rows_of(trace.devices, trace.streams.size())),
      sync_rows_(rows_of(trace.syncs, trace.streams.size())) {}

Track KinetoTracks::device(std::size_t record) const {
  const Stream& stream = trace_.streams[trace_.devices[record].stream];
  return row_of({stream.device, stream.id}, device_rows_[record]);
}

Track KinetoTracks::sync(std::size_t record) const {
  const std::uint32_t stream = trace_.syncs[record].stream;
  const std::int64_t id = stream == kNone ? -1 : trace_.streams[stream].id;
  return row_of({device_of(trace_, trace_.syncs[record]), kSyncTracks + id}, sync_rows_[record]);
}

std::int32_t device_of(const Trace& trace, const SyncRecord& record) {
  const std::uint32_t known = record.stream != kNone ? record.stream : record.wait_on_stream;
  return known == kNone ? 0 : trace.streams[known].device;
}

void write_track_names(const Trace& trace, const KinetoTracks& tracks, const RankView* view,
                       KinetoFile& file) {
  TrackNames(trace, tracks, view, file).write();
}

}  // namespace foretrace
