#include "document/document.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include "document/words/table.h"
#include "foretrace/answer/census.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"
#include "question/info/serving_kinds.h"
#include "question/memory/allocator_state.h"
#include "question/words/json_parts.h"
#include "question/words/step_facts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

Json devices_json(const Trace& trace) {
  Json all = Json::array();
  for (const Device& device : trace.properties) {
    all.push_back({{"device", device.ordinal},
                   {"name", device.name},
                   {"memory_bytes", device.memory_bytes},
                   {"multiprocessors", device.multiprocessors},
                   {"compute_capability", fmt::format("{}.{}", device.major, device.minor)}});
  }
  return all;
}

/// The total time of all records with one name on the device.
struct NameTotal {
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
  NameId name{};
};

std::vector<NameTotal> heaviest(const Trace& trace, std::size_t most) {
  std::vector<NameTotal> by_name(trace.names.size());
  for (const DeviceRecord& record : trace.devices) {
    if (record.kind == DeviceKind::annotation) continue;
    NameTotal& total = by_name[static_cast<std::uint32_t>(record.name)];
    total.name = record.name;
    total.count += 1;
    total.total_ns += record.duration_ns;
  }
  std::erase_if(by_name, [](const NameTotal& total) { return total.count == 0; });
  std::stable_sort(by_name.begin(), by_name.end(),
                   [](const NameTotal& a, const NameTotal& b) { return a.total_ns > b.total_ns; });
  if (by_name.size() > most) by_name.resize(most);
  return by_name;
}

/// The device record that ran longest; nullptr if there is none, or no times.
const DeviceRecord* longest_work(const Trace& trace) {
  const DeviceRecord* longest = nullptr;
  if (!trace.has_times) return longest;
  for (const DeviceRecord& record : trace.devices) {
    if (record.kind == DeviceKind::annotation) continue;
    if (longest == nullptr || record.duration_ns > longest->duration_ns) longest = &record;
  }
  return longest;
}

/// Null without such a record.
Json longest_json(const Trace& trace) {
  const DeviceRecord* longest = longest_work(trace);
  if (longest == nullptr) return {};
  return {{"name", trace.names[longest->name]}, {"duration_ns", longest->duration_ns}};
}

constexpr std::size_t kNameShown = 80;

std::string device_text(const Device& device) {
  std::string text = device.name.empty() ? "unnamed device" : device.name;
  if (device.memory_bytes > 0) text += ", " + to_text(Bytes{device.memory_bytes});
  if (device.multiprocessors > 0)
    text += fmt::format(", {} multiprocessors", device.multiprocessors);
  if (device.major > 0) text += fmt::format(", compute {}.{}", device.major, device.minor);
  return text;
}

/// Adds a row for each device; adjacent devices with the same properties share a row.
void add_devices(const Trace& trace, std::vector<std::vector<std::string>>& rows) {
  for (std::size_t i = 0; i < trace.properties.size();) {
    const std::string text = device_text(trace.properties[i]);
    std::size_t end = i + 1;
    while (end < trace.properties.size() && device_text(trace.properties[end]) == text) ++end;
    const auto first = trace.properties[i].ordinal;
    rows.push_back({end - i > 1
                        ? fmt::format("device {}-{}", first, trace.properties[end - 1].ordinal)
                        : fmt::format("device {}", first),
                    text});
    i = end;
  }
}

std::string steps_text(const Trace& trace, const Census& census) {
  if (census.steps_ns.empty()) return "no range has the name of a step";
  std::string text = grouped(census.steps_ns.size());
  if (!trace.has_times) return text;
  text += ", on the host";
  for (std::size_t i = 0; i < census.steps_ns.size() && i < 8; ++i) {
    text += (i == 0 ? " " : ", ") + to_text(Nanoseconds(census.steps_ns[i]));
  }
  return census.steps_ns.size() > 8 ? text + ", ..." : text;
}

std::string recorded_text(const Trace& trace, const Census& census) {
  if (!trace.has_times) return "the order of events, without times";
  return fmt::format("{}, in ticks of {}", to_text(Nanoseconds(census.window_ns)),
                     to_text(Nanoseconds(trace.tick_ns)));
}

/// Returns the number, kinds and total size of the described collectives.
Json collectives_json(const Trace& trace) {
  std::map<std::string, std::int64_t> kinds;
  std::int64_t in_elements = 0;
  for (const CollectiveDetails& collective : trace.collectives) {
    ++kinds[std::string(trace.names[collective.collective])];
    if (__builtin_add_overflow(in_elements, collective.in_elements, &in_elements)) in_elements = -1;
  }
  return {{"count", trace.collectives.size()}, {"in_elements", in_elements}, {"kinds", kinds}};
}

void add_tensor_row(const Trace& trace, const Census& census,
                    std::vector<std::vector<std::string>>& rows) {
  if (trace.tensors.empty()) return;
  rows.push_back(
      {"tensors",
       fmt::format("{} read ({}), {} written ({}), in {}", grouped(census.tensors_read),
                   to_text(Bytes{census.bytes_read}), grouped(census.tensors_written),
                   to_text(Bytes{census.bytes_written}), counted(census.storages, "storage"))});
}

Table heaviest_table(const Trace& trace, const Census& census, std::size_t top) {
  Table table;
  if (!trace.has_times) return table;
  table.heading = {"total", "share of busy", "count", "on the device"};
  table.left = {3};
  for (const NameTotal& total : heaviest(trace, top)) {
    const double share = census.device_busy_ns == 0
                             ? 0
                             : 100.0 * static_cast<double>(total.total_ns) /
                                   static_cast<double>(census.device_busy_ns);
    table.rows.push_back({to_text(Nanoseconds(total.total_ns)), to_fixed(share, 1) + " %",
                          grouped(total.count), shortened(trace.names[total.name], kNameShown)});
  }
  return table;
}

/// Returns a text such as "2 synchronization records, 4 synchronizing calls for 12 ms, 1 wait for
/// events".
std::string waits_text(const Trace& trace, const Census& census) {
  std::string calls = counted(census.waiting_calls, "synchronizing call");
  if (trace.has_times && census.waiting_calls > 0)
    calls += " for " + to_text(Nanoseconds(census.waiting_ns));
  return fmt::format("{}, {}, {} for events", counted(trace.syncs.size(), "synchronization record"),
                     calls, counted(census.event_waits, "wait"));
}

std::int64_t bytes_of(const Trace& trace, DeviceKind kind) {
  std::int64_t bytes = 0;
  for (const DeviceRecord& record : trace.devices) bytes += record.kind == kind ? record.bytes : 0;
  return bytes;
}

/// Returns a text such as "in all waits 3.03 s for others, transfers for 36 ms, enters 1 of 13
/// collectives last".
std::string rank_facts_text(const RankFacts& among) {
  std::string text = fmt::format(
      "in all waits {} for others, transfers for {}, enters {} of {} last", to_text(among.waits),
      to_text(among.transfer), grouped(among.times_last), counted(among.matched, "collective"));
  if (among.keeps_waiting > 0ns)
    text += " and keeps the others waiting for " + to_text(among.keeps_waiting);
  if (among.unmatched > 0) text += fmt::format("; no other rank recorded {} more", among.unmatched);
  return text;
}

}  // namespace

nlohmann::json describe_trace(const Trace& trace, const StepTimes* steps, const RankFacts* among,
                              std::size_t most) {
  const Census census = take_census(trace);
  Json top = Json::array();
  for (const NameTotal& total : heaviest(trace, most)) {
    top.push_back(
        {{"name", trace.names[total.name]}, {"count", total.count}, {"total_ns", total.total_ns}});
  }
  Json object = {{"schema", "foretrace.info/1"},
                 {"format", trace.format},
                 {"rank", trace.rank},
                 {"world_size", trace.world_size},
                 {"has_times", trace.has_times},
                 {"window_ns", census.window_ns},
                 {"origin_ns", trace.origin_ns},
                 {"tick_ns", trace.tick_ns},
                 {"devices", devices_json(trace)},
                 {"threads", trace.threads.size()},
                 {"streams", census.used_streams},
                 {"records",
                  {{"ops", census.ops},
                   {"annotations", census.annotations},
                   {"python_frames", census.frames},
                   {"calls", census.calls},
                   {"kernels", census.kernels},
                   {"copies", census.copies},
                   {"fills", census.fills},
                   {"syncs", trace.syncs.size()},
                   {"memory_events", trace.memory.size()},
                   {"forward_backward_links", trace.links.size()}}},
                 {"steps_on_host_ns", census.steps_ns},
                 {"waits",
                  {{"synchronizing_calls", census.waiting_calls},
                   {"synchronizing_ns", census.waiting_ns},
                   {"waits_for_events", census.event_waits}}},
                 {"device_time_ns", census.device_time_ns},
                 {"device_busy_ns", census.device_busy_ns},
                 {"copied_bytes", bytes_of(trace, DeviceKind::copy)},
                 {"filled_bytes", bytes_of(trace, DeviceKind::fill)},
                 {"heaviest", top},
                 {"longest", longest_json(trace)},
                 {"tensors",
                  {{"read", census.tensors_read},
                   {"written", census.tensors_written},
                   {"read_bytes", census.bytes_read},
                   {"written_bytes", census.bytes_written},
                   {"storages", census.storages}}},
                 {"collectives", collectives_json(trace)},
                 {"allocators", allocators_json(trace)},
                 {"allocating_stacks", allocating_stacks_json(trace)},
                 {"metadata", trace.metadata},
                 {"notes", notes_json(trace.notes)}};
  add_serving_steps(trace, object);
  if (among != nullptr) object["among_ranks"] = rank_facts_json(*among);
  if (steps != nullptr) {
    object["step_time_ns"] = steps->step_time.count();
    add_step_facts(*steps, object);
  }
  return object;
}

void add_info(const Trace& trace, const StepTimes* steps, const RankFacts* among,
              Document& document, std::size_t top) {
  using enum Document::Heading;
  const Census census = take_census(trace);
  Table table;
  table.left = {0, 1};
  auto& rows = table.rows;
  if (steps != nullptr)
    rows.push_back(
        {"step time", fmt::format("{}: {}", to_text(steps->step_time), step_facts(*steps))});
  rows.push_back({"format", trace.format});
  rows.push_back({"rank", fmt::format("{} of {}", trace.rank, trace.world_size)});
  rows.push_back({"recorded", recorded_text(trace, census)});
  add_devices(trace, rows);
  rows.push_back(
      {"host", fmt::format("{}, {}, {}, {} on {}", counted(census.ops, "op"),
                           counted(census.calls, "call"), counted(census.annotations, "annotation"),
                           counted(census.frames, "Python frame"),
                           counted(trace.threads.size(), "thread"))});
  rows.push_back(
      {"device", fmt::format("{}, {}, {} on {}, busy for {}", counted(census.kernels, "kernel"),
                             counted(census.copies, "copy"), counted(census.fills, "fill"),
                             counted(census.used_streams, "stream"),
                             to_text(Nanoseconds(census.device_busy_ns)))});
  if (const DeviceRecord* longest = longest_work(trace)) {
    rows.push_back({"longest", fmt::format("{}: {}", to_text(Nanoseconds(longest->duration_ns)),
                                           shortened(trace.names[longest->name], kNameShown))});
  }
  rows.push_back({"waits", waits_text(trace, census)});
  add_tensor_row(trace, census, rows);
  add_allocator_rows(trace, rows);
  rows.push_back({"steps", steps_text(trace, census)});
  if (among != nullptr) rows.push_back({"among ranks", rank_facts_text(*among)});
  constexpr std::size_t kInHead = 5;
  for (std::size_t i = 0; i < std::min(kInHead, rows.size()); ++i)
    document.sum_up(rows[i][0] + ": " + rows[i][1]);
  document.section(fmt::format("Rank {}", trace.rank), not_in_text).table(std::move(table));
  say_serving_steps(trace, document);
  document.section("Heaviest", not_in_text).table(heaviest_table(trace, census, top));
  document.section("Allocated by", not_in_text).table(allocating_stacks_table(trace));
  document.notes(trace.notes);
}

}  // namespace foretrace
