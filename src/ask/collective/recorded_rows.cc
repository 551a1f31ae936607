#include "ask/collective/recorded_rows.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "ask/job/job.h"
#include "base/statistics.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Bytes of the recorded collectives of a rank, by task.
using Sizes = std::map<TaskId, Bytes>;

Sizes sizes_of(const Graph& graph) {
  Sizes sizes;
  for (const RecordedCollective& collective : graph.collectives())
    sizes[collective.task] = collective.bytes;
  return sizes;
}

}  // namespace

bool is_recording(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return true;
  return path.ends_with(".gz") || path.ends_with(".ftrace") || path.ends_with(".zst");
}

std::vector<MeasuredCollective> recorded_rows(const std::string& path, std::uint32_t per_node) {
  const Job job = read_job(path, {.joining = Joining::required});
  std::vector<Sizes> sizes;
  for (const Rank& rank : job.ranks) sizes.push_back(sizes_of(rank.inference.graph));
  std::vector<MeasuredCollective> rows;
  for (const MatchedCollective& collective : job.join.collectives) {
    const std::optional<Operation> operation = operation_recorded_as(collective.operation);
    if (!operation || collective.members.empty()) continue;
    const CollectiveMember& first = collective.members.front();
    MeasuredCollective row{.operation = *operation,
                           .ranks = static_cast<std::uint32_t>(collective.members.size())};
    row.nodes = std::max(1U, (row.ranks + per_node - 1) / per_node);
    row.bytes = sizes[job.world[first.rank].recorded][first.task];
    std::vector<double> transfers;
    for (const CollectiveMember& member : collective.members) {
      if (!member.left_early)
        transfers.push_back(static_cast<double>((member.recorded - member.skew).count()) / 1e3);
    }
    row.us = median(transfers);
    if (row.bytes > Bytes{} && row.us > 0) rows.push_back(row);
  }
  if (rows.empty())
    throw Error(path +
                ": has no collective of several ranks with its size; record all ranks with "
                "PyTorch's record_shapes=True");
  return rows;
}

}  // namespace foretrace
