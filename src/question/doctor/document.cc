#include "document/document.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/shown.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/prediction.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

void describe(const Finding& finding, Document& document) {
  Table table{.heading = {}, .rows = {{"costs", finding.cost}}, .left = {0, 1}};
  if (!finding.fix.empty()) table.rows.push_back({"fix", finding.fix});
  document.section("")
      .say(finding.severity == Severity::warning ? "warning" : "remark", finding.what)
      .table(std::move(table), "", std::string(document.column, ' '));
}

std::string count_of(const Diagnosis& diagnosis, Severity severity, std::string_view noun) {
  return counted(diagnosis.count(severity), noun);
}

std::string replay_text(const Prediction& replay) {
  const Unexplained& unexplained = replay.unexplained;
  const double share = ratio(unexplained.lag, unexplained.window);
  return fmt::format(
      "a step takes {}; the replay is {} off, with {} of {} pinned and {} of the time "
      "unexplained{}",
      to_text(replay.measured.step_time), to_share(replay.replay_error, 3),
      grouped(unexplained.pinned_tasks), counted(replay.tasks, "task"), to_share(share, 2),
      share > 1 ? " (summed over streams)" : "");
}

void describe(const Diagnosis& diagnosis, Document& document) {
  const std::string rank = fmt::format("rank {} of {}: ", diagnosis.rank, diagnosis.world_size);
  if (!diagnosis.replay) {
    document.say(rank + "cannot be used: " + diagnosis.unusable);
    return;
  }
  const Prediction& replay = *diagnosis.replay;
  document.say(fmt::format("{}can be used, {} and {}", rank,
                           count_of(diagnosis, Severity::warning, "warning"),
                           count_of(diagnosis, Severity::info, "remark")));
  document.say(replay.has_times
                   ? replay_text(replay)
                   : fmt::format("only memory can be predicted, from {} of the allocator",
                                 counted(replay.tasks, "event")));
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

Json to_json(const std::vector<Diagnosis>& ranks) {
  Json all = Json::array();
  for (const Diagnosis& diagnosis : ranks) all.push_back(rank_json(diagnosis));
  return {{"schema", "foretrace.doctor/1"}, {"ranks", std::move(all)}};
}

Document document_of(const std::vector<Diagnosis>& ranks) {
  Document document("Doctor");
  document.column = 9;
  for (const Diagnosis& diagnosis : ranks) describe(diagnosis, document);
  if (ranks.size() == 1) {
    for (const Finding& finding : ranks.front().findings) describe(finding, document);
    return document;
  }
  for (const SharedFinding& one : shared_findings(ranks)) describe(one.first, document);
  return document;
}

}  // namespace foretrace
