#include "infer/host/enclosing.h"

#include <algorithm>
#include <tuple>

namespace foretrace::infer_detail {
namespace {

/// Whether a record encloses calls. Python frames other than module calls do not count, because
/// they may contain the whole program; nor do ranges that may cross others.
bool encloses(const Records& records, const HostRecord& record) {
  if (record.duration_ns <= 0 || !record.nests) return false;
  switch (record.kind) {
    case HostKind::op:
    case HostKind::annotation:
      return true;
    case HostKind::python:
      return records.name(record).starts_with("nn.Module: ");
    case HostKind::runtime:
    case HostKind::driver:
    case HostKind::overhead:
      return false;
  }
  return false;
}

}  // namespace

Enclosing::Enclosing(const Records& records) {
  std::vector<Range> all;
  for (std::uint32_t i = 0; i < records.trace.hosts.size(); ++i) {
    const HostRecord& record = records.trace.hosts[i];
    if (!encloses(records, record)) continue;
    all.push_back({record.thread, record.start_ns, record.start_ns + record.duration_ns, i});
  }
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) {
    return std::tuple(a.thread, a.start, -a.finish, a.record) <
           std::tuple(b.thread, b.start, -b.finish, b.record);
  });
  for (const Range& range : all) {
    const bool nested = !ranges_.empty() && ranges_.back().thread == range.thread &&
                        range.start < ranges_.back().finish;
    if (!nested) ranges_.push_back(range);
  }
}

std::uint32_t Enclosing::record(const Call& call) const {
  const auto behind = std::upper_bound(
      ranges_.begin(), ranges_.end(), std::pair(call.thread, call.start),
      [](const auto& at, const Range& range) { return at < std::pair(range.thread, range.start); });
  if (behind == ranges_.begin()) return kNone;
  const Range& range = *std::prev(behind);
  return range.thread == call.thread && call.start < range.finish ? range.record : kNone;
}

}  // namespace foretrace::infer_detail
