#include "document/document.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/numbers/scaling.h"
#include "document/words/table.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/input.h"
#include "question/advise/words.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

struct StallRow {
  const char* name;
  const char* says;
  InputStalls::StallTime part;
};

std::vector<StallRow> stall_rows(const InputStalls& stalls) {
  return {{"reading", "reading", stalls.reading},
          {"preparing", "preparing", stalls.preparing},
          {"waiting_for_workers", "waiting for workers", stalls.waiting},
          {"loading", "loading, not separable", stalls.unknown},
          {"copying", "copying to the device", stalls.copying}};
}

/// Stalls and bounds derived from the step times t1 (train), t2 (prep) and t3 (fetch); see
/// answer/input.h.
struct DifferentialStalls {
  Nanoseconds prep_stall{0}, fetch_stall{0};
  std::optional<std::int64_t> workers;  ///< Workers with which preparing keeps up with training.
  std::optional<double> cached;  ///< Cached share with which reading keeps up with preparing.
  std::optional<double> cached_for_training;  ///< With which it keeps up with training.
};

DifferentialStalls differential_stalls(const InputReport& report) {
  DifferentialStalls differential;
  const Nanoseconds t3 = report.replayed;
  const Nanoseconds t1 = report.synthetic.value_or(report.cached.value_or(t3));
  const Nanoseconds t2 = report.cached.value_or(t3);
  differential.prep_stall = std::max(0ns, t2 - t1);
  differential.fetch_stall = std::max(0ns, t3 - t2);
  if (report.recorded_workers > 0 && report.cached && report.synthetic && t1 > 0ns) {
    const double needed =
        static_cast<double>(report.recorded_workers) * std::max(1.0, ratio(t2, t1));
    differential.workers = static_cast<std::int64_t>(std::ceil(needed - 1e-9));
  }
  if (report.knows_cache && report.cached && t3 > 0ns) {
    const double misses = item_shares(report.set).disk;
    const auto enough = [&](Nanoseconds wanted) {
      return std::max(report.set.cached, cached_for(report.set, misses * ratio(wanted, t3)));
    };
    differential.cached = differential.fetch_stall > 0ns ? enough(t2) : report.set.cached;
    if (report.synthetic)
      differential.cached_for_training = t3 > t1 ? enough(t1) : report.set.cached;
  }
  return differential;
}

double rate(const InputReport& report, Nanoseconds step) {
  const double samples = report.samples > 0 ? report.samples : 1;
  return step > 0ns ? samples * 1e9 / static_cast<double>(step.count()) : 0;
}

std::string bottleneck(const InputReport& report, const DifferentialStalls& differential) {
  if (report.synthetic || report.cached) {
    if (differential.fetch_stall > std::max(report.replayed / 50, differential.prep_stall))
      return "reading";
    if (differential.prep_stall > report.replayed / 50) return "preparation";
    return "training";
  }
  if (report.bound.part == PathPart::input) return "loading";
  return report.bound.part == PathPart::copies ? "copying" : "training";
}

/// Returns the sentence before all tables.
std::string headline(const InputReport& report, const DifferentialStalls& differential) {
  const std::string time =
      to_text(report.replayed) + (report.has_steps ? " a step" : " for the whole recording");
  const bool compared = report.synthetic || report.cached;
  const std::string bound = bottleneck(report, differential);
  const Nanoseconds without =
      report.synthetic.value_or(report.cached.value_or(report.without_copies));
  const double cost = 1 - ratio(without, report.replayed);
  if (compared ? bound == "training" : cost <= 0.02)
    return time + "; input costs less than 2 % of it";
  const bool loads =
      report.replayed - report.without_loading >= report.without_loading - report.without_copies;
  std::string text = fmt::format("{}; input costs {} of it, most of that {}", time, to_share(cost),
                                 compared ? bound
                                 : loads  ? "loading"
                                          : "copying");
  if (!compared && bound == "training")
    text += fmt::format("; it is bound by {} ({} without)", bound_name(report.bound.part),
                        to_text(report.bound.without));
  return text;
}

void add_differential(nlohmann::json& json, const InputReport& report,
                      const DifferentialStalls& differential) {
  if (!report.synthetic && !report.cached) return;
  nlohmann::json& object = json["differential"];
  object = {{"fetch_stall_ns", differential.fetch_stall.count()},
            {"prep_stall_ns", differential.prep_stall.count()},
            {"fetch_stall", ratio(differential.fetch_stall, report.replayed)},
            {"prep_stall", ratio(differential.prep_stall, report.replayed)},
            {"t3_ns", report.replayed.count()},
            {"F", rate(report, report.replayed)},
            {"unit", report.samples > 0 ? "samples/s" : "batches/s"}};
  if (report.synthetic) {
    object["t1_ns"] = report.synthetic->count();
    object["G"] = rate(report, *report.synthetic);
  }
  if (report.cached) {
    object["t2_ns"] = report.cached->count();
    object["P"] = rate(report, *report.cached);
    if (differential.fetch_stall > 0ns)
      object["F_not_overlapped"] = rate(report, differential.fetch_stall);
  }
  if (differential.workers) object["workers_needed"] = *differential.workers;
  if (differential.cached) object["cached_share_needed"] = *differential.cached;
  if (differential.cached_for_training)
    object["cached_share_for_training"] = *differential.cached_for_training;
}

void describe_stalls(const InputReport& report, Document& document) {
  Table table{.heading = {"of a step", "stall", "share", "hidden"}, .rows = {}, .left = {0}};
  for (const StallRow& row : stall_rows(report.stalls)) {
    if (row.part.stall == 0ns && row.part.hidden == 0ns) continue;
    table.rows.push_back({row.says, to_text(row.part.stall),
                          to_share(ratio(row.part.stall, report.replayed)),
                          to_text(row.part.hidden)});
  }
  document.section("Stalls", Document::Heading::not_in_text);
  if (table.rows.empty()) {
    document.say("This trace neither loads nor copies input.");
    return;
  }
  document.table(table);
  const InputStalls& stalls = report.stalls;
  if (stalls.copied.count > 0) {
    document.section("").say(
        "Copied",
        fmt::format("{} a step; {} from pageable memory, {} from pinned", to_text(stalls.copied),
                    counted(stalls.pageable, "copy"), grouped(stalls.pinned)));
  }
  document.say(
      "Replayed",
      fmt::format("{} a step if loading took no time ({}), {} if copies did not either",
                  to_text(report.without_loading),
                  to_percent(ratio(report.without_loading - report.replayed, report.replayed)),
                  to_text(report.without_copies)));
}

void describe_remedy(const InputReport& report, const DifferentialStalls& differential,
                     Document& document) {
  if (ratio(report.without_loading - report.without_copies, report.replayed) > 0.02)
    document.say("Would hide", fmt::format("copies: see predict --with {}--with prefetch",
                                           report.stalls.pageable > 0 ? "pin_memory, and " : ""));
  if (report.workers) {
    document.say("Would hide", fmt::format("{} for {} of loading: {} a step (loader:workers={})",
                                           counted(*report.workers, "worker"), to_text(report.work),
                                           to_text(report.with_workers), *report.workers));
  } else if (report.with_workers > 0ns) {
    document.say("No workers",
                 fmt::format("they do not help: a step would take {} with them, as the training "
                             "thread takes each batch from them",
                             to_text(report.with_workers)));
  }
  if (differential.workers)
    document.say("Would hide",
                 fmt::format("{} instead of {}, if preparing scales with them",
                             counted(*differential.workers, "worker"), report.recorded_workers));
  if (!differential.cached) return;
  std::string text =
      fmt::format("{} of the data cached, instead of {}, for reading to keep up with preparing",
                  to_share(*differential.cached), to_share(report.set.cached));
  if (differential.cached_for_training)
    text += fmt::format("; {} with training", to_share(*differential.cached_for_training));
  document.say("Would hide", text);
}

void describe_differential(const InputReport& report, const DifferentialStalls& differential,
                           Document& document) {
  if (!report.synthetic && !report.cached) return;
  Table rates{.heading = {}, .rows = {}, .left = {0, 1}}, stalls = rates;
  const auto add = [&](const char* name, const char* of, Nanoseconds step) {
    rates.rows.push_back(
        {name, fmt::format("{} a step, {} {}, {}", to_text(step), to_fixed(rate(report, step), 1),
                           report.samples > 0 ? "samples/s" : "batches/s", of)});
  };
  if (report.synthetic) add("G", "synthetic batches made on the device", *report.synthetic);
  if (report.cached) add("P", "all data cached", *report.cached);
  add("F", "as recorded", report.replayed);
  const auto share = [&](Nanoseconds stall) {
    return fmt::format("{}, {} of a step", to_text(stall), to_share(ratio(stall, report.replayed)));
  };
  if (report.synthetic)
    stalls.rows.push_back(
        {"prep stall", share(differential.prep_stall) +
                           (report.cached ? ""
                                          : " (includes reading; a trace with all data cached, "
                                            "given with --cached, separates the two)")});
  if (report.cached) stalls.rows.push_back({"fetch stall", share(differential.fetch_stall)});
  document.section("By difference").table(rates, "", "  ").table(stalls, "", "  ");
}

}  // namespace

nlohmann::json to_json(const InputReport& report) {
  const DifferentialStalls differential = differential_stalls(report);
  nlohmann::json json = {{"schema", "foretrace.input/1"},
                         {"step_time_ns", report.replayed.count()},
                         {"has_steps", report.has_steps},
                         {"bottleneck", bottleneck(report, differential)},
                         {"without_loading_ns", report.without_loading.count()},
                         {"without_copies_ns", report.without_copies.count()},
                         {"loading_work_ns", report.work.count()},
                         {"steps", report.stalls.steps},
                         {"batches", report.stalls.batches},
                         {"copies",
                          {{"bytes", report.stalls.copied.count},
                           {"pageable", report.stalls.pageable},
                           {"pinned", report.stalls.pinned}}}};
  for (const StallRow& row : stall_rows(report.stalls)) {
    json["stalls"][row.name] = {{"stall_ns", row.part.stall.count()},
                                {"hidden_ns", row.part.hidden.count()},
                                {"share", ratio(row.part.stall, report.replayed)}};
  }
  if (report.workers) {
    json["workers_needed"] = *report.workers;
    json["step_time_with_workers_ns"] = report.with_workers.count();
  }
  add_differential(json, report, differential);
  json["notes"] = notes_json(report.notes);
  return json;
}

Document document_of(const InputReport& report) {
  const DifferentialStalls differential = differential_stalls(report);
  Document document("Input");
  document.column = 13;
  document.say(headline(report, differential));
  describe_stalls(report, document);
  describe_differential(report, differential, document);
  describe_remedy(report, differential, document);
  return document.notes(report.notes);
}

}  // namespace foretrace
