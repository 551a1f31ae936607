// Allocator events become allocations between the host tasks that made and freed them. With
// addresses the pairs are exact; without (profilers of 2021) a free is matched with the youngest
// live allocation of its size. What is freed without having been allocated was there when the
// recording began.

#include <algorithm>
#include <map>

#include "infer/draft.h"

namespace foretrace::infer_detail {
namespace {

class Pairing {
 public:
  explicit Pairing(Draft& draft) : draft_(draft) {}

  void pair() {
    std::vector<std::uint32_t> order;
    const bool has_blocks = std::any_of(
        draft_.trace.memory.begin(), draft_.trace.memory.end(), [](const MemoryRecord& record) {
          return record.device >= 0 && record.action == MemoryAction::block;
        });
    for (std::size_t i = 0; i < draft_.trace.memory.size(); ++i) {
      const MemoryRecord& record = draft_.trace.memory[i];
      if (record.device >= 0 && counts(record.action, has_blocks))
        order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return draft_.trace.memory[a].time_ns < draft_.trace.memory[b].time_ns;
    });
    for (const std::uint32_t i : order) {
      const MemoryRecord& record = draft_.trace.memory[i];
      note_level(record);
      if (record.bytes > 0) {
        allocate(record);
      } else if (record.bytes < 0) {
        free(record);
      }
    }
    set_initial_levels();
  }

 private:
  /// Blocks are what the program uses. One without an allocator of its own uses what it asks the
  /// driver for.
  static bool counts(MemoryAction action, bool has_blocks) {
    if (has_blocks) return action == MemoryAction::block;
    return action == MemoryAction::segment_alloc || action == MemoryAction::segment_free;
  }

  using Key = std::pair<std::int32_t, std::uint64_t>;

  Key key_of(const MemoryRecord& record) const {
    const auto size = static_cast<std::uint64_t>(std::abs(record.bytes));
    return {record.device, record.address ? record.address : size};
  }

  void note_level(const MemoryRecord& record) {
    if (record.total_allocated < 0) return;
    levels_.try_emplace(record.device, record.total_allocated - record.bytes);
  }

  void allocate(const MemoryRecord& record) {
    live_[key_of(record)].push_back(draft_.graph.allocations().size());
    draft_.graph.allocations().push_back(
        {.bytes = Bytes{record.bytes}, .made_by = task_at(record), .device = record.device});
  }

  void free(const MemoryRecord& record) {
    const auto found = live_.find(key_of(record));
    if (found == live_.end() || found->second.empty()) {
      draft_.graph.allocations().push_back({.bytes = Bytes{-record.bytes},
                                            .made_by = kNoTask,
                                            .freed_by = task_at(record),
                                            .device = record.device});
      return;
    }
    draft_.graph.allocations()[found->second.back()].freed_by = task_at(record);
    found->second.pop_back();
  }

  /// The task its thread was at.
  TaskId task_at(const MemoryRecord& record) const {
    const std::vector<TaskId>& tasks = draft_.thread_tasks[record.thread];
    const auto behind = std::upper_bound(tasks.begin(), tasks.end(), record.time_ns,
                                         [&](std::int64_t t, TaskId task) {
                                           return t < draft_.recorded.start[index(task)].count();
                                         });
    if (behind == tasks.begin()) return tasks.empty() ? draft_.origin : tasks.front();
    return *std::prev(behind);
  }

  /// All that was in use when the recording began, the blocks that are freed in it included.
  void set_initial_levels() {
    std::vector<Bytes>& initial = draft_.graph.initial_memory();
    for (const auto& [device, level] : levels_) {
      if (device < 0 || device >= 64) continue;
      const auto number = static_cast<std::size_t>(device);
      if (initial.size() <= number) initial.resize(number + 1);
      initial[number] = Bytes{std::max<std::int64_t>(level, 0)};
    }
  }

  Draft& draft_;
  std::map<Key, std::vector<std::size_t>> live_;
  std::map<std::int32_t, std::int64_t> levels_;  ///< Before the first event of a device.
};

}  // namespace

void connect_memory(Draft& draft) {
  if (draft.trace.memory.empty()) return;
  Pairing(draft).pair();
}

}  // namespace foretrace::infer_detail
