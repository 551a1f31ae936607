// The assignment of idle nodes to jobs, as text, CSV and JSON.

#include "document/document.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "base/wording.h"
#include "document/words/facts.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "studies/allocate/allocate.h"

namespace foretrace {
namespace {

double share_lost(double lost, const AllocationReplay& replay) {
  const double all = replay.samples + replay.rescaled + replay.preempted;
  return all > 0 ? lost / all : 0;
}

Table table_of(const AllocationReport& report) {
  Table table{.heading = {"job", "nodes", "before", "samples/s"}, .rows = {}};
  for (const AllocatedJob& job : report.jobs)
    table.rows.push_back(
        {job.name, grouped(job.nodes), grouped(job.before), to_fixed(job.rate, 1)});
  return table;
}

Table table_of(const AllocationReport& report, const AllocationReplay& replay) {
  Table table{.heading = {"replay", ""}, .rows = {}};
  if (report.slow) {
    table.heading.emplace_back("slow");
    table.heading.emplace_back("fast");
  }
  const auto add = [&](const char* name, const auto& text_of) {
    std::vector<std::string> cells = {name, text_of(replay)};
    if (report.slow) cells.push_back(text_of(*report.slow)), cells.push_back(text_of(*report.fast));
    table.rows.push_back(std::move(cells));
  };
  using R = AllocationReplay;
  add("time", [](const R& one) { return to_text(one.makespan); });
  add("jobs done", [](const R& one) { return std::to_string(one.done); });
  add("jobs left", [](const R& one) { return std::to_string(one.left); });
  add("changes of nodes", [](const R& one) { return std::to_string(one.events); });
  add("idle nodes, mean", [](const R& one) { return to_fixed(one.mean_nodes, 2); });
  add("samples", [](const R& one) { return to_fixed(one.samples, 0); });
  add("samples per idle node and second",
      [](const R& one) { return to_fixed(one.per_node_second(), 1); });
  add("lost to rescaling", [](const R& one) { return to_share(share_lost(one.rescaled, one), 2); });
  add("lost to nodes taken back",
      [](const R& one) { return to_share(share_lost(one.preempted, one), 2); });
  add("efficiency", [](const R& one) { return to_share(one.efficiency); });
  return table;
}

nlohmann::json replay_json(const std::optional<AllocationReplay>& replay) {
  if (!replay) return {};
  return {{"makespan_ns", replay->makespan.count()},
          {"events", replay->events},
          {"jobs_done", replay->done},
          {"jobs_left", replay->left},
          {"mean_idle_nodes", replay->mean_nodes},
          {"samples", replay->samples},
          {"samples_per_idle_node_second", replay->per_node_second()},
          {"lost_to_rescaling", share_lost(replay->rescaled, *replay)},
          {"lost_to_preemption", share_lost(replay->preempted, *replay)},
          {"efficiency", replay->efficiency}};
}

Facts job_facts(const AllocatedJob& job) {
  Facts facts;
  facts.detail("name", job.name)
      .column("job", job.name)
      .fact("nodes", job.nodes)
      .fact("nodes_before", job.before)
      .fact("samples_per_second", job.rate);
  return facts;
}

}  // namespace

nlohmann::json to_json(const AllocationReport& report) {
  return {{"schema", "foretrace.allocation/1"},
          {"tool", {{"version", kVersion}}},
          {"objective", report.objective},
          {"solver", report.solver},
          {"ahead_ns", report.ahead.count()},
          {"nodes", report.nodes},
          {"jobs", rows_json(report.jobs, job_facts)},
          {"value", report.value},
          {"replay", replay_json(report.replay)},
          {"replay_slow", replay_json(report.slow)},
          {"replay_fast", replay_json(report.fast)},
          {"assumptions", report.assumptions},
          {"notes", notes_json(report.notes)}};
}

void write_csv(const AllocationReport& report, std::ostream& out) {
  write_rows(report.jobs, job_facts, out);
}

Document document_of(const AllocationReport& report) {
  Document document("Allocation");
  document.say(fmt::format("{}, {} over the next {}, by {}", counted(report.nodes, "node"),
                           report.objective, to_text(report.ahead), report.solver));
  document.titled("", report.replay ? table_of(report, *report.replay) : table_of(report));
  if (report.replay) {
    document.sum_up(fmt::format("{} jobs done in {}, efficiency {}", report.replay->done,
                                to_text(report.replay->makespan),
                                to_share(report.replay->efficiency)));
  } else {
    document.section("").say("objective " + to_fixed(report.value, 1));
  }
  return document.list("assumed:", report.assumptions);
}

}  // namespace foretrace
