// Turns the NVTX ranges of a spool into host records.

#include <algorithm>

#include "import/common/nvtx_op.h"
#include "import/spool/spool_records.h"
#include "trace/step_name.h"

namespace foretrace {

std::uint32_t SpoolRanges::add(const spool::Range& row) {
  HostRecord record{.start_ns = index_.on_device_clock(row.time),
                    .thread = index_.thread(row.thread),
                    .kind = HostKind::annotation,
                    .nests = row.row != spool::RowKind::range_start};
  last_time_ = std::max(last_time_, record.start_ns);
  const std::string_view text = index_.text(row.name), payload = index_.text(row.payload);
  OpDetails details;
  bool has_details = !payload.empty();
  if (row.domain != 0 && index_.knows(row.domain)) {
    record.name = index_.intern(std::string(index_.text(row.domain)) + ":" + std::string(text));
  } else if (const auto op = parse_nvtx_op(text)) {
    record.kind = HostKind::op;
    record.name = index_.intern(op->name);
    details.shapes = index_.intern(op->sizes);
    details.sequence = op->sequence;
    details.record_function = op->record_function;
    has_details |= op->sequence >= 0 || op->record_function >= 0 || !op->sizes.empty();
  } else {
    record.name = index_.name(row.name);
  }
  if (has_details) {
    details.values = index_.intern(payload);
    record.details = static_cast<std::uint32_t>(trace_.op_details.size());
    trace_.op_details.push_back(details);
  }
  trace_.hosts.push_back(record);
  return static_cast<std::uint32_t>(trace_.hosts.size() - 1);
}

void SpoolRanges::begin(const spool::Range& row) {
  const std::uint32_t record = add(row);
  if (row.row == spool::RowKind::range_push) {
    open_of(trace_.hosts[record].thread).push_back({record, row.domain});
  } else if (row.row == spool::RowKind::range_start) {
    const auto ended = early_ends_.find(row.id);
    if (ended == early_ends_.end()) {
      started_[row.id] = record;
    } else {
      end(record, ended->second);
      early_ends_.erase(ended);
    }
  }
  if (index_.text(row.domain) == "NCCL" && row.payload != 0 && index_.knows(row.payload))
    joins_.collectives.push_back({trace_.hosts[record].start_ns, record, row.payload});
}

/// Ends the innermost open range of its domain on the thread. Domains nest independently.
void SpoolRanges::end_push(const spool::Range& row) {
  std::vector<OpenRange>& open = open_of(index_.thread(row.thread));
  const auto found = std::find_if(open.rbegin(), open.rend(), [&](const OpenRange& range) {
    return range.domain == row.domain;
  });
  if (found == open.rend()) {
    ++stray_ends;
    return;
  }
  end(found->record, row.time);
  open.erase(std::next(found).base());
}

void SpoolRanges::end_start(const spool::Range& row) {
  const auto found = started_.find(row.id);
  if (found == started_.end()) {
    // Each thread writes its own buffer, so the start may come later in the file.
    early_ends_[row.id] = row.time;
    return;
  }
  end(found->second, row.time);
  started_.erase(found);
}

void SpoolRanges::end(std::uint32_t record, std::uint64_t time) {
  HostRecord& range = trace_.hosts[record];
  const std::int64_t end = index_.on_device_clock(time);
  last_time_ = std::max(last_time_, end);
  range.duration_ns = std::max<std::int64_t>(0, end - range.start_ns);
}

std::vector<SpoolRanges::OpenRange>& SpoolRanges::open_of(std::uint16_t thread) {
  if (open_.size() <= thread) open_.resize(std::size_t{thread} + 1);
  return open_[thread];
}

void SpoolRanges::close(std::int64_t last_time) {
  last_time = std::max(last_time, last_time_);
  const auto close = [&](std::uint32_t record) {
    // Nothing can be learned about the duration of steps from a step without an end.
    if (step_name(trace_.names[trace_.hosts[record].name])) {
      ++open_steps;
      joins_.dropped.push_back(record);
      return;
    }
    ++open_ranges;
    trace_.hosts[record].duration_ns =
        std::max<std::int64_t>(0, last_time - trace_.hosts[record].start_ns);
  };
  for (const std::vector<OpenRange>& ranges : open_) {
    for (const OpenRange& range : ranges) close(range.record);
  }
  for (const auto& [id, record] : started_) close(record);
  stray_ends += static_cast<std::int64_t>(early_ends_.size());
}

}  // namespace foretrace
