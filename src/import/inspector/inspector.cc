#include "import/inspector/inspector.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/contains.h"
#include "base/json_text.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "import/files/trace_file.h"

namespace foretrace {
namespace {

constexpr std::string_view kPrefix = "nccl_";
/// Longer times are impossible.
constexpr double kMaxLoggedMicroseconds = 1e12;
/// Higher bandwidths are impossible.
constexpr double kMaxLoggedGigabytes = 1e9;

/// The value of a label, or nothing: `labels` is `gpu="GPU0",nranks="4"`. No value that is read has
/// a quote in it.
std::string_view label(std::string_view labels, std::string_view name) {
  for (std::size_t at = 0; at < labels.size();) {
    const std::size_t equals = labels.find("=\"", at);
    if (equals == labels.npos) break;
    const std::size_t end = labels.find('"', equals + 2);
    if (end == labels.npos) break;
    if (labels.substr(at, equals - at) == name) return labels.substr(equals + 2, end - equals - 2);
    at = end + 1;
    if (at < labels.size() && labels[at] == ',') ++at;
  }
  return {};
}

/// The value of the label that one of two versions has.
std::string_view label(std::string_view labels, std::string_view name, std::string_view other) {
  const std::string_view found = label(labels, name);
  return found.empty() ? label(labels, other) : found;
}

std::uint32_t count(std::string_view text) { return parse_number<std::uint32_t>(text).value_or(0); }

/// NCCL Inspector's text for Prometheus: the latest figures of each rank, communicator, operation
/// and class of sizes.
///
///     nccl_bus_bandwidth_gbs{gpu="GPU0",nranks="4",collective="AllReduce",...} 678.263
///     nccl_collective_exec_time_microseconds{gpu="GPU0",nranks="4",...} 9498.47
///
/// Figures with the same labels belong together, so they are kept until the end.
class InspectorText {
 public:
  static bool begins(std::string_view head);
  /// Returns false if the line is no figure.
  bool read(std::string_view line);
  /// Visits those with a time, in the order of their labels.
  void each(const std::function<void(const InspectedOperation&)>& visit) const;

 private:
  struct Figures {
    double microseconds = 0, bus_gigabytes = 0;
  };
  std::map<std::string, Figures, std::less<>> figures_;  ///< By labels, as text.
};
bool InspectorText::begins(std::string_view head) {
  return (head.starts_with(kPrefix) || head.starts_with('#')) &&
         contains_any(head, {"nccl_bus_bandwidth_gbs{", "nccl_collective_exec_time_microseconds{",
                             "nccl_p2p_bus_bandwidth_gbs{", "nccl_p2p_exec_time_microseconds{"});
}

bool InspectorText::read(std::string_view line) {
  const std::size_t open = line.find('{'), close = line.rfind('}');
  if (!line.starts_with(kPrefix) || open == line.npos || close == line.npos || close < open)
    return false;
  const std::string_view metric = line.substr(0, open);
  std::string_view rest = line.substr(close + 1);
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  const auto value = parse_number<double>(rest.substr(0, rest.find(' ')));
  if (!value || !(*value >= 0) || !std::isfinite(*value)) return false;
  const auto found = figures_.try_emplace(std::string(line.substr(open + 1, close - open - 1)));
  if (metric.ends_with("_exec_time_microseconds"))
    found.first->second.microseconds = *value;
  else if (metric.ends_with("_bus_bandwidth_gbs"))
    found.first->second.bus_gigabytes = *value;
  return true;
}

void InspectorText::each(const std::function<void(const InspectedOperation&)>& visit) const {
  for (const auto& [labels, figures] : figures_) {
    const std::string_view message = label(labels, "p2p_operation");
    InspectedOperation found{.operation = std::string(label(labels, "collective", "p2p_operation")),
                             .is_point_to_point = !message.empty(),
                             .communicator = std::string(label(labels, "comm_id", "comm_name")),
                             .name = std::string(label(labels, "comm_name")),
                             .rank = count(label(labels, "rank")),
                             .ranks = count(label(labels, "nranks", "n_ranks")),
                             .nodes = count(label(labels, "n_nodes")),
                             .number = {},
                             .bytes = {},
                             .bus_bandwidth = figures.bus_gigabytes * 1e9};
    if (figures.microseconds <= 0 || figures.microseconds > kMaxLoggedMicroseconds ||
        figures.bus_gigabytes > kMaxLoggedGigabytes || found.operation.empty() ||
        found.rank >= found.ranks || found.nodes == 0 || found.nodes > found.ranks)
      continue;
    found.time = from_microseconds(figures.microseconds);
    visit(found);
  }
}

using Json = nlohmann::json;

/// Longer than any record; the rest of a longer line is dropped.
constexpr std::size_t kMaxLine = std::size_t{1} << 20;
/// No job has more ranks.
constexpr std::int64_t kMaxLoggedRanks = std::int64_t{1} << 24;
/// A folder whose first files are other ones is no folder of logs.
constexpr std::size_t kMaxSniffed = 16;
constexpr std::string_view kVersion = "inspector_output_format_version";

/// Lines of a source, one at a time.
class Lines {
 public:
  explicit Lines(Source& bytes) : bytes_(bytes), block_(std::size_t{1} << 16, '\0') {}

  /// Returns false at the end.
  bool next(std::string& line) {
    line.clear();
    has_break_ = false;
    while (at_ < filled_ || fill()) {
      const std::string_view rest(block_.data() + at_, filled_ - at_);
      const std::size_t end = rest.find('\n');
      const std::string_view part = rest.substr(0, end);
      line += part.substr(0, std::min(part.size(), kMaxLine - line.size()));
      at_ += part.size();
      if (end == rest.npos) continue;
      ++at_, has_break_ = true;
      break;
    }
    if (!has_break_ && line.empty()) return false;
    ++number_;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }

  std::int64_t number() const { return number_; }
  /// Whether the line ended with a line break, not with the file.
  bool has_break() const { return has_break_; }

 private:
  bool fill() {
    at_ = 0, filled_ = bytes_.read(block_.data(), block_.size());
    return filled_ > 0;
  }

  Source& bytes_;
  std::string block_;
  std::size_t at_ = 0, filled_ = 0;
  std::int64_t number_ = 0;
  bool has_break_ = false;
};

/// The member of an object, or null.
const Json& member(const Json& json, const char* key) {
  static const Json none;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() ? *found : none;
}

std::string text_in(const Json& json, const char* key) {
  const Json& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// A whole number from `least` to `most`, or nullopt.
std::optional<std::int64_t> number_in(const Json& json, const char* key, std::int64_t least,
                                      std::int64_t most = INT64_MAX / 1000) {
  const Json& value = member(json, key);
  if (!value.is_number_integer() && !value.is_number_unsigned()) return {};
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return {};
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return {};
  return number;
}

/// Reads one log and counts what it leaves out.
class LogReader {
 public:
  LogReader(const TraceFile& file, Notes& notes,
            const std::function<void(const InspectedOperation&)>& visit)
      : file_(file), notes_(notes), visit_(visit) {}

  void read() {
    const std::unique_ptr<PeekedSource> bytes = file_.open();
    Lines lines(*bytes);
    InspectorText metrics;
    for (std::string line; lines.next(line);) {
      place_ = fmt::format("{}, line {}", file_.path(), lines.number());
      const std::size_t start = line.find_first_not_of(" \t");
      if (start == line.npos || line[start] == '#') continue;
      const bool is_read = line[start] == '{' ? read_record(line) : metrics.read(line);
      if (!is_read)
        leave_out(lines.has_break() ? "lines that are no record of NCCL Inspector are left out"
                                    : "the last line is cut off and left out");
    }
    metrics.each(visit_);
    if (const std::string damage = bytes->damage(); !damage.empty())
      notes_.add(Severity::warning, "logs end too early: " + damage, file_.path());
  }

 private:
  void leave_out(std::string_view why) { notes_.add(Severity::warning, why, place_); }

  /// Returns false if the line is not JSON or another program's.
  bool read_record(const std::string& line) {
    const Json json = try_parse_json<Json>(line);
    const Json& collective = member(json, "coll_perf");
    const Json& message = member(json, "p2p_perf");
    if (collective.is_object())
      add(json, collective, "coll");
    else if (message.is_object())
      add(json, message, "p2p");
    else
      return false;
    return true;
  }

  /// The name of a field is that of its kind, `prefix`, and what it says.
  void add(const Json& json, const Json& record, const std::string& prefix) {
    const Json& header = member(json, "header");
    const auto field = [&](const char* what) { return prefix + what; };
    const auto ranks = number_in(header, "n_ranks", 1, kMaxLoggedRanks);
    const auto rank = number_in(header, "rank", 0, ranks.value_or(0) - 1);
    const auto nodes = number_in(header, "nnodes", 1, ranks.value_or(0));
    const auto number = number_in(record, field("_sn").c_str(), 0, INT64_MAX);
    const auto bytes = number_in(record, field("_msg_size_bytes").c_str(), 0);
    const auto time = number_in(record, field("_exec_time_us").c_str(), 0);
    InspectedOperation found;
    found.operation = text_in(record, prefix.c_str()), found.is_point_to_point = prefix == "p2p";
    found.communicator = text_in(header, "id"), found.name = text_in(header, "comm_name");
    if (!ranks || !rank || !nodes || !number || !bytes || !time || found.operation.empty() ||
        found.communicator.empty())
      return leave_out(fmt::format(
          "records without id, rank, n_ranks, nnodes, {0}, {0}_sn, {0}_msg_size_bytes or "
          "{0}_exec_time_us, or with impossible ones, are left out",
          prefix));
    if (text_in(record, field("_timing_source").c_str()) == "collective_cpu")
      return leave_out(
          "records that time the call on the host (collective_cpu), not the kernel, are left out");
    note_version(text_in(member(json, "metadata"), kVersion.data()));
    found.rank = static_cast<std::uint32_t>(*rank);
    found.ranks = static_cast<std::uint32_t>(*ranks);
    found.nodes = static_cast<std::uint32_t>(*nodes);
    found.number = number, found.bytes = Bytes{*bytes}, found.time = Nanoseconds(*time * 1000);
    visit_(found);
  }

  void note_version(const std::string& version) {
    if (!version.starts_with("v4."))
      notes_.add(Severity::warning,
                 "records of another version of the format than v4 are read as v4",
                 place_ + ": " + version);
  }

  const TraceFile& file_;
  Notes& notes_;
  const std::function<void(const InspectedOperation&)>& visit_;
  std::string place_;
};

bool begins_like_log(const TraceFile& file) {
  try {
    const std::string_view head = file.head();
    const std::size_t start = std::min(head.size(), head.find_first_not_of(" \t\r\n"));
    const std::string_view text = head.substr(start);
    return text.starts_with('{') ? contains(text, kVersion) : InspectorText::begins(text);
  } catch (const Error&) {
    return false;
  }
}

/// The regular files of a folder by name, or the file itself.
std::vector<std::string> log_files(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, none))
    if (entry.is_regular_file(none)) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

}  // namespace

bool holds_inspector_log(const std::string& path) {
  std::vector<std::string> files = log_files(path);
  files.resize(std::min(files.size(), kMaxSniffed));
  return std::ranges::any_of(
      files, [](const std::string& file) { return begins_like_log(TraceFile(file)); });
}

void read_inspector_log(const std::string& path, Notes& notes,
                        const std::function<void(const InspectedOperation&)>& visit) {
  for (const std::string& name : log_files(path)) {
    const TraceFile file(name);
    if (begins_like_log(file))
      LogReader(file, notes, visit).read();
    else
      notes.add(Severity::warning, "files that are no log of NCCL Inspector are left out", name);
  }
}

}  // namespace foretrace
