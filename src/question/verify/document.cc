#include "document/document.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_values.h"
#include "base/shown.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/pairs.h"
#include "foretrace/answer/trust.h"
#include "foretrace/answer/verification.h"
#include "foretrace/timeline.h"
#include "question/diff/words.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

struct VerifiedPart {
  const char* name;
  Nanoseconds Breakdown::*part;
};
constexpr VerifiedPart kVerifiedParts[] = {
    {"compute", &Breakdown::compute}, {"communication", &Breakdown::communication},
    {"copy", &Breakdown::copy},       {"input", &Breakdown::input},
    {"host", &Breakdown::host},       {"idle", &Breakdown::idle}};

Table sides_table(const Verification& result) {
  Table table{.heading = {"", "before", "predicted", "measured", "measured - predicted"},
              .rows = {}};
  const auto add = [&](const char* name, Nanoseconds before, Nanoseconds predicted,
                       Nanoseconds measured) {
    if (before == 0ns && predicted == 0ns && measured == 0ns) return;
    table.rows.push_back({name, to_text(before), to_text(predicted), to_text(measured),
                          signed_time(measured - predicted)});
  };
  add("step time", result.before.step_time, result.predicted.step_time, result.measured.step_time);
  for (const VerifiedPart& part : kVerifiedParts) {
    add(part.name, result.before.breakdown.*part.part, result.predicted.breakdown.*part.part,
        result.measured.breakdown.*part.part);
  }
  if (result.predicted.peak_allocated && result.measured.peak_allocated) {
    const Bytes more = *result.measured.peak_allocated - *result.predicted.peak_allocated;
    table.rows.push_back({"peak allocated", to_text(result.before.peak_allocated.value_or(Bytes{})),
                          to_text(*result.predicted.peak_allocated),
                          to_text(*result.measured.peak_allocated),
                          (more.count > 0 ? "+" : "") + to_text(more)});
  }
  return table;
}

std::vector<Table> verify_tables(const Verification& result) {
  std::vector<Table> tables{sides_table(result)};
  if (result.residual && !result.residual->identical) {
    tables.push_back(waterfall_table(*result.residual, {"predicted", "measured"}));
    tables.push_back(content_table(*result.residual, {"predicted", "measured"}));
  }
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::string verified_uses(const Verification& result) {
  std::string text;
  for (const std::string& use : result.uses) text += (text.empty() ? "" : ", then ") + use;
  return text.empty() ? "the job as it was" : text;
}

Notes verify_notes(const Verification& result) {
  Notes notes = result.notes;
  if (result.residual) notes.merge(result.residual->notes);
  return notes;
}

Json verified_side_json(const VerifiedSide& side) {
  return {{"step_time_ns", side.step_time.count()},
          {"breakdown_ns", breakdown_json(side.breakdown)},
          {"peak_allocated_bytes", side.peak_allocated}};
}

}  // namespace

std::string_view to_string(Agreement agreement) {
  constexpr std::string_view kNames[] = {"inside", "near", "outside"};
  return kNames[static_cast<std::size_t>(agreement)];
}

std::string verify_verdict(const Verification& result) {
  const std::string interval =
      fmt::format("{} to {}", to_text(result.lower), to_text(result.upper));
  const bool high = result.error > 0;
  std::string text = result.residual ? mismatch_text(*result.residual) : std::string();
  text += "measured " + to_text(result.measured.step_time);
  switch (result.agreement) {
    case Agreement::inside:
      text += ", inside the predicted " + interval;
      break;
    case Agreement::near:
      text += fmt::format(", outside the predicted {}, but some of its steps are inside", interval);
      break;
    case Agreement::outside:
      text += ", outside the predicted " + interval;
      break;
  }
  text += fmt::format("; the predicted {} are ", to_text(result.predicted.step_time));
  if (std::abs(result.error) < 0.0005) return text + "less than 0.1 % off";
  return fmt::format("{}{} % too {}", text, to_fixed(100 * std::abs(result.error), 1),
                     high ? "high" : "low");
}

nlohmann::json to_json(const Verification& result) {
  Json json{{"schema", "foretrace.verification/1"},
            {"uses", result.uses},
            {"verdict", verify_verdict(result)},
            {"agreement", to_string(result.agreement)},
            {"error", result.error},
            {"before", verified_side_json(result.before)},
            {"predicted", verified_side_json(result.predicted)},
            {"measured", verified_side_json(result.measured)},
            {"inputs", inputs_json(result.inputs)},
            {"repeated_step_time_ns", nullptr},
            {"residual", nullptr},
            {"ledger", nullptr},
            {"trust", to_json(result.trust)},
            {"notes", notes_json(result.notes)}};
  json["predicted"]["lower_ns"] = result.lower.count();
  json["predicted"]["upper_ns"] = result.upper.count();
  json["measured"]["shortest_step_ns"] = result.shortest.count();
  json["measured"]["longest_step_ns"] = result.longest.count();
  if (result.repeated) json["repeated_step_time_ns"] = result.repeated->count();
  if (result.residual) json["residual"] = diff_json(*result.residual);
  if (!result.ledger.empty()) json["ledger"] = result.ledger;
  return json;
}

Document document_of(const Verification& result) {
  Document document("Verification",
                    fmt::format("{}: {}", verified_uses(result), verify_verdict(result)));
  document.column = 12;
  if (const std::string warning = trust_warning(result.trust); !warning.empty())
    document.verdict("Trust", "in what was measured is " + warning);
  document.say("What", verified_uses(result)).verdict("Verdict", verify_verdict(result));
  if (result.residual) document.say("Compared", compared_text(*result.residual));
  if (!result.ledger.empty()) document.say("Ledger", "the outcome was added to " + result.ledger);
  for (const Table& table : verify_tables(result)) document.section("").table(table, "", "  ");
  return document.notes(verify_notes(result));
}

}  // namespace foretrace
