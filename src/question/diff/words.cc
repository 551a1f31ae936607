#include "question/diff/words.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "question/words/wording.h"

namespace foretrace {
namespace {

/// Most rows of the waterfall table, apart from the summary of smaller effects.
constexpr std::size_t kMaxWaterfall = 16;
/// Effects below 1/kSmallShare of the longer step time share one row.
constexpr std::int64_t kSmallShare = 2000;

std::string number_text(std::int64_t count) { return count == 0 ? "no" : grouped(count); }

/// Returns "12 new", "3 fewer", "2 new and 1 dropped" or "4 moved"; empty if nothing came or went.
std::string counts_text(const DiffCause& cause) {
  std::string text = cause.moved > 0 ? grouped(cause.moved) + " moved" : "";
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (cause.added > 0 && cause.removed > 0) {
    add(fmt::format("{} new and {} dropped", grouped(cause.added), grouped(cause.removed)));
  } else if (cause.added > 0) {
    add(grouped(cause.added) + " new");
  } else if (cause.removed > 0) {
    add(grouped(cause.removed) + " fewer");
  }
  return text;
}

std::string from_place(const DiffCause& cause) {
  return cause.place.empty() ? "" : " from " + cause.place;
}

std::string more_or_less(const DiffCause& cause, std::string_view more, std::string_view less) {
  return std::string(cause.local >= 0ns ? more : less);
}

std::string moved_bytes_text(const DiffCause& cause) {
  if (cause.bytes.count == 0) return "";
  return fmt::format(", {} {}", to_text(Bytes{std::abs(cause.bytes.count)}),
                     cause.bytes.count > 0 ? "more" : "less");
}

bool is_rest_group(const DiffCause& cause) { return cause.label.starts_with("other "); }

std::string device_work_text(const DiffCause& cause, std::string_view noun) {
  const std::string counts = counts_text(cause);
  if (counts.empty() && cause.changed == 0) return cause.label + ", in other steps";
  const bool one = cause.added + cause.removed + cause.moved == 1 && cause.changed == 0;
  const std::string of = is_rest_group(cause)
                             ? cause.label
                             : fmt::format("{}{} of {}", noun, one ? "" : "s", cause.label);
  if (!counts.empty() && cause.changed == 0)
    return fmt::format("{} {}{}{}", counts, of, from_place(cause), moved_bytes_text(cause));
  return fmt::format("{} {} ({}){}{}", of, more_or_less(cause, "slower", "faster"),
                     grouped(cause.changed), counts.empty() ? "" : ", " + counts,
                     moved_bytes_text(cause));
}

/// Returns the name of the call. A copy of pageable memory also waits for the device; then the text
/// is "waits in cudaMemcpyAsync".
std::string call_noun(const DiffCause& cause) {
  const bool hidden = cause.kind == DiffKind::syncs && !is_rest_group(cause) &&
                      cause.label.find("ynchron") == std::string::npos;
  return hidden ? "waits in " + cause.label : cause.label;
}

std::string call_text(const DiffCause& cause) {
  const std::string counts = counts_text(cause);
  if (!counts.empty() && cause.changed == 0)
    return fmt::format("{} {}{}{}", counts, call_noun(cause), from_place(cause),
                       moved_bytes_text(cause));
  if (counts.empty() && cause.changed == 0)
    return fmt::format("{}{}, in other steps", call_noun(cause), from_place(cause));
  const std::string text =
      cause.name_after.empty()
          ? fmt::format("{} {}", call_noun(cause), more_or_less(cause, "slower", "faster"))
          : fmt::format("{} now {}", cause.name_before, cause.name_after);
  return fmt::format("{} ({}){}{}{}", text, grouped(cause.changed), from_place(cause),
                     counts.empty() ? "" : ", " + counts, moved_bytes_text(cause));
}

std::string replaced_text(const DiffCause& cause) {
  if (is_rest_group(cause)) return fmt::format("{} ({})", cause.label, grouped(cause.changed));
  return fmt::format("another kernel for {} ({}): {} -> {}", cause.label, grouped(cause.changed),
                     cause.name_before, cause.name_after);
}

std::string work_text(const DiffCause& cause) {
  const bool is_plain = is_rest_group(cause) || cause.label.starts_with("Python ");
  const std::string what =
      cause.kind == DiffKind::host && !is_plain ? "host work of " + cause.label : cause.label;
  return what + (cause.local == 0ns ? "" : more_or_less(cause, " takes longer", " takes less"));
}

std::string waits_text(const DiffCause& cause) {
  const std::string counts = counts_text(cause);
  if (is_rest_group(cause))
    return counts.empty() ? cause.label : fmt::format("{}: {}", cause.label, counts);
  if (!counts.empty()) return fmt::format("{} {}", counts, cause.label);
  return cause.label + (cause.local == 0ns ? "" : more_or_less(cause, " longer", " shorter"));
}

/// A kind of work that other work waits for, and its name in sentences.
struct AwaitedWork {
  DiffKind kind;
  std::string_view direction;  ///< Part of a copy's name.
  const char *one, *many;
};
constexpr AwaitedWork kAwaitedWork[] = {
    {DiffKind::copies, "DtoH", "copy to the host", "copies to the host"},
    {DiffKind::copies, "HtoD", "copy to the device", "copies to the device"},
    {DiffKind::syncs, "", "synchronization", "synchronizations"},
    {DiffKind::collectives, "", "collective", "collectives"}};

/// Returns "30 copies to the host and 20 synchronizations are gone"; empty if none came or went.
std::string changed_waits_text(const Diff& diff) {
  std::string texts[2];
  std::int64_t sums[2] = {0, 0};
  for (const AwaitedWork& work : kAwaitedWork) {
    std::int64_t more = 0;
    for (const DiffCause& cause : diff.causes) {
      if (cause.kind == work.kind && cause.label.find(work.direction) != std::string::npos)
        more += cause.added - cause.removed;
    }
    if (more == 0) continue;
    const std::size_t side = more < 0 ? 0 : 1;
    const std::int64_t count = std::abs(more);
    sums[side] += count;
    texts[side] += fmt::format("{}{} {}", texts[side].empty() ? "" : " and ", grouped(count),
                               count == 1 ? work.one : work.many);
  }
  if (sums[0] > 0) texts[0] += sums[0] == 1 ? " is gone" : " are gone";
  if (sums[1] > 0) texts[1] += sums[1] == 1 ? " is new" : " are new";
  return fmt::format("{}{}{}", texts[0], sums[0] > 0 && sums[1] > 0 ? ", " : "", texts[1]);
}

Nanoseconds least_shown_effect(const Diff& diff) {
  return std::max(diff.before.step_time, diff.after.step_time) / kSmallShare;
}

/// Returns the verdict on two memory snapshots.
std::string peak_verdict(const Diff& diff) {
  const Bytes before = diff.before.peak_allocated.value_or(Bytes{});
  const Bytes after = diff.after.peak_allocated.value_or(Bytes{});
  std::string text = fmt::format("the peak of allocated memory is {}, then {} ({})",
                                 to_text(before), to_text(after), change_text(before, after));
  if (diff.peak.empty()) return text;
  const Bytes more = diff.peak[0].after - diff.peak[0].before;
  return fmt::format("{}: {} {} by {}", text, to_text(Bytes{std::abs(more.count)}),
                     more.count > 0 ? "more" : "less", diff.peak[0].op);
}

/// Names up to two causes that account for most of the change, leaving out small ones. If they are
/// more than the change, says that the others take it back.
std::string main_causes_text(const Diff& diff, Nanoseconds change) {
  std::string parts;
  int named = 0;
  Nanoseconds left = std::chrono::abs(change);
  for (const DiffCause& cause : diff.causes) {
    const bool same_way = (cause.effect > 0ns) == (change > 0ns);
    if (cause.kind == DiffKind::rest || !same_way || named == 2) continue;
    if (std::abs(cause.effect.count()) * 10 < std::abs(change.count()) || change == 0ns) break;
    const Nanoseconds size = cause.effect > 0ns ? cause.effect : -cause.effect;
    parts += fmt::format("{} {}{}: {}", parts.empty() ? ":" : ";", to_text(size),
                         named == 0 && size <= left ? " of it" : "", cause_text(diff, cause));
    ++named, left -= size;
  }
  if (10 * left < -std::chrono::abs(change))
    parts +=
        fmt::format("; the others take {} {}", to_text(-left), change > 0ns ? "less" : "longer");
  return parts;
}

}  // namespace

std::string mismatch_text(const Diff& diff) {
  if (diff.aligned >= kHardlyTheSameJob) return {};
  return fmt::format("hardly the same job, {} % of the tasks correspond: ",
                     to_fixed(100 * diff.aligned, 1));
}

std::string signed_time(Nanoseconds time) { return (time > 0ns ? "+" : "") + to_text(time); }

std::string cause_text(const DiffCause& cause) {
  switch (cause.kind) {
    case DiffKind::kernels:
      return device_work_text(cause, "kernel");
    case DiffKind::collectives:
      return device_work_text(cause, "collective");
    case DiffKind::replaced:
      return replaced_text(cause);
    case DiffKind::copies:
    case DiffKind::launches:
    case DiffKind::syncs:
      return call_text(cause);
    case DiffKind::host:
    case DiffKind::input:
      return work_text(cause);
    case DiffKind::waits:
      return waits_text(cause);
    case DiffKind::rest:
      break;
  }
  return "order, other steps and differences that belong to no group";
}

std::string cause_text(const Diff& diff, const DiffCause& cause) {
  const bool is_order = cause.kind == DiffKind::waits && cause.added + cause.removed > 0;
  const std::string gone = is_order ? changed_waits_text(diff) : "";
  return gone.empty() ? cause_text(cause) : gone;
}

Table waterfall_table(const Diff& diff, const SideNames& names) {
  Table table{.heading = {"effect", "work itself", "what"}, .rows = {}, .left = {2}};
  const Nanoseconds least = least_shown_effect(diff);
  table.rows.push_back({to_text(diff.before.step_time), "", names.before});
  DiffCause small{.kind = DiffKind::rest, .label = {}, .place = {}};
  std::size_t smaller = 0, hidden = 0;
  for (const DiffCause& cause : diff.causes) {
    const bool is_rest = cause.kind == DiffKind::rest;
    const bool is_shown =
        std::max(std::abs(cause.effect.count()), std::abs(cause.local.count())) >= least.count();
    if ((!is_rest && (!is_shown || table.rows.size() > kMaxWaterfall)) ||
        (is_rest && std::abs(cause.effect.count()) < least.count())) {
      small.effect += cause.effect;
      small.local += cause.local;
      ++(is_shown ? hidden : smaller);
      continue;
    }
    table.rows.push_back({signed_time(cause.effect), is_rest ? "" : signed_time(cause.local),
                          cause_text(diff, cause)});
  }
  if (smaller + hidden > 0)
    table.rows.push_back({signed_time(small.effect), signed_time(small.local),
                          counted(smaller + hidden, "smaller difference")});
  table.rows.push_back({to_text(diff.after.step_time), "", names.after});
  return table;
}

Table content_table(const Diff& diff, const SideNames& names) {
  const bool has_several = diff.before.compared_steps > 1;
  Table table{.heading = {has_several ? "in these steps" : "in the step", names.before, names.after,
                          "change"},
              .rows = {}};
  const StepContent& before = diff.before.content;
  const StepContent& after = diff.after.content;
  const auto add = [&](const char* name, std::int64_t a, std::int64_t b) {
    if (a == 0 && b == 0) return;
    table.rows.push_back(
        {name, number_text(a), number_text(b), a == b ? "" : (b > a ? "+" : "") + grouped(b - a)});
  };
  const auto add_bytes = [&](const char* name, Bytes a, Bytes b) {
    if (a.count == 0 && b.count == 0) return;
    table.rows.push_back({name, to_text(a), to_text(b), change_text(a, b)});
  };
  add("kernels", before.kernels, after.kernels);
  add("collectives", before.collectives, after.collectives);
  add("copies", before.copies, after.copies);
  add_bytes("bytes copied", before.copied, after.copied);
  add("fills", before.fills, after.fills);
  add("launches", before.launches, after.launches);
  add("synchronizations", before.syncs, after.syncs);
  add("allocations", before.allocations, after.allocations);
  // A trace without memory records does not mean that the job uses no memory.
  if (diff.before.peak_allocated && diff.after.peak_allocated)
    add_bytes("peak allocated", *diff.before.peak_allocated, *diff.after.peak_allocated);
  return table;
}

Table path_table(const Diff& diff) {
  Table table{.heading = {"critical path", "A", "B", "change"}, .rows = {}};
  for (const PathShare& share : diff.path)
    table.rows.push_back({share.name, to_text(share.before), to_text(share.after),
                          signed_time(share.after - share.before)});
  return table;
}

Table peak_table(const Diff& diff) {
  Table table{.heading = {"in use at the peak", "A", "B", "change"}, .rows = {}};
  for (const PeakChange& change : diff.peak) {
    const Bytes more = change.after - change.before;
    table.rows.push_back({change.op, to_text(change.before), to_text(change.after),
                          (more.count > 0 ? "+" : "") + to_text(more)});
  }
  return table;
}

Table ranks_table(const DiffReport& report) {
  Table table{.heading = {"rank", "A", "B", "change"}, .rows = {}};
  if (report.ranks.size() < 2) return table;
  const bool has_rank_facts =
      std::all_of(report.ranks.begin(), report.ranks.end(),
                  [](const Diff& diff) { return diff.among_before && diff.among_after; });
  if (has_rank_facts)
    table.heading.insert(table.heading.end(),
                         {"waits in all, A", "B", "keeps waiting in all, A", "B"});
  for (const Diff& diff : report.ranks) {
    std::vector<std::string>& row = table.rows.emplace_back(std::vector<std::string>{
        std::to_string(diff.rank), to_text(diff.before.step_time), to_text(diff.after.step_time),
        change_text(diff.before.step_time, diff.after.step_time)});
    if (!has_rank_facts) continue;
    row.insert(row.end(), {to_text(diff.among_before->waits), to_text(diff.among_after->waits),
                           to_text(diff.among_before->keeps_waiting),
                           to_text(diff.among_after->keeps_waiting)});
  }
  return table;
}

const Diff& slowest_of(const DiffReport& report) {
  return *std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const Diff& a, const Diff& b) { return a.after.step_time < b.after.step_time; });
}

namespace {

/// Returns by how much the time that other ranks wait for this rank in a step has changed.
Nanoseconds lateness_change(const Diff& diff) {
  if (!diff.among_before || !diff.among_after) return 0ns;
  const auto late = [](const RankFacts& facts, const DiffSideReport& side) {
    return facts.keeps_waiting / static_cast<std::int64_t>(std::max<std::size_t>(side.steps, 1));
  };
  return std::chrono::abs(late(*diff.among_after, diff.after) -
                          late(*diff.among_before, diff.before));
}

}  // namespace

const Diff& decisive_rank(const DiffReport& report) {
  const Diff& slowest = slowest_of(report);
  const Diff& late = *std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const Diff& a, const Diff& b) { return lateness_change(a) < lateness_change(b); });
  const Nanoseconds change = std::chrono::abs(slowest.after.step_time - slowest.before.step_time);
  return change > 0ns && 2 * lateness_change(late) > change ? late : slowest;
}

std::string step_change(const Diff& diff) {
  return fmt::format("{} -> {} ({})", to_text(diff.before.step_time), to_text(diff.after.step_time),
                     change_text(diff.before.step_time, diff.after.step_time));
}

std::string compared_text(const Diff& diff) {
  const auto name = [](const DiffSideReport& side) {
    if (!side.has_steps) return std::string("the whole recording");
    const std::string step = side.compared_step.empty() ? "a step" : side.compared_step;
    if (side.compared_steps > 1)
      return fmt::format("{} and {} more of {}", step, grouped(side.compared_steps - 1),
                         grouped(side.steps));
    return fmt::format("{}, one of {}", step, grouped(side.steps));
  };
  return fmt::format("{} ({}) with {} ({}); {} % of the tasks correspond", name(diff.before),
                     to_text(diff.before.compared), name(diff.after), to_text(diff.after.compared),
                     to_fixed(100 * diff.aligned, 1));
}

namespace {

/// A difference within the variation between steps of one recording is chance, not a cause. Other
/// work may cause one that is smaller than the distance to a single slow step.
bool is_within_variation(const Diff& diff, Nanoseconds change) {
  const StepTimes &before = diff.before.times, &after = diff.after.times;
  if (!diff.before.has_steps || diff.before.steps < 3) return false;
  if (diff.same_structure)
    return after.fastest <= before.slowest && before.fastest <= after.slowest;
  const Nanoseconds range =
      std::min(before.slowest - before.fastest, after.slowest - after.fastest);
  return 2 * std::chrono::abs(change) <= range;
}

}  // namespace

std::string diff_verdict(const Diff& diff) {
  if (diff.identical) return "no difference";
  if (!diff.has_times) return peak_verdict(diff);
  const Nanoseconds change = diff.after.step_time - diff.before.step_time;
  const std::string unit = diff.after.has_steps ? " a step" : "";
  std::string text = mismatch_text(diff);
  if (change == 0ns) {
    text += "B takes as long as A" + unit;
  } else {
    text += fmt::format("B takes {} {}{} ({})", to_text(change > 0ns ? change : -change),
                        change > 0ns ? "longer" : "less", unit,
                        change_text(diff.before.step_time, diff.after.step_time));
  }
  if (is_within_variation(diff, change))
    return text + ", which is within the variation between its own steps" +
           (diff.same_structure ? "; the work is the same" : "");
  const std::string parts = main_causes_text(diff, change);
  if (parts.empty() && diff.same_structure) return text + "; the work is the same";
  return text + parts;
}

std::string_view to_string(DiffKind kind) {
  constexpr std::string_view kNames[] = {"kernels", "replaced", "collectives", "copies", "launches",
                                         "syncs",   "host",     "input",       "waits",  "rest"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace foretrace
