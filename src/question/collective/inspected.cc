// The collectives in logs of NCCL Inspector. Each rank logs how long its kernel took, not when it
// ran. All ranks of a collective leave it together, so that the shortest kernel is that of the rank
// that entered last, and the longest waited for it:
//
//     rank 0   ~~~~~~~~TTTTT     ~ waits for others
//     rank 1         ~~TTTTT
//     rank 2           TTTTT     T transfer: the shortest kernel
//              |------|          skew: the longest less the shortest

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/wording.h"
#include "foretrace/error.h"
#include "import/inspector/inspector.h"
#include "question/collective/recorded.h"
#include "question/collective/recorded_times.h"

namespace foretrace {
namespace {

/// More bytes than any device has are an error of the file.
constexpr double kMaxBytes = 1e15;

/// A kernel of a rank.
struct InspectedKernel {
  std::int64_t number = 0;  ///< Of its collective in the communicator.
  std::uint32_t rank = 0;
  Nanoseconds time{0};
};

/// Operation, communicator and bytes.
using InspectedKey = std::tuple<std::string, std::string, std::int64_t>;

struct InspectedGroup {
  std::uint32_t ranks = 1, nodes = 1;
  bool has_numbers = false;
  std::vector<InspectedKernel> kernels;
};

std::string operation_name(const InspectedOperation& found) {
  const auto known = operation_recorded_as(found.operation);
  if (found.is_point_to_point) return found.operation == "Send" ? "send" : "recv";
  return known ? std::string(to_string(*known)) : found.operation;
}

/// The whole buffer, as nccl-tests counts it; 0 if unknown.
Bytes whole_buffer(const InspectedOperation& found) {
  const auto known = operation_recorded_as(found.operation);
  if (!known || known == Operation::all_to_all) return {};
  double bytes = 0;
  if (found.bytes) {
    const bool is_part = known == Operation::all_gather || known == Operation::reduce_scatter;
    bytes = static_cast<double>(found.bytes->count) * (is_part ? found.ranks : 1);
  } else if (const double factor = bus_factor(*known, found.ranks); factor > 0) {
    bytes = found.bus_bandwidth / factor * static_cast<double>(found.time.count()) * 1e-9;
  }
  return {bytes < kMaxBytes ? std::llround(bytes) : 0};
}

class InspectedTable {
 public:
  explicit InspectedTable(std::uint32_t hosts_per_node) : hosts_per_node_(hosts_per_node) {}

  void add(const InspectedOperation& found) {
    InspectedGroup& group =
        groups_[{operation_name(found), found.communicator, whole_buffer(found).count}];
    names_[found.name].insert(found.communicator);
    name_of_[found.communicator] = found.name;
    group.ranks = found.ranks;
    group.nodes = (found.nodes + hosts_per_node_ - 1) / hosts_per_node_;
    // The two ranks of a message may be on one host or on two.
    if (found.is_point_to_point) group.ranks = found.nodes == 1 ? 2 : 0, group.nodes = 1;
    group.has_numbers = found.number.has_value() && !found.is_point_to_point;
    group.kernels.push_back({found.number.value_or(0), found.rank, found.time});
  }

  std::vector<RecordedCollectives> rows(Notes& notes) {
    std::vector<RecordedCollectives> rows;
    for (auto& [key, group] : groups_) {
      const auto& [operation, communicator, bytes] = key;
      rows.push_back(times_of(group, notes).row(operation, label_of(communicator), {bytes}));
    }
    sort_rows(rows);
    return rows;
  }

 private:
  /// The name that the program gave, if only this communicator has it.
  std::string label_of(const std::string& communicator) const {
    const std::string& name = name_of_.at(communicator);
    if (name.empty() || name == communicator) return communicator;
    return names_.at(name).size() == 1 ? name : name + " " + communicator;
  }

  static RecordedTimes times_of(InspectedGroup& group, Notes& notes) {
    RecordedTimes times;
    times.ranks = group.ranks, times.nodes = group.nodes;
    auto& kernels = group.kernels;
    if (group.has_numbers) {
      const auto place = [](const InspectedKernel& kernel) {
        return std::pair(kernel.number, kernel.rank);
      };
      std::ranges::stable_sort(kernels, {}, place);
      const auto twice = std::ranges::unique(kernels, {}, place);
      if (!twice.empty())
        notes.add(Severity::warning, "records that come twice are left out", {}, std::ssize(twice));
      kernels.erase(twice.begin(), twice.end());
    }
    for (const InspectedKernel& kernel : kernels) times.kernels.push_back(kernel.time);
    times.count = kernels.size();
    if (group.has_numbers) times.count = 0, match(group, times);
    return times;
  }

  /// Counts the collectives, and adds those that all ranks recorded. REQUIRES: kernels are sorted.
  static void match(const InspectedGroup& group, RecordedTimes& times) {
    const auto& kernels = group.kernels;
    for (std::size_t begin = 0, end = 0; begin < kernels.size(); begin = end) {
      while (end < kernels.size() && kernels[end].number == kernels[begin].number) ++end;
      ++times.count;
      if (end - begin != group.ranks || group.ranks < 2) continue;
      const auto [last, first] = std::ranges::minmax(std::span(kernels).subspan(begin, end - begin),
                                                     {}, &InspectedKernel::time);
      times.transfers.push_back(last.time);
      times.skews.push_back(first.time - last.time);
      if (first.time > last.time) ++times.last[last.rank];
    }
  }

  std::uint32_t hosts_per_node_;
  std::map<InspectedKey, InspectedGroup> groups_;
  std::map<std::string, std::set<std::string>> names_;  ///< Communicators of each name.
  std::map<std::string, std::string> name_of_;
};

/// Hosts that one NVLink domain of the machine joins; 1 without a machine.
std::uint32_t hosts_per_node(const CollectiveQuestion& question) {
  if (question.machine.empty()) return 1;
  const HostFacts facts = find_cluster(question.machine, 1).facts;
  return static_cast<std::uint32_t>(
      std::max(1, facts.devices_per_nvlink_domain / std::max(1, facts.devices_per_host)));
}

}  // namespace

Recording inspected_in(const CollectiveQuestion& question, const std::string& path) {
  Recording recording;
  InspectedTable table(hosts_per_node(question));
  bool has_sizes = true;
  read_inspector_log(path, recording.notes, [&](const InspectedOperation& found) {
    has_sizes &= found.bytes.has_value();
    table.add(found);
  });
  recording.rows = table.rows(recording.notes);
  if (recording.rows.empty())
    throw Error(
        fmt::format("{}: has no collective{}", path,
                    recording.notes.empty() ? "" : ": " + recording.notes.all().front().text));
  recording.assumptions.emplace_back(
      "NCCL Inspector records how long kernels take, not when: transfer is the shortest kernel of "
      "a collective, that of the rank that entered last, and skew the longest less the shortest; "
      "of several collectives, the lower of the middle two counts");
  if (!has_sizes)
    recording.assumptions.emplace_back(
        "text for Prometheus has the latest figures and classes of sizes: bytes are the bus "
        "bandwidth times the time, and ranks cannot be matched; JSON logs have all records");
  const auto alone = std::ranges::count_if(
      recording.rows, [](const auto& row) { return !row.transfer.has_value(); });
  if (alone > 0)
    recording.assumptions.push_back(fmt::format(
        "{} of {} {} no collective that all ranks recorded: kernels include the wait for others, "
        "so that neither transfer nor bandwidth is known; give the folder with the logs of all "
        "ranks",
        alone, counted(recording.rows.size(), "row"), alone == 1 ? "has" : "have"));
  return recording;
}

}  // namespace foretrace
