// Describes the memory in use over time, by use, and at the peak also by holder. One sweep over the
// events keeps the level of every use up to date.

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/memory/blocks.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

using PhaseRows = std::array<PhaseRow, 5>;

class OccupationSweep {
 public:
  OccupationSweep(const DeviceMemory& memory, MemoryReport& report)
      : memory_(memory), report_(report), now_(memory.from) {}

  void run() {
    begin();
    for (const MemoryEvent& event : memory_.events) {
      if (event.time < memory_.from) continue;
      if (!memory_.in_window(event.time)) break;
      advance_to(event.time);
      set_phase(event);
      apply(event);
      if (report_.curve.back().time != event.time) report_.curve.push_back({event.time, {}});
      report_.curve.back().allocated = level_;
      if (level_ > report_.peak) note_peak(event);
      update_maxima();
      ++report_.events;
    }
    advance_to(memory_.to);
    finish();
  }

  /// Returns the number of events up to and including the peak.
  std::size_t peak_event() const { return peak_event_; }

 private:
  void begin() {
    levels_[static_cast<std::size_t>(MemoryUse::unknown)] = memory_.unnamed;
    for (const TimedBlock& block : memory_.blocks) {
      if (block.was_there) change(block.allocation, false);
    }
    level_ = memory_.initial();
    for (const MemoryEvent& event : memory_.events) {
      if (event.time >= memory_.from) break;
      set_phase(event);
      apply(event);
    }
    report_.phase_begins.emplace_back(memory_.from, phase_);
    report_.at_begin = level_;
    report_.curve.push_back({memory_.from, level_});
    report_.peak = level_;
    report_.peak_moment.time = memory_.from;
    at_peak_ = levels_, blocks_at_peak_ = blocks_;
    peak_event_ = applied_events_;
    update_maxima();
  }

  void apply(const MemoryEvent& event) {
    change(event.allocation, event.frees);
    const Bytes bytes = memory_.allocation(event.allocation).bytes;
    level_ = event.frees ? level_ - bytes : level_ + bytes;
    ++applied_events_;
  }

  void change(std::uint32_t number, bool frees) {
    const Allocation& block = memory_.allocation(number);
    const auto use = static_cast<std::size_t>(block.use);
    levels_[use] = frees ? levels_[use] - block.bytes : levels_[use] + block.bytes;
    blocks_[use] += frees ? -1 : 1;
  }

  void set_phase(const MemoryEvent& event) {
    const TaskId task = task_of(memory_.graph, event);
    if (task == kNoTask || memory_.graph.task(task).phase == Phase::none) return;
    const Phase phase = memory_.graph.task(task).phase;
    if (phase == phase_) return;
    phase_ = phase;
    if (!report_.phase_begins.empty()) report_.phase_begins.emplace_back(event.time, phase);
  }

  void advance_to(Nanoseconds time) {
    const Nanoseconds elapsed = time - now_;
    now_ = time;
    if (elapsed <= 0ns) return;
    PhaseRow& phase = phases_[static_cast<std::size_t>(phase_)];
    phase.time += elapsed;
    // Bytes times nanoseconds overflow 64 bits within seconds.
    const auto length = static_cast<double>(elapsed.count());
    auto& sums = sums_[static_cast<std::size_t>(phase_)];
    for (std::size_t use = 0; use < kMemoryUses; ++use)
      sums[use] += static_cast<double>(levels_[use].count) * length;
  }

  void update_maxima() {
    for (std::size_t use = 0; use < kMemoryUses; ++use)
      most_[use] = std::max(most_[use], levels_[use]);
    PhaseRow& phase = phases_[static_cast<std::size_t>(phase_)];
    phase.most = std::max(phase.most, level_);
  }

  void note_peak(const MemoryEvent& event) {
    report_.peak = level_;
    at_peak_ = levels_, blocks_at_peak_ = blocks_;
    peak_event_ = applied_events_;
    peak_ = event;
  }

  static Bytes average(double sum, Nanoseconds time) {
    if (time <= 0ns) return {};
    return Bytes{static_cast<std::int64_t>(sum / static_cast<double>(time.count()) + 0.5)};
  }

  void finish() {
    if (peak_) {
      report_.peak_moment =
          moment_of(memory_.graph, memory_.timeline, peak_->allocation, peak_->time);
    }
    const Nanoseconds window = memory_.to - memory_.from;
    double all = 0;
    for (std::size_t use = 0; use < kMemoryUses; ++use) {
      double sum = 0;
      for (const auto& of_phase : sums_) sum += of_phase[use];
      all += sum;
      if (most_[use] <= Bytes{}) continue;
      report_.uses.push_back({static_cast<MemoryUse>(use), at_peak_[use], average(sum, window),
                              most_[use], blocks_at_peak_[use]});
    }
    report_.average = window > 0ns ? average(all, window) : level_;
    std::stable_sort(report_.uses.begin(), report_.uses.end(),
                     [](const UseRow& a, const UseRow& b) { return a.at_peak > b.at_peak; });
    for (std::size_t i = 0; i < phases_.size(); ++i) finish_phase(i);
  }

  void finish_phase(std::size_t number) {
    PhaseRow& phase = phases_[number];
    if (phase.time <= 0ns) return;
    phase.phase = static_cast<Phase>(number);
    double all = 0;
    for (std::size_t use = 0; use < kMemoryUses; ++use) {
      all += sums_[number][use];
      phase.average_by_use[use] = average(sums_[number][use], phase.time);
    }
    phase.average = average(all, phase.time);
    report_.phases.push_back(phase);
  }

  const DeviceMemory& memory_;
  MemoryReport& report_;
  Nanoseconds now_;
  Phase phase_ = Phase::none;
  Bytes level_{};
  BytesByUse levels_{}, at_peak_{}, most_{};
  std::array<std::int64_t, kMemoryUses> blocks_{}, blocks_at_peak_{};
  std::array<std::array<double, kMemoryUses>, 5> sums_{};
  PhaseRows phases_{};
  std::size_t applied_events_ = 0, peak_event_ = 0;
  std::optional<MemoryEvent> peak_;  ///< nullopt if the window begins with the peak.
};

/// Sums blocks by name; rows() returns the names with most bytes first.
class BlockGroups {
 public:
  void add(std::string_view name, Bytes bytes, const TimedBlock& block) {
    BlockGroup& group = by_name_[std::string(name)];
    group.bytes += bytes;
    ++group.blocks;
    group.lifetimes.push_back(block.freed - block.made);
  }

  void add_bytes(std::string_view name, Bytes bytes) { by_name_[std::string(name)].bytes += bytes; }

  std::vector<RequesterRow> rows(std::size_t top) {
    std::vector<RequesterRow> all;
    for (auto& [name, group] : by_name_) {
      all.push_back({name, group.bytes, group.blocks, lower_median(group.lifetimes)});
    }
    std::stable_sort(all.begin(), all.end(), [](const RequesterRow& a, const RequesterRow& b) {
      return a.bytes > b.bytes;
    });
    if (all.size() > top) all.resize(top);
    return all;
  }

 private:
  struct BlockGroup {
    Bytes bytes{};
    std::int64_t blocks = 0;
    std::vector<Nanoseconds> lifetimes;
  };
  std::map<std::string, BlockGroup> by_name_;
};

/// Returns, for each allocation, whether it is in use after the first `events` events.
std::vector<char> in_use_after(const DeviceMemory& memory, std::size_t events) {
  std::vector<char> in_use(memory.graph.allocations().size(), 0);
  for (const TimedBlock& block : memory.blocks) in_use[block.allocation] = block.was_there;
  for (std::size_t i = 0; i < events; ++i)
    in_use[memory.events[i].allocation] = !memory.events[i].frees;
  return in_use;
}

void describe_holders(const DeviceMemory& memory, std::size_t peak_event, std::size_t top,
                      MemoryReport& report) {
  BlockGroups ops, lines, modules, layers;
  const std::vector<char> in_use = in_use_after(memory, peak_event);
  for (const TimedBlock& timed : memory.blocks) {
    if (!in_use[timed.allocation]) continue;
    const Allocation& block = memory.allocation(timed.allocation);
    ops.add(maker_of(memory.graph, block), block.bytes, timed);
    const std::string line = line_of(memory.graph, block);
    if (!line.empty()) lines.add(line, block.bytes, timed);
    if (block.made_by == kNoTask) continue;
    const Task& task = memory.graph.task(block.made_by);
    const std::string_view module = memory.graph.names()[task.module];
    if (!module.empty()) modules.add(module, block.bytes, timed);
    if (task.layer >= 0) layers.add(std::to_string(task.layer), block.bytes, timed);
  }
  if (memory.unnamed > Bytes{})
    ops.add_bytes("(before the recording, never freed)", memory.unnamed);
  report.ops = ops.rows(top);
  report.lines = lines.rows(top);
  report.modules = modules.rows(top);
  report.layers = layers.rows(top);
}

}  // namespace

void describe_occupation(const DeviceMemory& memory, const MemoryQuestion& question,
                         MemoryReport& report) {
  OccupationSweep sweep(memory, report);
  sweep.run();
  describe_holders(memory, sweep.peak_event(), question.top, report);
}

}  // namespace foretrace
