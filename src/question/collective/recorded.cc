#include "question/collective/recorded.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "foretrace/error.h"
#include "import/inspector/inspector.h"
#include "job/job.h"
#include "question/collective/recorded_times.h"

namespace foretrace {
namespace {

/// Operation, group and bytes.
using RecordedKey = std::tuple<std::string, std::string, std::int64_t>;

class RecordedTable {
 public:
  RecordedTable(const JobRanks& job, std::uint32_t per_node) : job_(job), per_node_(per_node) {}

  std::vector<RecordedCollectives> collect() {
    for (std::size_t i = 0; i < job_.ranks.size(); ++i) find_tasks(i);
    for (const MatchedCollective& collective : job_.join.collectives) add_matched(collective);
    for (std::size_t i = 0; i < job_.ranks.size(); ++i) add_alone(i);
    std::vector<RecordedCollectives> rows;
    for (const auto& [key, times] : times_) {
      const auto& [operation, group, bytes] = key;
      rows.push_back(times.row(operation, group, {bytes}));
    }
    sort_rows(rows);
    return rows;
  }

 private:
  const Inference& inference(std::size_t rank) const { return job_.ranks[rank].inference; }

  void find_tasks(std::size_t rank) {
    for (const RecordedCollective& collective : inference(rank).graph.collectives())
      by_task_[{rank, collective.task}] = &collective;
  }

  std::string operation_of(std::size_t rank, const RecordedCollective& collective) const {
    const std::string_view name = inference(rank).graph.names()[collective.operation];
    const auto operation = operation_recorded_as(name);
    return std::string(operation ? to_string(*operation) : name);
  }

  void add_matched(const MatchedCollective& collective) {
    const CollectiveMember& last = collective.members[collective.last];
    const std::size_t rank = job_.world[last.rank].recorded;
    const RecordedCollective& recorded = *by_task_.at({rank, last.task});
    RecordedTimes& times =
        times_[{operation_of(rank, recorded), collective.group, recorded.bytes.count}];
    times.ranks = static_cast<std::uint32_t>(collective.members.size());
    std::set<std::uint32_t> nodes;
    for (const CollectiveMember& member : collective.members) {
      const auto number = static_cast<std::uint32_t>(job_.world[member.rank].number);
      nodes.insert(per_node_ > 0 ? number / per_node_ : 0);
      times.kernels.push_back(member.recorded);
      by_task_.erase({job_.world[member.rank].recorded, member.task});
    }
    times.nodes = static_cast<std::uint32_t>(nodes.size());
    ++times.count;
    if (collective.arrival_skew > 0ns) ++times.last[job_.world[last.rank].number];
    times.skews.push_back(collective.arrival_skew);
    times.transfers.push_back(last.recorded);
  }

  /// Adds the collectives of a rank that no other rank recorded.
  void add_alone(std::size_t rank) {
    const Graph& graph = inference(rank).graph;
    const Timeline& ran = inference(rank).recorded;
    for (const RecordedCollective& collective : graph.collectives()) {
      if (!by_task_.contains({rank, collective.task})) continue;
      const std::string_view members = graph.names()[collective.members];
      std::string group(members.empty() ? graph.names()[collective.group] : members);
      if (group.starts_with('[') && group.ends_with(']'))
        group = "ranks " + group.substr(1, group.size() - 2);
      RecordedTimes& times =
          times_[{operation_of(rank, collective), group, collective.bytes.count}];
      times.ranks = static_cast<std::uint32_t>(std::max(0, collective.group_size));
      if (per_node_ > 0) times.nodes = std::max(1U, (times.ranks + per_node_ - 1) / per_node_);
      times.kernels.push_back(ran.finish[index(collective.task)] -
                              ran.start[index(collective.task)]);
      ++times.count;
    }
  }

  const JobRanks& job_;
  std::uint32_t per_node_;
  /// Recorded collectives that no row counts yet.
  std::map<std::pair<std::size_t, TaskId>, const RecordedCollective*> by_task_;
  std::map<RecordedKey, RecordedTimes> times_;
};

/// Number of devices of the machine that are near each other: on one host, or in one NVLink domain.
/// Returns 0 without a machine. Throws Error as find_cluster() does.
std::uint32_t devices_per_node(const CollectiveQuestion& question) {
  if (question.machine.empty()) return 0;
  const Cluster cluster = find_cluster(question.machine, 1);
  return static_cast<std::uint32_t>(
      std::max({1, cluster.facts.devices_per_host, cluster.facts.devices_per_nvlink_domain}));
}

Recording traced_in(const CollectiveQuestion& question, const std::string& path) {
  const JobRanks job = read_job(path, {.memory = false, .joining = Joining::required});
  Recording recording;
  recording.rows = RecordedTable(job, devices_per_node(question)).collect();
  Notes all;
  for (const Rank& rank : job.ranks) all.merge(rank.import_notes);
  for (const Note& note : all.all()) {
    if (note.severity == Severity::warning)
      recording.notes.add(note.severity, note.text, note.example, note.count);
  }
  if (recording.rows.empty())
    throw Error(path + ": has no collective" +
                (recording.notes.empty() ? "; record ranks of a job that uses NCCL or RCCL"
                                         : ": " + recording.notes.all().front().text));
  recording.assumptions.emplace_back(
      "transfer is the kernel of the rank that entered last, from its entry to its own exit; skew "
      "is from the first entry to the last, on clocks that common ends relate; of several "
      "collectives, the lower of the middle two counts");
  const auto alone = std::ranges::count_if(
      recording.rows, [](const auto& row) { return !row.transfer.has_value(); });
  if (alone > 0)
    recording.assumptions.push_back(fmt::format(
        "{} of {} rows {} recorded by one rank alone, which has no skew: its kernels include the "
        "wait for the others, so that neither transfer nor bandwidth is known; record all ranks",
        alone, recording.rows.size(), alone == 1 ? "was" : "were"));
  return recording;
}

}  // namespace

bool is_recording(const std::string& path) {
  constexpr std::string_view kEndings[] = {".gz", ".ftrace", ".zst", ".json", ".sqlite"};
  std::error_code none;
  return std::filesystem::is_directory(path, none) ||
         std::ranges::any_of(kEndings, [&](auto ending) { return path.ends_with(ending); }) ||
         holds_inspector_log(path);
}

Recording recorded_in(const CollectiveQuestion& question, const std::string& path) {
  return holds_inspector_log(path) ? inspected_in(question, path) : traced_in(question, path);
}

std::vector<MeasuredCollective> measured_in(const std::string& path,
                                            const std::vector<RecordedCollectives>& recorded) {
  std::vector<MeasuredCollective> rows;
  for (const RecordedCollectives& one : recorded) {
    const auto operation = operation_recorded_as(one.operation);
    if (!operation || !one.transfer || one.bytes <= Bytes{} || one.transfer->typical <= 0ns)
      continue;
    rows.push_back({.operation = *operation,
                    .ranks = one.ranks,
                    .nodes = one.nodes,
                    .bytes = one.bytes,
                    .us = static_cast<double>(one.transfer->typical.count()) / 1e3});
  }
  if (rows.empty())
    throw Error(path +
                ": has no collective of several ranks with its size; record all ranks, with "
                "PyTorch's record_shapes=True if it is a trace");
  return rows;
}

void price_recorded(const CollectiveQuestion& question, const Calibration* calibration,
                    std::vector<RecordedCollectives>& recorded) {
  if (question.machine.empty()) return;
  std::map<std::pair<std::uint32_t, std::uint32_t>, MachinePricing> shapes;
  for (RecordedCollectives& row : recorded) {
    const auto operation = operation_recorded_as(row.operation);
    if (!operation || row.ranks < 2 || row.bytes <= Bytes{}) continue;
    const std::int64_t per_node = (row.ranks + row.nodes - 1) / row.nodes;
    const auto found =
        shapes.try_emplace({row.ranks, row.nodes}, question, row.ranks, per_node, calibration)
            .first;
    row.priced = found->second.price({.operation = *operation}, row.bytes).time;
  }
}

}  // namespace foretrace
