#include "export/perfetto/perfetto_rows.h"

#include <algorithm>
#include <tuple>

namespace foretrace {
namespace {

/// Adds `slice` to the open slices of a row. Returns false if it does not fit there.
bool add_to_row(std::vector<std::int64_t>& open, const Slice& slice, bool nests) {
  while (!open.empty() && open.back() <= slice.start_ns) open.pop_back();
  if (!open.empty() && (!nests || open.back() < slice.end_ns)) return false;
  open.push_back(slice.end_ns);
  return true;
}

}  // namespace

std::uint32_t assign_rows(std::vector<Slice>& slices, bool nests) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.start_ns, -a.end_ns, a.depth, a.record) <
           std::tuple(b.start_ns, -b.end_ns, b.depth, b.record);
  });
  std::vector<std::vector<std::int64_t>> rows;  // Ends of the open slices.
  for (Slice& slice : slices) {
    slice.row = 0;
    while (slice.row < rows.size() && !add_to_row(rows[slice.row], slice, nests)) ++slice.row;
    if (slice.row < rows.size()) continue;
    rows.push_back({slice.end_ns});
  }
  return static_cast<std::uint32_t>(rows.size());
}

}  // namespace foretrace
