#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "base/files/csv_rows.h"
#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "import/data_frame/data_frame.h"
#include "studies/allocate/assign.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kMaxNodes = 10'000'000;
constexpr std::size_t kMaxShown = 60;  ///< Bytes of a text in an error.
constexpr Nanoseconds kForever = Nanoseconds::max();

/// The time that a job occupies a node.
struct NodeUse {
  std::int32_t node = 0;
  Nanoseconds begin{0}, end{0};
  std::size_t line = 0;
};

class LineReader {
 public:
  explicit LineReader(const std::string& path) : file_(path), path_(path) {
    if (!file_) throw Error(path + ": cannot be read");
  }
  bool next() {
    if (!std::getline(file_, text)) return false;
    if (text.ends_with('\r')) text.pop_back();
    ++number;
    return true;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(fmt::format("{}: line {}: {}", path_, number, why));
  }
  Nanoseconds time(double seconds) const {
    constexpr double kMax = 9e9;  // Nanoseconds hold 292 years.
    if (!(seconds >= 0 && seconds <= kMax))
      refuse(
          fmt::format("must have times from 0 to 9,000,000,000 seconds, got {}", to_text(seconds)));
    return Nanoseconds(std::llround(seconds * 1e9));
  }
  std::string text;
  std::size_t number = 0;

 private:
  std::ifstream file_;
  std::string path_;
};

/// Numbers node names in order of first appearance.
class NodeNames {
 public:
  std::int32_t id(const std::string& name) {
    return ids_.try_emplace(name, static_cast<std::int32_t>(ids_.size())).first->second;
  }
  std::int32_t count() const { return static_cast<std::int32_t>(ids_.size()); }

 private:
  std::map<std::string, std::int32_t> ids_;
};

std::optional<double> number_in(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Returns the events between the first and the last change: nodes without a job are idle.
NodeLog idle_log(std::int32_t nodes, std::vector<NodeUse> busy, const std::string& path) {
  if (busy.empty()) throw Error(path + ": must have a job that ran on a node");
  std::ranges::sort(busy, {}, [](const NodeUse& use) { return std::tuple(use.node, use.begin); });
  Nanoseconds first = kForever, last{0};
  std::map<Nanoseconds, NodeEvent> events;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const NodeUse& use = busy[i];
    if (i > 0 && busy[i - 1].node == use.node && use.begin < busy[i - 1].end)
      throw Error(fmt::format("{}: lines {} and {} overlap: two jobs on one node", path,
                              std::min(busy[i - 1].line, use.line),
                              std::max(busy[i - 1].line, use.line)));
    first = std::min(first, use.begin);
    last = std::max({last, use.begin, use.end == kForever ? use.begin : use.end});
    const bool goes_on = i > 0 && busy[i - 1].node == use.node && use.begin == busy[i - 1].end;
    if (!goes_on) events[use.begin].left.push_back(use.node);
    const bool is_followed =
        i + 1 < busy.size() && busy[i + 1].node == use.node && busy[i + 1].begin == use.end;
    if (use.end != kForever && !is_followed) events[use.end].joined.push_back(use.node);
  }
  std::vector<std::int32_t>& start = events[first].joined;
  const std::set<std::int32_t> taken(events[first].left.begin(), events[first].left.end());
  for (std::int32_t node = 0; node < nodes; ++node) {
    if (!taken.contains(node)) start.push_back(node);
  }
  events[last];
  NodeLog log{.nodes = nodes, .events = {}};
  for (auto& [time, event] : events) {
    event.time = time - first;
    log.events.push_back(std::move(event));
  }
  return log;
}

/// Parses "2021-02-10T20:21:15"; returns nullopt for words such as Unknown. Throws Error if there
/// is no such time.
std::optional<Nanoseconds> time_in(const std::string& text) {
  if (text.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  std::istringstream in(text);
  int parts[6] = {};
  const char separators[] = "--T::";
  constexpr int kMax[] = {2200, 12, 31, 23, 59, 60};  // A leap second is the 60th.
  bool is_time = true;
  for (int i = 0; i < 6; ++i) {
    is_time = is_time && in >> parts[i] && parts[i] >= 0 && parts[i] <= kMax[i];
    if (i < 5) is_time = is_time && in.get() == separators[i];
  }
  using namespace std::chrono;
  const year_month_day date{year(parts[0]), month(static_cast<unsigned>(parts[1])),
                            day(static_cast<unsigned>(parts[2]))};
  if (!is_time || in.peek() != EOF || parts[0] < 1970 || !date.ok())
    throw Error(
        fmt::format("must be a time from 1970 to 2200, such as 2021-02-10T20:21:15, or Unknown, "
                    "got {}",
                    shortened(text, kMaxShown)));
  return sys_days(date).time_since_epoch() + hours(parts[3]) + minutes(parts[4]) +
         std::chrono::seconds(parts[5]);
}

/// Expands "nid[001-003,7],login1" to nid001, nid002, nid003, nid7, login1.
std::vector<std::string> expanded_nodes(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t bracket = std::min(list.find_first_of("[,", at), list.size());
    if (bracket == list.size() || list[bracket] == ',') {
      names.push_back(list.substr(at, bracket - at));
      at = bracket + 1;
      continue;
    }
    const std::size_t close = list.find(']', bracket);
    if (close == std::string::npos)
      throw Error("must close its bracket, got " + shortened(list, kMaxShown));
    std::istringstream ranges(list.substr(bracket + 1, close - bracket - 1));
    for (std::string range; std::getline(ranges, range, ',');) {
      const std::size_t dash = range.find('-');
      const std::string from = range.substr(0, dash);
      const auto begin = parse_number<std::uint32_t>(from);
      const auto end =
          dash == std::string::npos ? begin : parse_number<std::uint32_t>(range.substr(dash + 1));
      if (!begin || !end || *end < *begin)
        throw Error("must have numbers in brackets, got " + shortened(list, kMaxShown));
      if (names.size() + (*end - *begin) >= kMaxNodes)
        throw Error(fmt::format("must have at most {} nodes, got {}", grouped(kMaxNodes),
                                shortened(list, kMaxShown)));
      for (std::uint64_t i = *begin; i <= *end; ++i) {
        std::string digits = std::to_string(i);
        if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
        names.push_back(list.substr(at, bracket - at) + digits);
      }
    }
    at = close + 1 < list.size() && list[close + 1] == ',' ? close + 2 : close + 1;
  }
  return names;
}

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, separator);) {
    if (separator != ' ' || !cell.empty()) cells.push_back(cell);
  }
  return cells;
}

}  // namespace

namespace {

/// The log of BFTrainer: a table with a row for each snapshot and a column for each node, which is
/// 1 while the node is idle. Rows in which nothing changes are no events.
NodeLog read_snapshots(const std::string& path) {
  const TimedTable table = read_timed_table(path);
  std::vector<NodeEvent> events(table.times.size());
  for (std::size_t node = 0; node < table.columns.size(); ++node) {
    bool was_idle = false;
    for (std::size_t row = 0; row < events.size(); ++row) {
      const std::int8_t value = table.at(row, node);
      if (value != 0 && value != 1)
        throw Error(fmt::format("{}: row {}: {} must be 0 (busy) or 1 (idle), got {}", path, row,
                                shortened(table.columns[node], kMaxShown), value));
      if ((value == 1) == was_idle) continue;
      was_idle = value == 1;
      (was_idle ? events[row].joined : events[row].left).push_back(static_cast<std::int32_t>(node));
    }
  }
  NodeLog log{.nodes = static_cast<std::int32_t>(table.columns.size()), .events = {}};
  for (std::size_t row = 0; row < events.size(); ++row) {
    events[row].time = table.times[row] - table.times.front();
    const bool is_end = row == 0 || row + 1 == events.size();
    if (is_end || !events[row].joined.empty() || !events[row].left.empty())
      log.events.push_back(std::move(events[row]));
  }
  return log;
}

}  // namespace

NodeLog read_node_events(const std::string& path) {
  if (may_be_timed_table(path)) return read_snapshots(path);
  LineReader lines(path);
  if (!lines.next() ||
      csv_cells(lines.text) != std::vector<std::string>{"time_s", "joined", "left"})
    throw Error(path + ": must begin with time_s,joined,left");
  NodeLog log;
  NodeNames names;
  while (lines.next()) {
    const std::vector<std::string> cells = csv_cells(lines.text);
    const auto time = cells.size() == 3 ? number_in(cells[0]) : std::nullopt;
    if (!time) lines.refuse("must be a time in seconds, nodes that joined and nodes that left");
    NodeEvent event{.time = lines.time(*time)};
    if (!log.events.empty() && event.time < log.events.back().time)
      lines.refuse("must not be before the line above");
    for (const std::string& name : split(cells[1], ' ')) event.joined.push_back(names.id(name));
    for (const std::string& name : split(cells[2], ' ')) event.left.push_back(names.id(name));
    log.events.push_back(std::move(event));
  }
  log.nodes = names.count();
  if (log.nodes == 0) throw Error(path + ": must name at least one node");
  return log;
}

namespace {

/// Runs a parser of one cell, and refuses the line with the name of its column if that fails.
template <class Parse>
auto in_cell(LineReader& lines, std::string_view column, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    lines.refuse(fmt::format("{} {}", column, error.what()));
  }
}

void add_uses(const std::string& list, const NodeUse& use, NodeNames& names,
              std::vector<NodeUse>& busy) {
  for (const std::string& name : expanded_nodes(list))
    busy.push_back({names.id(name), use.begin, use.end, use.line});
  if (busy.size() > kMaxNodes)
    throw Error(fmt::format("must have at most {} nodes of jobs in all", grouped(kMaxNodes)));
}

}  // namespace

NodeLog read_sacct(const std::string& path) {
  LineReader lines(path);
  if (!lines.next()) throw Error(path + ": is empty");
  const std::vector<std::string> heading = split(lines.text, '|');
  const auto column = [&](const std::string& name) {
    return within(path, [&] { return column_of(heading, name); });
  };
  const std::size_t id = column("JobID"), start = column("Start"), end = column("End");
  const std::size_t list = column("NodeList");
  NodeNames names;
  std::vector<NodeUse> busy;
  while (lines.next()) {
    const std::vector<std::string> cells = split(lines.text, '|');
    if (cells.size() <= std::max({id, start, end, list})) lines.refuse("must have all columns");
    // Steps run inside their jobs.
    if (cells[id].find('.') != std::string::npos) continue;
    const auto begin = in_cell(lines, "Start", [&] { return time_in(cells[start]); });
    if (!begin || cells[list] == "None assigned") continue;  // The job never ran.
    const auto stated_end = in_cell(lines, "End", [&] { return time_in(cells[end]); });
    const NodeUse use{0, *begin, stated_end.value_or(kForever), lines.number};
    if (use.end < use.begin) lines.refuse("must not end before it starts");
    if (use.end == use.begin) continue;
    in_cell(lines, "NodeList", [&] { add_uses(cells[list], use, names, busy); });
  }
  return idle_log(names.count(), std::move(busy), path);
}

namespace {

/// A job of a log in the Standard Workload Format.
struct SwfJob {
  Nanoseconds begin, end;
  double processors;
  std::size_t line;
};

/// The size of the machine, as comments at the head of such a log say it; 0: unknown.
struct SwfMachine {
  double nodes = 0, processors = 0;

  void read(const std::string& comment) {
    for (const auto& [name, value] :
         {std::pair<const char*, double*>{"MaxNodes:", &nodes}, {"MaxProcs:", &processors}}) {
      const std::size_t at = comment.find(name);
      if (at != std::string::npos)
        *value = std::atof(comment.c_str() + at + std::string_view(name).size());
    }
  }
  double per_node() const { return nodes > 0 && processors > nodes ? processors / nodes : 1; }
  double all() const { return nodes > 0 ? nodes : processors; }
};

/// The job in a line; nullopt if it was cancelled, or how it ran is unknown.
std::optional<SwfJob> swf_job(LineReader& lines) {
  std::istringstream in(lines.text);
  double job = 0, submit = 0, wait = 0, run = 0, processors = 0;
  if (!(in >> job >> submit >> wait >> run >> processors))
    lines.refuse("must be numbers: job, submit, wait, run, processors, ...");
  constexpr double kUnknown = -1;
  for (const double value : {wait, run, processors}) {
    if (value < 0 && value != kUnknown)
      lines.refuse(fmt::format("must have no negative numbers but -1, got {}", to_text(value)));
  }
  if (run <= 0 || processors <= 0) return {};
  const double begin = submit + std::max(0., wait);
  return SwfJob{lines.time(begin), lines.time(begin + run), processors, lines.number};
}

/// Gives each job the free nodes with the lowest numbers. REQUIRES: jobs in order of their begins.
std::vector<NodeUse> placed(const std::vector<SwfJob>& jobs, const SwfMachine& machine,
                            const std::string& path) {
  std::set<std::int32_t> free;
  for (std::int32_t node = 0; node < static_cast<std::int32_t>(machine.all()); ++node)
    free.insert(node);
  std::vector<NodeUse> busy;
  std::multimap<Nanoseconds, std::size_t> ends;  // The values are indices into `busy`.
  for (const SwfJob& job : jobs) {
    while (!ends.empty() && ends.begin()->first <= job.begin) {
      free.insert(busy[ends.begin()->second].node);
      ends.erase(ends.begin());
    }
    const double wanted = std::ceil(job.processors / machine.per_node());
    if (wanted > static_cast<double>(free.size())) {
      std::string others = "no other";
      if (!ends.empty()) others = "line " + std::to_string(busy[ends.begin()->second].line);
      throw Error(fmt::format("{}: line {} overlaps with {}: it needs {} nodes, {} are free", path,
                              job.line, others, static_cast<std::int64_t>(wanted), free.size()));
    }
    for (double i = 0; i < wanted; ++i) {
      ends.emplace(job.end, busy.size());
      busy.push_back({*free.begin(), job.begin, job.end, job.line});
      free.erase(free.begin());
    }
  }
  return busy;
}

}  // namespace

NodeLog read_swf(const std::string& path) {
  LineReader lines(path);
  SwfMachine machine;
  std::vector<SwfJob> jobs;
  while (lines.next()) {
    if (lines.text.starts_with(';')) {
      machine.read(lines.text);
    } else if (lines.text.find_first_not_of(" \t") != std::string::npos) {
      if (const auto job = swf_job(lines)) jobs.push_back(*job);
    }
  }
  if (machine.all() < 1 || machine.all() > kMaxNodes)
    throw Error(path + ": must state the number of nodes in a line such as ; MaxNodes: 128");
  std::ranges::stable_sort(jobs, {}, &SwfJob::begin);
  return idle_log(static_cast<std::int32_t>(machine.all()), placed(jobs, machine, path), path);
}

}  // namespace foretrace
