// Several ranks as one trace, on one clock: each rank has a process and devices of its own.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/render.h"
#include "trace/each_name.h"
#include "trace/ranks_shown.h"

namespace foretrace {
namespace {

constexpr std::int64_t kFirstProcess = 100'000;  ///< Above all device numbers.
constexpr std::int32_t kDevicesOfRank = 16;

/// Merges ranks into one trace.
class RankMerger {
 public:
  void add(const RankTimeline& rank) {
    std::vector<std::uint32_t> record_of;
    Trace trace = render(*rank.graph, *rank.timeline, rank.recorded, &record_of);
    if (records_.empty()) copy_header(trace);
    rename(trace);
    add_tracks(trace, rank);
    const auto shift = [&](std::int64_t& time) { time += rank.begins.count(); };
    const auto first_device = static_cast<std::uint32_t>(all_.devices.size());
    for (HostRecord& record : trace.hosts) {
      shift(record.start_ns), record.thread = thread(record.thread);
      renumber(record.correlation);
      if (record.details != kNone) record.details += first_details_;
    }
    for (DeviceRecord& record : trace.devices) {
      shift(record.start_ns), renumber(record.correlation);
      record.stream = static_cast<std::uint16_t>(record.stream + first_stream_);
    }
    for (SyncRecord& record : trace.syncs) {
      shift(record.start_ns), renumber(record.correlation);
      if (record.stream != kNone) record.stream += static_cast<std::uint32_t>(first_stream_);
    }
    for (MemoryRecord& record : trace.memory) {
      shift(record.time_ns), record.thread = thread(record.thread);
      if (record.device >= 0) record.device = static_cast<std::int16_t>(device(record.device));
    }
    append(trace.hosts, all_.hosts), append(trace.devices, all_.devices);
    append(trace.syncs, all_.syncs), append(trace.memory, all_.memory);
    append(trace.op_details, all_.op_details);
    last_correlation_ = greatest_correlation_;
    for (std::uint32_t& record : record_of) {
      if (record != kNone) record += first_device;
    }
    records_.push_back(std::move(record_of));
  }

  Trace take() { return std::move(all_); }
  RankView take_view() { return std::move(view_); }

  /// Records which members wait, and for which one.
  void add_waits(const std::vector<RankTask>& members) {
    std::vector<std::uint32_t> records;
    for (const RankTask& one : members) {
      const std::uint32_t record = records_[one.rank][index(one.task)];
      if (record != kNone) records.push_back(record);
    }
    if (records.size() < 2) return;
    const auto starts = [&](std::uint32_t record) { return all_.devices[record].start_ns; };
    const std::uint32_t last = *std::ranges::max_element(records, {}, starts);
    for (const std::uint32_t record : records) {
      if (starts(record) < starts(last)) view_.waits.push_back({record, last});
    }
  }

 private:
  void copy_header(const Trace& trace) {
    all_.format = trace.format;
    all_.origin_ns = trace.origin_ns, all_.tick_ns = 1;
    all_.metadata = trace.metadata;
    all_.metadata.erase("distributedInfo");
  }

  void rename(Trace& trace) {
    std::vector<NameId> translated(trace.names.size());
    each_name(trace, [&](NameId& name) {
      if (name == NameId{}) return;
      NameId& merged = translated[static_cast<std::size_t>(name)];
      if (merged == NameId{}) merged = all_.names.intern(trace.names[name]);
      name = merged;
    });
  }

  void add_tracks(const Trace& trace, const RankTimeline& rank) {
    rank_number_ = static_cast<std::int32_t>(records_.size());
    first_thread_ = all_.threads.size(), first_stream_ = all_.streams.size();
    first_details_ = static_cast<std::uint32_t>(all_.op_details.size());
    const std::string name = "rank " + std::to_string(rank.rank);
    for (Thread thread : trace.threads) {
      thread.process = kFirstProcess + rank_number_;
      view_.processes[thread.process] = name;
      all_.threads.push_back(std::move(thread));
    }
    for (Stream stream : trace.streams) {
      view_.devices[device(stream.device)] = fmt::format("{}, GPU {}", name, stream.device);
      stream.device = device(stream.device);
      all_.streams.push_back(stream);
    }
    for (Device properties : trace.properties) {
      properties.ordinal = device(properties.ordinal);
      if (view_.devices.contains(properties.ordinal))
        all_.properties.push_back(std::move(properties));
    }
    constexpr std::size_t kMax = 0xffff;
    if (all_.threads.size() > kMax || all_.streams.size() > kMax)
      throw Error("too many ranks for one file; write a folder instead, such as out/");
  }

  std::int32_t device(std::int32_t own) const { return kDevicesOfRank * rank_number_ + own; }
  std::uint16_t thread(std::uint16_t own) const {
    return static_cast<std::uint16_t>(own + first_thread_);
  }
  void renumber(std::uint32_t& correlation) {
    if (correlation == 0) return;
    correlation += last_correlation_;
    greatest_correlation_ = std::max(greatest_correlation_, correlation);
  }
  template <class Records>
  static void append(const Records& from, Records& to) {
    to.insert(to.end(), from.begin(), from.end());
  }

  Trace all_;
  RankView view_;
  std::vector<std::vector<std::uint32_t>> records_;  ///< By rank and task.
  std::int32_t rank_number_ = 0;
  std::size_t first_thread_ = 0, first_stream_ = 0;
  std::uint32_t first_details_ = 0, last_correlation_ = 0, greatest_correlation_ = 0;
};

}  // namespace

RenderedRanks render_ranks(const std::vector<RankTimeline>& ranks,
                           const std::vector<std::vector<RankTask>>& collectives) {
  RankMerger merger;
  for (const RankTimeline& rank : ranks) merger.add(rank);
  // Waits can be added only when the records of all ranks are known.
  for (const std::vector<RankTask>& members : collectives) merger.add_waits(members);
  RankView view = merger.take_view();
  RenderedRanks rendered{merger.take(), std::move(view)};
  rendered.trace.metadata[std::string(kRanksShown)] = std::to_string(ranks.size());
  return rendered;
}

}  // namespace foretrace
