#include "question/memory/allocator_state.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "analysis/place/source_line.h"
#include "document/words/table.h"
#include "foretrace/units.h"
#include "question/words/tables.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kStacksShown = 5;

struct AllocatorHistory {
  std::int64_t allocations = 0, frees = 0, out_of_memory = 0;
  std::map<std::string_view, std::int64_t> actions;
  std::int64_t start_allocated = -1, start_reserved = -1;
  std::int64_t peak_allocated = -1, peak_reserved = -1;
  std::int64_t peak_requested = 0;  ///< Computed from the sizes of the events alone.
  std::int64_t requested = 0;
  std::int64_t segments = 0, blocks = 0, used_blocks = 0;
  std::int64_t reserved = 0, in_use = 0, in_use_requested = 0;
  std::int64_t missing = 0;
};

void count_record(const MemoryRecord& record, AllocatorHistory& to) {
  const bool is_block = record.action == MemoryAction::block;
  const bool gives = is_block && record.bytes >= 0;
  ++to.actions[is_block ? (gives ? "alloc" : "free") : to_string(record.action)];
  to.allocations += gives ? 1 : 0;
  to.frees += is_block && !gives ? 1 : 0;
  to.out_of_memory += record.action == MemoryAction::out_of_memory ? 1 : 0;
  // A block that is freed was allocated until then, perhaps before the recording.
  const std::int64_t before = record.total_allocated - (is_block && !gives ? record.bytes : 0);
  if (record.total_allocated >= 0) to.peak_allocated = std::max(to.peak_allocated, before);
  to.peak_reserved = std::max(to.peak_reserved, record.total_reserved);
  if (is_block) {
    to.requested += record.bytes;
    to.peak_requested = std::max(to.peak_requested, to.requested);
  }
  if (to.start_reserved < 0 && record.total_reserved >= 0) {
    to.start_reserved = record.total_reserved - reserved_change(record);
    to.peak_reserved = std::max(to.peak_reserved, to.start_reserved);
  }
}

std::map<std::int16_t, AllocatorHistory> allocators(const Trace& trace) {
  std::map<std::int16_t, AllocatorHistory> all;
  for (const MemoryRecord& record : trace.memory) count_record(record, all[record.device]);
  for (const MemorySegment& segment : trace.segments) {
    AllocatorHistory& one = all[segment.device];
    one.segments += 1;
    one.reserved += segment.bytes;
  }
  for (const MemoryBlock& block : trace.blocks) {
    AllocatorHistory& one = all[trace.segments[block.segment].device];
    one.blocks += 1;
    if (block.state == BlockState::inactive) continue;
    one.used_blocks += 1;
    one.in_use += block.bytes;
    one.in_use_requested += block.requested_bytes;
  }
  for (auto& [device, one] : all) {
    // Memory that is in use at the end but was never allocated existed before the first event.
    one.missing = std::max<std::int64_t>(one.in_use_requested - one.requested, 0);
    one.peak_requested += one.missing;
    if (one.segments > 0) {
      one.peak_allocated = std::max(one.peak_allocated, one.in_use);
      one.peak_reserved = std::max(one.peak_reserved, one.reserved);
    }
  }
  return all;
}

/// Whether the history explains all memory in use at its end. Sizes in events are requested sizes
/// or, in old versions of PyTorch, sizes of whole blocks.
bool explains_all(const AllocatorHistory& one) {
  return one.missing == 0 && one.start_reserved <= 0 &&
         (one.requested == one.in_use_requested || one.requested == one.in_use);
}

struct AllocatingStack {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  NameId stack{};
};

std::vector<AllocatingStack> largest_stacks(const Trace& trace) {
  std::map<NameId, AllocatingStack> by_stack;
  for (const MemoryRecord& record : trace.memory) {
    if (record.action != MemoryAction::block || record.bytes <= 0 || record.stack == NameId{})
      continue;
    AllocatingStack& caller = by_stack[record.stack];
    caller.stack = record.stack;
    caller.count += 1;
    caller.bytes += record.bytes;
  }
  std::vector<AllocatingStack> all;
  for (const auto& [stack, caller] : by_stack) all.push_back(caller);
  std::stable_sort(all.begin(), all.end(), [](const AllocatingStack& a, const AllocatingStack& b) {
    return a.bytes > b.bytes;
  });
  if (all.size() > kStacksShown) all.resize(kStacksShown);
  return all;
}

std::string bytes_text(std::int64_t bytes) { return to_text(Bytes{bytes}); }

}  // namespace

nlohmann::json allocators_json(const Trace& trace) {
  Json all = Json::array();
  for (const auto& [device, one] : allocators(trace)) {
    Json entry = {{"device", device},
                  {"allocations", one.allocations},
                  {"frees", one.frees},
                  {"out_of_memory", one.out_of_memory},
                  {"actions", one.actions},
                  {"segments", one.segments},
                  {"blocks", one.blocks},
                  {"blocks_in_use", one.used_blocks},
                  {"peak_requested_bytes", one.peak_requested}};
    const auto add_known = [&](const char* key, std::int64_t bytes) {
      if (bytes >= 0) entry[key] = bytes;
    };
    add_known("peak_allocated_bytes", one.peak_allocated);
    add_known("peak_reserved_bytes", one.peak_reserved);
    if (one.segments > 0) {
      entry["reserved_at_end_bytes"] = one.reserved;
      entry["in_use_at_end_bytes"] = one.in_use;
      entry["requested_at_end_bytes"] = one.in_use_requested;
      // For a snapshot: whether the history explains all memory at its end.
      entry["history_complete"] = explains_all(one);
    }
    all.push_back(std::move(entry));
  }
  return all;
}

nlohmann::json allocating_stacks_json(const Trace& trace) {
  Json all = Json::array();
  for (const AllocatingStack& caller : largest_stacks(trace)) {
    all.push_back({{"bytes", caller.bytes},
                   {"count", caller.count},
                   {"frame", informative_frame(trace.names[caller.stack])},
                   {"stack", trace.names[caller.stack]}});
  }
  return all;
}

namespace {

/// Describes the recorded peaks; empty if there are none.
std::string peaks_text(const AllocatorHistory& one, bool with_requests) {
  if (one.peak_allocated < 0 && one.peak_reserved < 0) return {};
  std::string text = "peak ";
  if (one.peak_allocated >= 0) text += bytes_text(one.peak_allocated) + " allocated";
  if (with_requests) text += fmt::format(" ({} asked for)", bytes_text(one.peak_requested));
  if (one.peak_reserved >= 0) {
    text += one.peak_allocated >= 0 ? ", " : "";
    text += bytes_text(one.peak_reserved) + " reserved";
  }
  return fmt::format("{}; {}", text, counted(one.allocations, "allocation"));
}

}  // namespace

void add_allocator_rows(const Trace& trace, std::vector<std::vector<std::string>>& rows) {
  rows.push_back({"memory", counted(trace.memory.size(), "event")});
  for (const auto& [device, one] : allocators(trace)) {
    const std::string name = device_text(device);
    std::string text = peaks_text(one, is_snapshot(trace));
    if (text.empty()) continue;
    if (one.out_of_memory > 0)
      text += fmt::format(", {} out of memory", counted(one.out_of_memory, "time"));
    rows.push_back({name, std::move(text)});
    if (one.segments == 0) continue;  // The state at the end is unknown.
    rows.push_back({"", fmt::format("at the end {} in {} of {}, {} in {}", bytes_text(one.in_use),
                                    counted(one.used_blocks, "block"), grouped(one.blocks),
                                    bytes_text(one.reserved), counted(one.segments, "segment"))});
    if (lacks_history(trace)) continue;  // A note says so.
    rows.push_back({"", explains_all(one)
                            ? "the history is complete: it starts from an empty device "
                              "and leads to the state at the end"
                            : "the history is not complete: it does not start from an "
                              "empty device, or entries are missing"});
  }
}

Table allocating_stacks_table(const Trace& trace) {
  Table table;
  table.heading = {"allocated in all", "count", "by"};
  table.left = {2};
  for (const AllocatingStack& caller : largest_stacks(trace)) {
    table.rows.push_back(
        {bytes_text(caller.bytes), grouped(caller.count), shown_frame(trace.names[caller.stack])});
  }
  return table;
}

}  // namespace foretrace
