#include "import/common/device_lanes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/contains.h"
#include "import/common/cuda_words.h"
#include "import/common/launch_shapes.h"
#include "import/common/unrecorded_waits.h"
#include "trace/step_name.h"
#include "trace/wait_call.h"

namespace foretrace {

namespace {

/// The number at the start of `text`, after blanks; nullopt if there is none.
std::optional<std::int64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" :#"), text.size()));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return number;
}

/// The number of a lane "Stream #14(Compute)" or "Stream 7".
std::optional<std::int64_t> stream_in_name(std::string_view thread) {
  if (!thread.starts_with("Stream ") && !thread.starts_with("stream ")) return std::nullopt;
  return leading_number(thread.substr(7));
}

std::optional<std::int32_t> to_ordinal(std::optional<std::int64_t> number) {
  constexpr std::int64_t kMaxOrdinal = 1 << 16;
  if (!number || *number > kMaxOrdinal) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

/// Lanes of a device, from the least to the most exact account of its work. A device
/// works on its lanes of the best rank; the others sum the same work up.
enum class LaneRank : std::uint8_t { none, other, modules, ops, stream };

LaneRank rank_of_lane(std::string_view thread) {
  if (stream_in_name(thread)) return LaneRank::stream;
  if (thread == "XLA Ops") return LaneRank::ops;
  if (thread == "XLA Modules") return LaneRank::modules;
  return thread == "Steps" ? LaneRank::none : LaneRank::other;
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/// Whether a name is that of a call of a driver or a runtime: "cuLaunchKernel", "hipMemcpy".
bool is_call_name(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {"cuda", "cu", "hip", "hsa_", "aclrt"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
    if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
    return prefix.back() == '_' || is_upper(name[prefix.size()]);
  });
}

DeviceKind kind_of_work(std::string_view name) {
  if (contains(name, "emset") || contains(name, "FillBuffer")) return DeviceKind::fill;
  const bool is_copy = name.starts_with("Memcpy") || name.starts_with("MEMCPY") ||
                       name.starts_with("Copy") || name.starts_with("hipMemcpy");
  return is_copy ? DeviceKind::copy : DeviceKind::kernel;
}

/// The product of the numbers behind a key: 256 for "grid:128,2,1" and "grid:". 0 if there is none.
std::uint32_t volume_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return 0;
  std::array<std::int64_t, 3> sides{1, 1, 1};
  text.remove_prefix(at + key.size());
  for (std::int64_t& side : sides) {
    const auto number = leading_number(text);
    if (!number) return 0;
    side = *number;
    text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return volume(sides[0], sides[1], sides[2]);
}

class LanePlacer {
 public:
  LanePlacer(Trace& trace, std::vector<LaneWork>& work) : trace_(trace), work_(work) {}

  /// Decides what each thread is.
  void sort_lanes(const std::function<std::string_view(std::int64_t)>& process_name) {
    std::map<std::int64_t, LaneRank> best;
    for (const Thread& thread : trace_.threads) {
      LaneRank& rank = best[thread.process];
      rank = std::max(rank, rank_of_lane(thread.name));
    }
    for (const Thread& thread : trace_.threads) {
      Role& role = roles_.emplace_back();
      const std::string_view process = process_name(thread.process);
      const auto number = stream_in_name(thread.name);
      auto device = device_in_name(process);
      if (!device && number && !process.starts_with("/host")) device = 0;
      if (!device) continue;
      role = {.device = *device, .process = thread.process, .id = number.value_or(thread.id)};
      role.kind = rank_of_lane(thread.name) == best[thread.process] ? LaneKind::work
                  : thread.name == "Steps"                          ? LaneKind::steps
                                                                    : LaneKind::summary;
    }
  }

  /// Gives a call and the work at the other end of its arrow a common correlation id.
  void join(const std::vector<LaneFlow>& flows) {
    if (flows.empty()) return;
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> threads;
    for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
      const Thread& thread = trace_.threads[i];
      threads.try_emplace({thread.process, thread.id}, static_cast<std::uint16_t>(i));
    }
    const ByTime lanes = by_time();
    std::vector<std::uint32_t> ends;                 // The work where each arrow begins or ends.
    std::map<std::int64_t, std::uint32_t> launches;  // From an arrow to the call.
    for (const LaneFlow& flow : flows) {
      const auto thread = threads.find({flow.process, flow.thread});
      ends.push_back(thread == threads.end() ? kNone
                                             : work_at(lanes, thread->second, flow.time_ns));
      if (!flow.is_end && ends.back() != kNone) launches.try_emplace(flow.id, ends.back());
    }
    std::uint32_t last = last_correlation();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto launch = flows[i].is_end ? launches.find(flows[i].id) : launches.end();
      if (launch == launches.end() || ends[i] == kNone) continue;
      LaneWork& work = work_[ends[i]];
      if (role_of(work).kind != LaneKind::work || work.correlation != 0) continue;
      LaneWork& call = work_[launch->second];
      if (call.correlation == 0) call.correlation = ++last;
      work.correlation = call.correlation;
    }
  }

  std::uint32_t last_correlation() const {
    std::uint32_t last = 0;
    for (const LaneWork& event : work_) last = std::max(last, event.correlation);
    return last;
  }

  /// Gives the ops of a device whose profiler knows no correlation ids, as a TPU's, those of the
  /// calls that launched their modules.
  void join_modules() {
    std::map<std::int64_t, std::vector<std::uint32_t>> modules;  // By process.
    std::map<std::int64_t, std::uint32_t> by_run;
    std::set<std::int64_t> joined;  // Processes with correlation ids.
    for (std::uint32_t i = 0; i < work_.size(); ++i) {
      const Role& role = role_of(work_[i]);
      const Thread& thread = trace_.threads[trace_.hosts[work_[i].host].thread];
      if (role.kind == LaneKind::host && work_[i].run != 0) by_run.try_emplace(work_[i].run, i);
      if (role.kind == LaneKind::work && work_[i].correlation != 0) joined.insert(role.process);
      if (role.kind == LaneKind::summary && thread.name == "XLA Modules")
        modules[role.process].push_back(i);
    }
    std::erase_if(modules, [&](const auto& process) { return joined.contains(process.first); });
    if (modules.empty()) return;
    const auto launches = launches_of(modules, by_run);
    std::uint32_t last = last_correlation();
    for (const auto& [module, call] : launches) {
      if (work_[call].correlation == 0) work_[call].correlation = ++last;
    }
    give_to_ops(launches);
  }

  /// From each module to the call that launched it: the call with the number of the run or, if none
  /// has one, the calls of jitted functions in their order, as a device runs what it is given in
  /// order.
  std::map<std::uint32_t, std::uint32_t> launches_of(
      std::map<std::int64_t, std::vector<std::uint32_t>>& modules,
      const std::map<std::int64_t, std::uint32_t>& by_run) {
    const std::vector<std::uint32_t> calls = jitted_calls();
    std::map<std::uint32_t, std::uint32_t> launches;
    for (auto& [process, runs] : modules) {
      std::sort(runs.begin(), runs.end(), [&](std::uint32_t a, std::uint32_t b) {
        return trace_.hosts[work_[a].host].start_ns < trace_.hosts[work_[b].host].start_ns;
      });
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto known = by_run.find(work_[runs[i]].run);
        if (known != by_run.end()) launches[runs[i]] = known->second;
        if (known == by_run.end() && calls.size() == runs.size()) launches[runs[i]] = calls[i];
      }
    }
    return launches;
  }

  void place() {
    join_modules();
    const bool host_marks = mark_steps(LaneKind::host);
    if (!host_marks) mark_steps(LaneKind::steps);
    std::vector<char> moved(trace_.hosts.size(), 0);
    const std::vector<char> containers = find_containers();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const LaneWork& event = work_[i];
      const Role& role = role_of(event);
      if (role.kind == LaneKind::host) settle(trace_.hosts[event.host], event);
      if (role.kind == LaneKind::host || (role.kind == LaneKind::steps && !host_marks)) continue;
      moved[event.host] = 1;
      if (role.kind == LaneKind::work && containers[i] == 0) add_work(event, role);
    }
    std::size_t at = 0;
    std::erase_if(trace_.hosts, [&](const HostRecord&) { return moved[at++] != 0; });
    drop_lanes();
    if (host_marks) add_unrecorded_waits(trace_);
  }

 private:
  enum class LaneKind : std::uint8_t { host, work, summary, steps };
  struct Role {
    LaneKind kind = LaneKind::host;
    std::int32_t device = 0;
    std::int64_t process = 0, id = 0;
  };
  using ByTime = std::vector<std::tuple<std::uint16_t, std::int64_t, std::uint32_t>>;

  const Role& role_of(const LaneWork& event) const {
    return roles_[trace_.hosts[event.host].thread];
  }

  /// Thread, start and number of all work.
  ByTime by_time() const {
    ByTime lanes;
    for (std::uint32_t i = 0; i < work_.size(); ++i) {
      const HostRecord& record = trace_.hosts[work_[i].host];
      lanes.emplace_back(record.thread, record.start_ns, i);
    }
    std::sort(lanes.begin(), lanes.end());
    return lanes;
  }

  /// The outermost calls of jitted functions, by time.
  std::vector<std::uint32_t> jitted_calls() const {
    std::vector<std::uint32_t> calls;
    std::map<std::uint16_t, std::int64_t> ends;
    std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < work_.size(); ++i) {
      const HostRecord& record = trace_.hosts[work_[i].host];
      if (role_of(work_[i]).kind != LaneKind::host) continue;
      if (trace_.names[record.name].starts_with("PjitFunction("))
        order.emplace_back(record.start_ns, -record.duration_ns, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [start, length, call] : order) {
      const auto [end, first] = ends.try_emplace(trace_.hosts[work_[call].host].thread, start);
      if (!first && start < end->second) continue;
      end->second = start - length;
      calls.push_back(call);
    }
    return calls;
  }

  /// Gives each op the correlation id of the call that launched the module around it.
  void give_to_ops(const std::map<std::uint32_t, std::uint32_t>& launches) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> starts;  // Process, start.
    for (const auto& [module, call] : launches)
      starts[{role_of(work_[module]).process, trace_.hosts[work_[module].host].start_ns}] = module;
    for (LaneWork& event : work_) {
      const Role& role = role_of(event);
      if (role.kind != LaneKind::work || event.correlation != 0 || starts.empty()) continue;
      const std::int64_t start = trace_.hosts[event.host].start_ns;
      auto module = starts.upper_bound({role.process, start});
      if (module == starts.begin() || (--module)->first.first != role.process) continue;
      const HostRecord& around = trace_.hosts[work_[module->second].host];
      if (start < around.start_ns + around.duration_ns)
        event.correlation = work_[launches.at(module->second)].correlation;
    }
  }

  /// The work that begins at the mark or, if none does, contains it. Marks are in microseconds
  /// although times may be finer.
  std::uint32_t work_at(const ByTime& lanes, std::uint16_t thread, std::int64_t time) const {
    constexpr std::int64_t kTick = 1000;
    auto at =
        std::lower_bound(lanes.begin(), lanes.end(), std::tuple(thread, time, std::uint32_t{0}));
    const bool begins = at != lanes.end() && std::get<0>(*at) == thread;
    if (begins && std::get<1>(*at) < time + kTick) return std::get<2>(*at);
    if (at == lanes.begin() || std::get<0>(*--at) != thread) return kNone;
    const HostRecord& record = trace_.hosts[work_[std::get<2>(*at)].host];
    return time - record.start_ns <= record.duration_ns ? std::get<2>(*at) : kNone;
  }

  /// Flags the ops of devices without streams that contain another one, as a loop contains its
  /// body: the parts take their time.
  std::vector<char> find_containers() const {
    std::vector<char> contains_other(work_.size(), 0);
    std::vector<std::uint32_t> open;
    std::uint16_t lane = 0;
    std::vector<std::tuple<std::uint16_t, std::int64_t, std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < work_.size(); ++i) {
      const HostRecord& record = trace_.hosts[work_[i].host];
      if (roles_[record.thread].kind != LaneKind::work || record.duration_ns == 0) continue;
      if (rank_of_lane(trace_.threads[record.thread].name) == LaneRank::stream) continue;
      order.emplace_back(record.thread, record.start_ns, -record.duration_ns, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [thread, start, length, number] : order) {
      if (thread != lane) open.clear();
      lane = thread;
      const auto end_of = [&](std::uint32_t i) {
        const HostRecord& record = trace_.hosts[work_[i].host];
        return record.start_ns + record.duration_ns;
      };
      while (!open.empty() && end_of(open.back()) <= start) open.pop_back();
      if (!open.empty() && end_of(number) <= end_of(open.back())) contains_other[open.back()] = 1;
      open.push_back(number);
    }
    return contains_other;
  }

  /// The number of the step that a record marks, on a device also by its name; -1 if it marks none.
  std::int64_t step_of(const LaneWork& event) const {
    if (role_of(event).kind == LaneKind::host || event.step >= 0) return event.step;
    return leading_number(trace_.names[trace_.hosts[event.host].name]).value_or(-1);
  }

  /// XLA's profiler marks a step by a range with any name and the number of the step, and repeats
  /// the marks on a lane of each device, with the number as the name. If ranges of several names
  /// have numbers, as for training and evaluation, the name that takes most time marks the steps.
  /// Returns false if there are no marks.
  bool mark_steps(LaneKind kind) {
    std::map<NameId, std::int64_t> totals;
    const auto each_mark = [&](const auto& visit) {
      for (const LaneWork& event : work_) {
        if (role_of(event).kind != kind) continue;
        if (const std::int64_t step = step_of(event); step >= 0)
          visit(trace_.hosts[event.host], step);
      }
    };
    each_mark([&](const HostRecord& record, std::int64_t) {
      totals[kind == LaneKind::host ? record.name : NameId{}] += record.duration_ns / 1000;
    });
    if (totals.empty()) return false;
    const auto shorter = [](const auto& a, const auto& b) { return a.second < b.second; };
    const NameId steps = std::max_element(totals.begin(), totals.end(), shorter)->first;
    each_mark([&](HostRecord& record, std::int64_t step) {
      record.kind = HostKind::annotation;
      if (kind == LaneKind::host && record.name != steps) return;
      record.name = trace_.names.intern(fmt::format("{}{}", kProfilerStep, step));
    });
    return true;
  }

  /// Tells calls and frames of Python from the ops of the host.
  void settle(HostRecord& record, const LaneWork& event) const {
    if (record.kind != HostKind::op) return;
    const std::string_view name = trace_.names[record.name];
    if (name.starts_with('$')) {
      record.kind = HostKind::python;
    } else if (event.correlation != 0 || is_call_name(name) || wait_call(name) != WaitCall::none) {
      record.kind = HostKind::runtime;
      record.correlation = event.correlation;
    }
  }

  void add_work(const LaneWork& event, const Role& role) {
    const HostRecord& from = trace_.hosts[event.host];
    const std::string_view name = trace_.names[from.name];
    DeviceRecord record;
    record.start_ns = from.start_ns;
    record.duration_ns = from.duration_ns;
    record.name = from.name;
    record.correlation = event.correlation;
    record.kind = kind_of_work(name);
    record.stream = stream_of(role);
    record.graph_node = event.graph_node;
    if (record.kind == DeviceKind::kernel) {
      record.grid = event.grid;
      record.block = threads_of_block(event.block);
    } else {
      record.bytes = std::max<std::int64_t>(0, event.bytes);
    }
    if (record.kind == DeviceKind::copy) record.direction = copy_direction(name);
    trace_.devices.push_back(record);
  }

  /// The number of the stream in the trace. Two processes may name the same device, as one host's
  /// does next to another's: then they have streams of their own.
  std::uint16_t stream_of(const Role& role) {
    const auto [known, is_new] = streams_.try_emplace({role.process, role.id}, std::uint16_t{0});
    if (!is_new) return known->second;
    constexpr std::size_t kMaxStreams = std::numeric_limits<std::uint16_t>::max();
    if (trace_.streams.size() >= kMaxStreams) return static_cast<std::uint16_t>(kMaxStreams - 1);
    known->second = static_cast<std::uint16_t>(trace_.streams.size());
    trace_.streams.push_back({.device = role.device, .id = role.id});
    return known->second;
  }

  /// Removes the threads that were lanes of a device.
  void drop_lanes() {
    std::vector<std::uint16_t> numbers(trace_.threads.size());
    std::vector<char> used(trace_.threads.size(), 0);
    for (const HostRecord& record : trace_.hosts) used[record.thread] = 1;
    for (const MemoryRecord& record : trace_.memory) used[record.thread] = 1;
    for (const LinkRecord& record : trace_.links) used[record.thread] = 1;
    std::vector<Thread> kept;
    for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
      numbers[i] = static_cast<std::uint16_t>(kept.size());
      if (used[i] != 0 || roles_[i].kind == LaneKind::host)
        kept.push_back(std::move(trace_.threads[i]));
    }
    trace_.threads = std::move(kept);
    for (HostRecord& record : trace_.hosts) record.thread = numbers[record.thread];
    for (MemoryRecord& record : trace_.memory) record.thread = numbers[record.thread];
    for (LinkRecord& record : trace_.links) record.thread = numbers[record.thread];
  }

  Trace& trace_;
  std::vector<LaneWork>& work_;
  std::vector<Role> roles_;  ///< By thread.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> streams_;
};

}  // namespace

std::optional<std::int32_t> device_in_name(std::string_view process) {
  constexpr std::string_view kDevice = "/device:";
  if (const std::size_t at = process.find(kDevice); at != std::string_view::npos) {
    const std::string_view type = process.substr(at + kDevice.size());
    const std::size_t colon = type.find(':');
    if (colon == std::string_view::npos || type.starts_with("CPU")) return std::nullopt;
    return to_ordinal(leading_number(type.substr(colon + 1)));
  }
  if (process == "COPY" || process.starts_with("Ascend Hardware")) return 0;
  for (const std::string_view type : {"GPU", "TPU", "NPU", "HPU", "XPU", "MTIA"}) {
    if (!process.starts_with(type)) continue;
    const std::string_view rest = process.substr(type.size());
    if (rest.find_first_not_of(" :#0123456789") == rest.npos)
      return to_ordinal(leading_number(rest));
  }
  return std::nullopt;
}

void read_lane_details(std::string_view text, LaneWork& work) {
  work.grid = std::max(work.grid, volume_behind(text, "grid:"));
  work.block = std::max(work.block, volume_behind(text, "block:"));
  constexpr std::string_view kSize = "size:";
  const std::size_t size = text.find(kSize);
  if (size != text.npos && (size == 0 || text[size - 1] == ' '))
    work.bytes = leading_number(text.substr(size + kSize.size())).value_or(0);
}

void place_lane_work(Trace& trace, std::vector<LaneWork>& work, const std::vector<LaneFlow>& flows,
                     const std::function<std::string_view(std::int64_t process)>& process_name) {
  if (work.empty()) return;
  LanePlacer placer(trace, work);
  placer.sort_lanes(process_name);
  placer.join(flows);
  placer.place();
}

}  // namespace foretrace
