#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

// In characters; a wider picture is unreadable, and is cut off.
constexpr std::size_t kWidest = 100'000;

char letter_of(std::string_view name) {
  const char first = name.empty() ? '#' : name.front();
  return first > ' ' && first <= '~' && first != '.' && first != '|' ? first : '?';
}

class AsciiTimeline {
 public:
  AsciiTimeline(const Graph& graph, const Timeline& timeline, Nanoseconds tick)
      : graph_(graph), timeline_(timeline), tick_(tick), width_(column(timeline.length)) {}

  std::string draw() const {
    std::size_t name_width = 0;
    each_lane(
        [&](LaneId lane) { name_width = std::max(name_width, graph_.lane(lane).name.size()); });
    std::string text;
    each_lane([&](LaneId lane) {
      std::string name = graph_.lane(lane).name;
      for (const std::string& row : rows_of(lane)) {
        text += fmt::format("{}{} |{}|\n", name, std::string(name_width - name.size(), ' '), row);
        name.clear();
      }
    });
    return text;
  }

 private:
  template <class Visit>
  void each_lane(const Visit& visit) const {
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      const LaneId lane{i};
      if (graph_.lane(lane).kind == LaneKind::origin) continue;
      if (graph_.first(lane) != kNoTask) visit(lane);
    }
  }

  /// The border between two characters that is nearest to `time`.
  std::size_t column(Nanoseconds time) const {
    const auto nearest = (time + tick_ / 2) / tick_;
    return std::min(static_cast<std::size_t>(std::max<std::int64_t>(nearest, 0)), kWidest);
  }

  std::vector<TaskId> by_start(LaneId lane) const {
    std::vector<TaskId> tasks;
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      tasks.push_back(task);
    }
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      return timeline_.start[index(a)] < timeline_.start[index(b)];
    });
    return tasks;
  }

  /// Tasks that overlap in time get separate rows.
  std::vector<std::string> rows_of(LaneId lane) const {
    std::vector<std::string> rows(1, std::string(width_, '.'));
    std::vector<Nanoseconds> free_from(1, Nanoseconds::min());
    for (const TaskId task : by_start(lane)) {
      const Nanoseconds start = timeline_.start[index(task)];
      const Nanoseconds finish = timeline_.finish[index(task)];
      if (start == finish) continue;
      std::size_t row = 0;
      while (row < rows.size() && free_from[row] > start) ++row;
      if (row == rows.size()) {
        rows.emplace_back(width_, '.');
        free_from.emplace_back();
      }
      free_from[row] = finish;
      const std::size_t from = column(start);
      rows[row].replace(from, column(finish) - from, column(finish) - from,
                        letter_of(graph_.name(task)));
    }
    return rows;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  Nanoseconds tick_;
  std::size_t width_;
};

}  // namespace

std::string to_ascii(const Graph& graph, const Timeline& timeline, Nanoseconds tick) {
  CHECK(tick > 0ns);
  return AsciiTimeline(graph, timeline, tick).draw();
}

}  // namespace foretrace
