#include "document/document.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_values.h"
#include "document/words/table.h"
#include "foretrace/answer/validation.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

using Row = ValidatedRank;

std::string percent(double fraction, int decimals = 2) { return to_share(fraction, decimals); }

std::string percent(const std::optional<double>& fraction) {
  return fraction ? percent(*fraction) : "-";
}

/// Returns a part of the recording as a share.
std::string share(Nanoseconds part, const Row& row) {
  const Nanoseconds whole = row.validation.unexplained.window;
  if (whole == 0ns) return "-";
  return percent(static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string metamorphic(const Row& row) {
  if (!row.against.empty()) return "-";
  std::string broken;
  for (const std::string_view name : row.broken())
    broken += (broken.empty() ? "BROKEN: " : ",") + std::string(name);
  return broken.empty() ? "holds" : broken;
}

/// Says how many steps are inside the interval that the other steps predict for them.
std::string left_out_text(const Row& row) {
  if (row.left_out.steps == 0) return "-";
  return fmt::format("{} of {}", row.left_out.inside, row.left_out.steps);
}

Table table_of(const std::vector<Row>& rows) {
  Table table{
      .heading = {"trace", "tasks", "step", "replay", "pinned", "unexplained", "peers", "alike",
                  "cross-step", "worst", "left out", "same as first", "metamorphic"},
      .rows = {},
      .left = {0, 12}};
  for (const Row& row : rows) {
    const Validation& one = row.validation;
    table.rows.push_back(
        {row.trace, std::to_string(one.tasks), to_text(one.measured), percent(one.replay_error, 3),
         std::to_string(one.unexplained.pinned_tasks), share(one.unexplained.lag, row),
         share(one.unexplained.peers, row), std::to_string(one.alike_steps),
         percent(one.cross_step_error), percent(one.worst_cross_step_error), left_out_text(row),
         percent(one.same_as_first_error), metamorphic(row)});
  }
  return table;
}

/// Says how many of the left-out steps lie inside their interval; empty if none was left out.
std::string left_out_text(const std::vector<ValidatedRank>& ranks) {
  LeftOutSteps all;
  for (const ValidatedRank& rank : ranks) {
    all.steps += rank.left_out.steps;
    all.inside += rank.left_out.inside;
  }
  if (all.steps == 0) return {};
  return fmt::format(
      "Of {} steps that were left out, the interval from the others contains {} ({}; 80 % are "
      "expected)",
      all.steps, all.inside,
      percent(static_cast<double>(all.inside) / static_cast<double>(all.steps), 1));
}

nlohmann::json to_json(const SideRemoval& side) {
  return {{"recorded_ns", side.recorded.count()},
          {"alone_ns", side.alone.count()},
          {"left_ns", side.remaining.count()},
          {"excess", side.excess()}};
}

}  // namespace

nlohmann::json to_json(const Validation& validation) {
  const Unexplained& unexplained = validation.unexplained;
  return {{"schema", "foretrace.validation/1"},
          {"measured_step_time_ns", validation.measured.count()},
          {"replay_error", validation.replay_error},
          {"tasks", validation.tasks},
          {"pinned_tasks", unexplained.pinned_tasks},
          {"unexplained_ns", unexplained.lag.count()},
          {"peers_ns", unexplained.peers.count()},
          {"window_ns", unexplained.window.count()},
          {"alike_steps", validation.alike_steps},
          {"cross_step_error", validation.cross_step_error},
          {"worst_cross_step_error", validation.worst_cross_step_error},
          {"same_as_first_error", validation.same_as_first_error},
          {"without_device", to_json(validation.without.device)},
          {"without_host", to_json(validation.without.host)},
          {"metamorphic",
           {{"scale", validation.scale_holds},
            {"neutral", validation.neutral_holds},
            {"shrink", validation.shrink_holds},
            {"export", validation.export_holds},
            {"without_device", validation.without.device.holds()},
            {"without_host", validation.without.host.holds()}}},
          {"notes", notes_json(validation.notes)}};
}

nlohmann::json to_json(const ValidatedRank& rank) {
  nlohmann::json object = to_json(rank.validation);
  object["trace"] = rank.trace;
  object["broken"] = rank.broken();
  object["left_out"] = {{"steps", rank.left_out.steps}, {"inside", rank.left_out.inside}};
  if (rank.against.empty()) return object;
  object["against"] = rank.against;
  for (const char* asked : {"without_device", "without_host", "metamorphic"}) object.erase(asked);
  return object;
}

Document document_of(const std::vector<ValidatedRank>& ranks) {
  Document document("Validation", "How far predictions can be trusted");
  document.sum_up(left_out_text(ranks));
  document.section("Ranks", Document::Heading::not_in_text).table(table_of(ranks));
  document.section("Left out", Document::Heading::not_in_text).say(left_out_text(ranks));
  return document;
}

nlohmann::json to_json(const std::vector<ValidatedRank>& ranks) {
  nlohmann::json all = nlohmann::json::array();
  for (const ValidatedRank& rank : ranks) all.push_back(to_json(rank));
  return all;
}

}  // namespace foretrace
