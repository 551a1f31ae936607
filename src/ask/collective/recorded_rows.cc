#include "ask/collective/recorded_rows.h"

#include <algorithm>
#include <filesystem>

#include "ask/job/job.h"
#include "base/statistics.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// As c10d and NCCL name them, in any case, within longer words ("_allgather_base").
constexpr std::pair<std::string_view, Operation> kWords[] = {
    {"allreduce", Operation::all_reduce},         {"allgather", Operation::all_gather},
    {"all_gather", Operation::all_gather},        {"reduce_scatter", Operation::reduce_scatter},
    {"reducescatter", Operation::reduce_scatter}, {"all_to_all", Operation::all_to_all},
    {"alltoall", Operation::all_to_all},          {"broadcast", Operation::broadcast},
};

std::optional<Operation> operation_of(const std::string& recorded) {
  for (const auto& [word, operation] : kWords) {
    if (recorded.find(word) != std::string::npos) return operation;
  }
  return std::nullopt;
}

/// Bytes of an element by c10d's name of its type; 0 if that is unknown.
std::int64_t element_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
      {"Double", 8}, {"Long", 8}, {"Float", 4}, {"Int", 4},  {"BFloat16", 2},
      {"Half", 2},   {"Byte", 1}, {"Char", 1},  {"Bool", 1}, {"ComplexFloat", 8},
  };
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return type.starts_with("Float8") ? 1 : 0;
}

/// The whole buffer, as nccl-tests counts: the larger of what goes in and what comes out.
std::int64_t bytes_of(const Rank& rank, TaskId task) {
  const std::uint32_t record = rank.inference.graph.task(task).record;
  if (!rank.trace || record >= rank.trace->devices.size()) return 0;
  const std::uint32_t place = rank.trace->devices[record].details;
  if (place >= rank.trace->collectives.size()) return 0;
  const CollectiveDetails& details = rank.trace->collectives[place];
  return std::max(details.in_elements, details.out_elements) *
         element_bytes(rank.trace->names[details.dtype]);
}

}  // namespace

bool is_recording(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return true;
  return path.ends_with(".gz") || path.ends_with(".ftrace") || path.ends_with(".zst");
}

std::vector<MeasuredCollective> recorded_rows(const std::string& path, std::uint32_t per_node) {
  const Job job = read_job(path, {.keep_traces = true, .joining = Joining::required});
  std::vector<MeasuredCollective> rows;
  for (const Meeting& meeting : job.join.meetings) {
    const std::optional<Operation> operation = operation_of(meeting.operation);
    if (!operation || meeting.members.empty()) continue;
    const MeetingMember& first = meeting.members.front();
    MeasuredCollective row{.operation = *operation,
                           .ranks = static_cast<std::uint32_t>(meeting.members.size())};
    row.nodes = std::max(1U, (row.ranks + per_node - 1) / per_node);
    row.bytes.count = bytes_of(job.ranks[job.world[first.rank].recorded], first.task);
    std::vector<double> transfers;
    for (const MeetingMember& member : meeting.members) {
      if (!member.left_early)
        transfers.push_back(static_cast<double>((member.recorded - member.skew).count()) / 1e3);
    }
    row.us = median(transfers);
    if (row.bytes.count > 0 && row.us > 0) rows.push_back(row);
  }
  if (rows.empty())
    throw Error(path +
                ": has no collective of several ranks with its size; record all ranks with "
                "PyTorch's record_shapes=True");
  return rows;
}

}  // namespace foretrace
