#include "foretrace/answer/input.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/numbers/scaling.h"
#include "foretrace/report.h"
#include "report/words/json_text.h"
#include "report/words/table.h"
#include "report/words/wording.h"

namespace foretrace {
namespace {

struct Named {
  const char* name;
  const char* says;
  InputStalls::Part part;
};

std::vector<Named> parts(const InputStalls& stalls) {
  return {{"reading", "reading", stalls.reading},
          {"preparing", "preparing", stalls.preparing},
          {"waiting_for_workers", "waiting for workers", stalls.waiting},
          {"loading", "loading, not separable", stalls.untold},
          {"copying", "copying to the device", stalls.copying}};
}

/// The step times t1 (train), t2 (prep) and t3 (fetch), and what follows from them; see
/// answer/input.h.
struct Difference {
  std::optional<Nanoseconds> train, prep, fetch;
  Nanoseconds prep_stall{0}, fetch_stall{0};
  std::optional<std::int64_t> workers;  ///< Workers with which preparing keeps up with training.
  std::optional<double> cached;  ///< Cached share with which reading keeps up with preparing.
  std::optional<double> cached_for_training;  ///< With which it keeps up with training.
};

Difference difference(const InputReport& report) {
  Difference found;
  const Nanoseconds t3 = report.replayed;
  found.train = report.synthetic;
  found.prep = report.cached;
  found.fetch = t3;
  const Nanoseconds t1 = report.synthetic.value_or(report.cached.value_or(t3));
  const Nanoseconds t2 = report.cached.value_or(t3);
  found.prep_stall = std::max(0ns, t2 - t1);
  found.fetch_stall = std::max(0ns, t3 - t2);
  if (report.recorded_workers > 0 && report.cached && report.synthetic && t1 > 0ns) {
    const double needed =
        static_cast<double>(report.recorded_workers) * std::max(1.0, ratio(t2, t1));
    found.workers = static_cast<std::int64_t>(std::ceil(needed - 1e-9));
  }
  if (report.knows_cache && report.cached && t3 > 0ns) {
    const double misses = item_shares(report.set).disk;
    const auto enough = [&](Nanoseconds wanted) {
      return std::max(report.set.cached, cached_for(report.set, misses * ratio(wanted, t3)));
    };
    found.cached = found.fetch_stall > 0ns ? enough(t2) : report.set.cached;
    if (report.synthetic) found.cached_for_training = t3 > t1 ? enough(t1) : report.set.cached;
  }
  return found;
}

double rate(const InputReport& report, Nanoseconds step) {
  const double samples = report.samples > 0 ? report.samples : 1;
  return step > 0ns ? samples * 1e9 / static_cast<double>(step.count()) : 0;
}

std::string bottleneck(const InputReport& report, const Difference& found) {
  if (report.synthetic || report.cached) {
    if (found.fetch_stall > std::max(report.replayed / 50, found.prep_stall)) return "reading";
    if (found.prep_stall > report.replayed / 50) return "preparation";
    return "training";
  }
  const double loading = 1 - ratio(report.without_loading, report.replayed);
  const double copying = ratio(report.without_loading - report.without_copies, report.replayed);
  if (std::max(loading, copying) <= 0.02) return "training";
  return loading >= copying ? "loading" : "copying";
}

/// Returns the sentence before all tables.
std::string headline(const InputReport& report, const Difference& found) {
  const std::string time =
      to_text(report.replayed) + (report.has_steps ? " a step" : " for the whole recording");
  const std::string bound = bottleneck(report, found);
  if (bound == "training") return time + "; input costs less than 2 % of it";
  const Nanoseconds without =
      report.synthetic.value_or(report.cached.value_or(report.without_copies));
  return fmt::format("{}; input costs {} of it, most of that {}", time,
                     to_share(1 - ratio(without, report.replayed)), bound);
}

void add_difference(nlohmann::json& json, const InputReport& report, const Difference& found) {
  if (!report.synthetic && !report.cached) return;
  nlohmann::json& object = json["differential"];
  object = {{"fetch_stall_ns", found.fetch_stall.count()},
            {"prep_stall_ns", found.prep_stall.count()},
            {"fetch_stall", ratio(found.fetch_stall, report.replayed)},
            {"prep_stall", ratio(found.prep_stall, report.replayed)},
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
    if (found.fetch_stall > 0ns) object["F_not_overlapped"] = rate(report, found.fetch_stall);
  }
  if (found.workers) object["workers_needed"] = *found.workers;
  if (found.cached) object["cached_share_needed"] = *found.cached;
  if (found.cached_for_training) object["cached_share_for_training"] = *found.cached_for_training;
}

void write_stalls(const InputReport& report, std::ostream& out) {
  Table table{.heading = {"of a step", "stall", "share", "hidden"}, .rows = {}, .left = {0}};
  for (const Named& named : parts(report.stalls)) {
    if (named.part.stall == 0ns && named.part.hidden == 0ns) continue;
    table.rows.push_back({named.says, to_text(named.part.stall),
                          to_share(ratio(named.part.stall, report.replayed)),
                          to_text(named.part.hidden)});
  }
  if (table.rows.empty()) {
    out << "This trace neither loads nor copies input.\n";
    return;
  }
  write_aligned(table, out);
  const InputStalls& stalls = report.stalls;
  if (stalls.copied.count > 0) {
    out << "\nCopied       " << to_text(stalls.copied) << " a step; " << stalls.pageable
        << " copies from pageable memory, " << stalls.pinned << " from pinned\n";
  }
  out << "Replayed     " << to_text(report.without_loading) << " a step if loading took no time ("
      << to_percent(ratio(report.without_loading - report.replayed, report.replayed)) << "), "
      << to_text(report.without_copies) << " if copies did not either\n";
}

void write_remedy(const InputReport& report, const Difference& found, std::ostream& out) {
  if (ratio(report.without_loading - report.without_copies, report.replayed) > 0.02) {
    out << "Would hide   copies: see predict --with "
        << (report.stalls.pageable > 0 ? "pin_memory, and " : "") << "--with prefetch\n";
  }
  if (report.workers) {
    out << "Would hide   " << counted(*report.workers, "worker") << " for " << to_text(report.work)
        << " of loading: " << to_text(report.with_workers)
        << " a step (loader:workers=" << *report.workers << ")\n";
  }
  if (found.workers) {
    out << "Would hide   " << counted(*found.workers, "worker") << " instead of "
        << report.recorded_workers << ", if preparing scales with them\n";
  }
  if (found.cached) {
    out << "Would hide   " << to_share(*found.cached) << " of the data cached, instead of "
        << to_share(report.set.cached) << ", for reading to keep up with preparing";
    if (found.cached_for_training) {
      out << "; " << to_share(*found.cached_for_training) << " with training";
    }
    out << "\n";
  }
}

void write_difference(const InputReport& report, const Difference& found, std::ostream& out) {
  if (!report.synthetic && !report.cached) return;
  const std::string unit = report.samples > 0 ? " samples/s" : " batches/s";
  const auto row = [&](const char* name, const char* of, Nanoseconds step) {
    out << "  " << name << "  " << to_text(step) << " a step, " << to_fixed(rate(report, step), 1)
        << unit << ", " << of << '\n';
  };
  out << "\nBy difference\n";
  if (report.synthetic) row("G", "synthetic batches made on the device", *report.synthetic);
  if (report.cached) row("P", "all data cached", *report.cached);
  row("F", "as recorded", report.replayed);
  if (report.synthetic) {
    out << "  prep stall   " << to_text(found.prep_stall) << ", "
        << to_share(ratio(found.prep_stall, report.replayed)) << " of a step"
        << (report.cached
                ? ""
                : " (includes reading; a trace with all data cached, given with --cached, "
                  "separates the two)")
        << '\n';
  }
  if (report.cached) {
    out << "  fetch stall  " << to_text(found.fetch_stall) << ", "
        << to_share(ratio(found.fetch_stall, report.replayed)) << " of a step\n";
  }
}

}  // namespace

nlohmann::json to_json(const InputReport& report) {
  const Difference found = difference(report);
  nlohmann::json json = {{"schema", "foretrace.input/1"},
                         {"step_time_ns", report.replayed.count()},
                         {"has_steps", report.has_steps},
                         {"bottleneck", bottleneck(report, found)},
                         {"without_loading_ns", report.without_loading.count()},
                         {"without_copies_ns", report.without_copies.count()},
                         {"loading_work_ns", report.work.count()},
                         {"steps", report.stalls.steps},
                         {"batches", report.stalls.batches},
                         {"copies",
                          {{"bytes", report.stalls.copied.count},
                           {"pageable", report.stalls.pageable},
                           {"pinned", report.stalls.pinned}}}};
  for (const Named& named : parts(report.stalls)) {
    json["stalls"][named.name] = {{"stall_ns", named.part.stall.count()},
                                  {"hidden_ns", named.part.hidden.count()},
                                  {"share", ratio(named.part.stall, report.replayed)}};
  }
  if (report.workers) {
    json["workers_needed"] = *report.workers;
    json["step_time_with_workers_ns"] = report.with_workers.count();
  }
  add_difference(json, report, found);
  json["notes"] = notes_json(report.notes);
  return json;
}

void write_input(const InputReport& report, std::ostream& out) {
  const Difference found = difference(report);
  out << headline(report, found) << "\n\n";
  write_stalls(report, out);
  write_difference(report, found, out);
  write_remedy(report, found, out);
  if (!report.notes.empty()) out << "\nNotes\n";
  for (const Note& note : report.notes.all()) out << "  - " << note_text(note) << '\n';
}

}  // namespace foretrace
