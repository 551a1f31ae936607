#include "question/info/serving_kinds.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "document/document.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/serving_steps.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

constexpr std::size_t kKindsShown = 12;

/// The work that takes most of a step.
std::string most_work(const ServingKind& kind) {
  const auto most = std::ranges::max_element(kind.work);
  if (*most <= 0ns || kind.busy <= 0ns) return "-";
  const double share = 100.0 * static_cast<double>(most->count()) /
                       static_cast<double>(std::max(kind.busy, *most).count());
  return fmt::format("{} {} %", to_string(static_cast<ServingWork>(most - kind.work.begin())),
                     to_fixed(share, 0));
}

std::string law_text(const StepLaw& law) {
  std::string text = "a step takes " + to_text(law.fixed);
  const auto add = [&](double per, std::string_view each) {
    if (per != 0) text += fmt::format(" + {} ns a {}", to_fixed(per, 1), each);
  };
  add(law.per_prompt_token, "token of a prompt");
  add(law.per_sequence, "sequence");
  add(law.per_position, "position of context");
  return fmt::format("{}; half of the {} steps are within {} % of that", text, grouped(law.steps),
                     to_fixed(100 * law.scatter, 1));
}

}  // namespace

void say_serving_steps(const Trace& trace, Document& document) {
  const ServingSteps found = serving_steps_of(trace);
  if (found.kinds.empty()) return;
  Table table;
  table.heading = {"kind of step", "steps",       "median", "first decile",
                   "last",         "device busy", "most"};
  table.left = {0, 6};
  for (std::size_t i = 0; i < found.kinds.size() && i < kKindsShown; ++i) {
    const ServingKind& kind = found.kinds[i];
    table.rows.push_back({kind.name, grouped(kind.steps), to_text(kind.time), to_text(kind.least),
                          to_text(kind.most), to_text(kind.busy), most_work(kind)});
  }
  document.section("Steps of the engine", Document::Heading::not_in_text).table(std::move(table));
  if (found.kinds.size() > kKindsShown)
    document.say(fmt::format("({} more, in --format json)", found.kinds.size() - kKindsShown));
  if (!found.law.empty()) document.say(law_text(found.law[0]));
  if (found.without_work > 0)
    document.say(counted(found.without_work, "step") + " without work on the device");
}

bool serves(const Trace& trace) { return !serving_steps_of(trace).kinds.empty(); }

void write_steps_csv(const Trace& trace, std::ostream& out) {
  const std::vector<StepRow> rows = table_of_steps(trace);  // Which may refuse.
  out << "kind,batch,context,time_us\n";
  for (const StepRow& row : rows)
    out << fmt::format("{},{},{},{}\n", row.decodes ? "decode" : "prefill", row.batch, row.context,
                       microseconds_cell(row.time));
}

void add_serving_steps(const Trace& trace, nlohmann::json& object) {
  const ServingSteps found = serving_steps_of(trace);
  if (found.kinds.empty()) return;
  nlohmann::json kinds = nlohmann::json::array();
  for (const ServingKind& kind : found.kinds) {
    nlohmann::json work;
    for (std::size_t i = 0; i < kind.work.size(); ++i)
      work[std::string(to_string(static_cast<ServingWork>(i)))] = kind.work[i].count();
    kinds.push_back({{"kind", kind.name},
                     {"steps", kind.steps},
                     {"time_ns", kind.time.count()},
                     {"first_decile_ns", kind.least.count()},
                     {"last_decile_ns", kind.most.count()},
                     {"busy_ns", kind.busy.count()},
                     {"work_ns", work}});
  }
  object["serving"] = {{"steps", found.steps},
                       {"without_work", found.without_work},
                       {"total_ns", found.total.count()},
                       {"kinds", kinds}};
  if (found.law.empty()) return;
  const StepLaw& law = found.law[0];
  object["serving"]["law"] = {{"fixed_ns", law.fixed.count()},
                              {"ns_per_prompt_token", law.per_prompt_token},
                              {"ns_per_sequence", law.per_sequence},
                              {"ns_per_position", law.per_position},
                              {"scatter", law.scatter},
                              {"steps", law.steps}};
}

}  // namespace foretrace
