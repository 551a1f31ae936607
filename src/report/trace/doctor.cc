#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/shown.h"
#include "foretrace/report.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

void write_finding(const Finding& finding, std::ostream& out) {
  out << '\n'
      << (finding.severity == Severity::warning ? "warning" : "remark ") << "  "
      << shown(finding.what) << '\n';
  out << "         costs  " << shown(finding.cost) << '\n';
  if (!finding.fix.empty()) out << "         fix    " << shown(finding.fix) << '\n';
}

std::string count_of(const Diagnosis& diagnosis, Severity severity, std::string_view noun) {
  return counted(diagnosis.count(severity), noun);
}

void write_replay(const Prediction& replay, std::ostream& out) {
  const Unexplained& unexplained = replay.unexplained;
  const double share = ratio(unexplained.lag, unexplained.window);
  out << "a step takes " << to_text(replay.measured.step_time) << "; the replay is "
      << to_share(replay.replay_error, 3) << " off, with " << grouped(unexplained.pinned_tasks)
      << " of " << counted(replay.tasks, "task") << " pinned and " << to_share(share, 2)
      << " of the time unexplained" << (share > 1 ? " (summed over streams)" : "") << '\n';
}

void write_rank(const Diagnosis& diagnosis, std::ostream& out) {
  out << "rank " << diagnosis.rank << " of " << diagnosis.world_size << ": ";
  if (!diagnosis.replay) {
    out << "cannot be used: " << shown(diagnosis.unusable) << '\n';
  } else {
    const Prediction& replay = *diagnosis.replay;
    out << "can be used, " << count_of(diagnosis, Severity::warning, "warning") << " and "
        << count_of(diagnosis, Severity::info, "remark") << '\n';
    if (replay.has_times)
      write_replay(replay, out);
    else
      out << "only memory can be predicted, from " << counted(replay.tasks, "event")
          << " of the allocator\n";
  }
}

/// A finding of one or several ranks, which may differ only in its numbers.
struct SharedFinding {
  Finding first;
  std::vector<std::int32_t> ranks;
};

/// Merges equal findings of several ranks. Warnings come first; among findings of equal severity,
/// those of fewest ranks come first.
std::vector<SharedFinding> shared_findings(const std::vector<Diagnosis>& ranks) {
  std::vector<SharedFinding> all;
  for (const Diagnosis& diagnosis : ranks) {
    for (const Finding& finding : diagnosis.findings) {
      const auto same = std::ranges::find_if(all, [&](const SharedFinding& one) {
        return one.first.severity == finding.severity && one.first.cost == finding.cost &&
               one.first.fix == finding.fix && one.ranks.back() != diagnosis.rank;
      });
      if (same == all.end())
        all.push_back({finding, {diagnosis.rank}});
      else
        same->ranks.push_back(diagnosis.rank);
    }
  }
  std::ranges::stable_sort(all, {}, [](const SharedFinding& one) {
    return std::pair(one.first.severity != Severity::warning, one.ranks.size());
  });
  for (SharedFinding& one : all) {
    one.first.what.insert(0, fmt::format("rank {}: ", one.ranks.front()));
    if (one.ranks.size() == 1) continue;
    const std::size_t others = one.ranks.size() - 1;
    one.first.what += "; similar on " + counted(others, "other rank");
  }
  return all;
}

Json rank_json(const Diagnosis& diagnosis) {
  Json object = {{"rank", diagnosis.rank},
                 {"world_size", diagnosis.world_size},
                 {"usable", diagnosis.replay.has_value()},
                 {"findings", Json::array()}};
  for (const Finding& finding : diagnosis.findings) {
    object["findings"].push_back({{"severity", to_string(finding.severity)},
                                  {"what", finding.what},
                                  {"cost", finding.cost},
                                  {"fix", finding.fix}});
  }
  if (diagnosis.replay) {
    object["step_time_ns"] = diagnosis.replay->measured.step_time.count();
    object["replay_error"] = diagnosis.replay->replay_error;
    object["pinned_tasks"] = diagnosis.replay->unexplained.pinned_tasks;
    object["unexplained_ns"] = diagnosis.replay->unexplained.lag.count();
    object["trust"] = to_json(diagnosis.replay->trust);
  } else {
    object["why_unusable"] = diagnosis.unusable;
  }
  return object;
}

}  // namespace

void write_diagnosis(const std::vector<Diagnosis>& ranks, std::ostream& out) {
  for (const Diagnosis& diagnosis : ranks) write_rank(diagnosis, out);
  if (ranks.size() == 1) {
    for (const Finding& finding : ranks.front().findings) write_finding(finding, out);
    return;
  }
  for (const SharedFinding& one : shared_findings(ranks)) write_finding(one.first, out);
}

Json to_json(const std::vector<Diagnosis>& ranks) {
  Json all = Json::array();
  for (const Diagnosis& diagnosis : ranks) all.push_back(rank_json(diagnosis));
  return {{"schema", "foretrace.doctor/1"}, {"ranks", std::move(all)}};
}

}  // namespace foretrace
