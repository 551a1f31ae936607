#include "report/pipeline/drawing.h"

#include <algorithm>
#include <cctype>
#include <fmt/core.h>

#include "base/wording.h"

namespace foretrace {
namespace {

/// Most columns of a drawing. A wider one shows kEndColumns at its begin and at its end.
constexpr std::size_t kMostColumns = 180, kEndColumns = 88;
/// Most characters of all ranks before the middle is left out. Beyond that, passes are drawn
/// without room for their names.
constexpr std::size_t kMostCharacters = 20'000'000;

std::string label_of(const PipelineAction& action) {
  const char letter =
      action.alternate ? static_cast<char>(std::tolower(static_cast<unsigned char>(action.letter)))
                       : action.letter;
  if (action.letter == 'U') return {letter};
  return letter + std::to_string(action.micro_batch);
}

/// How a drawing maps time to columns.
struct Scale {
  Nanoseconds tick{1};
  std::int64_t columns = 1;  ///< Characters per tick.
  std::size_t column(Nanoseconds time) const {
    return static_cast<std::size_t>((time.count() * columns + tick.count() / 2) / tick.count());
  }
};

/// Returns a scale on which the shortest pass has room for the longest label.
Scale scale_of(const PipelineReport& report) {
  Nanoseconds shortest = Nanoseconds::max();
  std::size_t widest = 1;
  for (const PipelineRank& rank : report.ranks) {
    for (const PipelineAction& action : rank.actions) {
      if (action.finish > action.start) shortest = std::min(shortest, action.finish - action.start);
      widest = std::max(widest, label_of(action).size());
    }
  }
  const Scale cells{shortest, static_cast<std::int64_t>(widest + 1)};
  const auto ticks = static_cast<std::size_t>(report.makespan / shortest) + 1;
  if (ticks <= kMostCharacters / (widest + 1) / report.ranks.size()) return cells;
  return {std::max(Nanoseconds(1), report.makespan), kMostColumns};
}

std::string draw_rank(const PipelineRank& rank, const Scale& scale, std::size_t width) {
  std::string line(width, '.');
  for (const PipelineAction& action : rank.actions) {
    const std::size_t from = scale.column(action.start), to = scale.column(action.finish);
    if (to <= from) continue;
    const std::string label = label_of(action);
    // A cell ends in a blank if there is room, so that neighbours stay apart.
    std::string cell(to - from, label.front());
    if (label.size() <= cell.size()) {
      std::fill(cell.begin(), cell.end(), '-');
      if (label.size() < cell.size()) cell.back() = ' ';
      std::copy(label.begin(), label.end(), cell.begin());
    }
    line.replace(from, cell.size(), cell);
  }
  return line;
}

}  // namespace

std::string draw_pipeline(const PipelineReport& report) {
  const Scale scale = scale_of(report);
  const std::size_t width = scale.column(report.makespan);
  const std::size_t digits = std::to_string(report.ranks.size() - 1).size();
  std::string text;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    std::string line = draw_rank(report.ranks[i], scale, width);
    if (width > kMostColumns) line.replace(kEndColumns, width - 2 * kEndColumns, " ~~ ");
    text += fmt::format("rank {:<{}} |{}|\n", i, digits, line);
  }
  return text;
}

Table pipeline_table(const PipelineReport& report) {
  bool has_bytes = false, has_versions = false;
  for (const PipelineRank& rank : report.ranks) {
    has_bytes |= rank.peak_activations.count > 0 || rank.parameters.count > 0;
    has_versions |= rank.versions > 1;
  }
  Table table{.heading = {"rank", "busy", "span", "idle", "in flight"}, .rows = {}, .left = {0}};
  if (has_versions) table.heading.push_back("versions");
  if (has_bytes) table.heading.insert(table.heading.end(), {"activations", "parameters"});
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const PipelineRank& rank = report.ranks[i];
    const double idle = rank.span == 0ns ? 0
                                         : 1 - static_cast<double>(rank.busy.count()) /
                                                   static_cast<double>(rank.span.count());
    std::vector<std::string> cells = {std::to_string(i), to_text(rank.busy), to_text(rank.span),
                                      to_share(idle), std::to_string(rank.peak_in_flight)};
    if (has_versions) cells.push_back(std::to_string(rank.versions));
    if (has_bytes) {
      cells.push_back(to_text(rank.peak_activations));
      cells.push_back(to_text(rank.parameters));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string pipeline_heading(const PipelineReport& report) {
  std::string text = fmt::format("{}: {}", report.schedule, counted(report.ranks.size(), "rank"));
  if (report.chunks > 1) text += fmt::format(" with {} each", counted(report.chunks, "chunk"));
  return fmt::format("{}, {}", text, counted(report.micro_batches, "micro-batch"));
}

std::string pipeline_legend(const PipelineReport& report) {
  constexpr std::pair<char, std::string_view> kMeanings[] = {{'F', "F forward"},
                                                             {'B', "B backward"},
                                                             {'I', "I input gradient"},
                                                             {'W', "W weight gradient"},
                                                             {'U', "U update"}};
  std::string letters;
  bool has_alternate = false;
  for (const PipelineRank& rank : report.ranks) {
    for (const PipelineAction& action : rank.actions) {
      if (letters.find(action.letter) == std::string::npos) letters += action.letter;
      has_alternate |= action.alternate;
    }
  }
  std::string text;
  for (const auto& [letter, meaning] : kMeanings) {
    if (letters.find(letter) == std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + std::string(meaning);
  }
  if (has_alternate)
    text += report.chunks > 1 ? "; small letters: every other chunk of a rank"
                              : "; small letters: the pipeline that goes up the ranks";
  return text;
}

}  // namespace foretrace
