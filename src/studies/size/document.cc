// The size of a data parallel job, as text and JSON.

#include "document/document.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_values.h"
#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/answer/trust.h"
#include "foretrace/version.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"
#include "studies/size/size.h"

namespace foretrace {
namespace {

std::string overhead_heading(const SizingReport& report) {
  std::vector<std::string> parts;
  for (const auto& [name, time] : report.parts) {
    if (time > Nanoseconds{0}) parts.push_back(fmt::format("{} {}", name, to_text(time)));
  }
  return fmt::format("{} of a step compute, {} are overhead that nothing hides{}: R = {}",
                     to_text(*report.compute), to_text(*report.overhead),
                     parts.empty() ? "" : fmt::format(" ({})", joined(parts)),
                     to_fixed(report.overhead_share(), 4));
}

std::vector<std::string> answers(const SizingReport& report) {
  std::vector<std::string> lines;
  if (report.gpus_for_speedup)
    lines.push_back(fmt::format("{} times the speed needs {} GPUs", to_fixed(*report.speedup, 2),
                                to_fixed(*report.gpus_for_speedup, 2)));
  if (report.gpus_for_efficiency)
    lines.push_back(fmt::format("with up to {} GPUs, each does at least {} of what one alone does",
                                to_fixed(*report.gpus_for_efficiency, 2),
                                to_share(*report.efficiency)));
  if (report.speedup_limit)
    lines.push_back(fmt::format("no number of GPUs reaches {} times the speed",
                                to_fixed(*report.speedup_limit, 2)));
  return lines;
}

Table table_of(const SizingReport& report) {
  Table table{.heading = {"GPUs", "speed-up", "efficiency"}, .rows = {}, .left = {}};
  if (report.efficiency) table.heading.push_back("R for " + to_share(*report.efficiency));
  if (report.model) table.heading.emplace_back("servers");
  for (const SizedCount& one : report.counts) {
    std::vector<std::string> cells = {grouped(one.gpus), to_fixed(one.speedup, 3),
                                      to_share(one.efficiency, 2)};
    if (report.efficiency)
      cells.push_back(one.overhead_allowed ? to_fixed(*one.overhead_allowed, 4) : "any");
    if (report.model) cells.push_back(grouped(*one.servers));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table batches_table(const SizingReport& report) {
  Table table{.heading = {"batch", "work space", "used", "step", "epochs", "to the target"},
              .rows = {},
              .left = {}};
  for (const SizedBatch& one : report.batches) {
    const std::string bound = one.bound < Bytes{} ? "none" : to_text(one.bound);
    if (one.fits)
      table.rows.push_back({grouped(one.size), bound, to_text(one.memory), to_text(one.time),
                            to_text(one.epochs), to_fixed(one.total_hours, 3) + " h"});
    else
      table.rows.push_back({grouped(one.size), bound, "does not fit", "-", "-", "-"});
  }
  return table;
}

Table layers_table(const SizedBatch& batch) {
  Table table{.heading = {"layer", "algorithm", "time", "work space"}, .rows = {}, .left = {0, 1}};
  for (const SizedLayer& one : batch.layers)
    table.rows.push_back({one.name, one.algorithm, to_text(one.time), to_text(one.memory)});
  return table;
}

nlohmann::json batches_json(const SizingReport& report) {
  nlohmann::json all = nlohmann::json::array();
  for (const SizedBatch& one : report.batches) {
    nlohmann::json layers = nlohmann::json::array();
    for (const SizedLayer& layer : one.layers)
      layers.push_back({{"name", layer.name},
                        {"algorithm", layer.algorithm},
                        {"time_ns", layer.time.count()},
                        {"memory_bytes", layer.memory.count}});
    all.push_back({{"size", one.size},
                   {"bound_bytes", one.bound.count},
                   {"fits", one.fits},
                   {"step_time_ns", one.time.count()},
                   {"epochs", one.epochs},
                   {"hours", one.total_hours},
                   {"memory_bytes", one.memory.count},
                   {"layers", layers}});
  }
  return all;
}

}  // namespace

nlohmann::json to_json(const SizingReport& report) {
  nlohmann::json parts = nlohmann::json::object(), counts = nlohmann::json::array();
  for (const auto& [name, time] : report.parts) parts[name] = time.count();
  for (const SizedCount& one : report.counts)
    counts.push_back({{"gpus", one.gpus},
                      {"speedup", one.speedup},
                      {"efficiency", one.efficiency},
                      {"overhead_share_allowed", one.overhead_allowed},
                      {"servers", one.servers}});
  return {{"schema", "foretrace.sizing/1"},
          {"tool", {{"version", kVersion}}},
          {"trace", unless_default(report.trace)},
          {"compute_ns", report.compute},
          {"overhead_ns", report.overhead},
          {"overhead_parts_ns", parts},
          {"overhead_share",
           report.compute ? nlohmann::json(report.overhead_share()) : nlohmann::json()},
          {"counts", counts},
          {"speedup", report.speedup},
          {"gpus_for_speedup", report.gpus_for_speedup},
          {"speedup_limit", report.speedup_limit},
          {"efficiency", report.efficiency},
          {"gpus_for_efficiency", report.gpus_for_efficiency},
          {"model_bytes", report.model},
          {"server_bytes_per_second", report.server.bytes_per_second},
          {"solver", report.solver},
          {"memory_bytes", report.memory.count},
          {"batches", batches_json(report)},
          {"best_batch",
           report.best ? nlohmann::json(report.batches[*report.best].size) : nlohmann::json()},
          {"trust", to_json(report.trust)},
          {"assumptions", report.assumptions},
          {"notes", notes_json(report.notes)}};
}

Document document_of(const SizingReport& report) {
  Document document("Size");
  if (const std::string warning = trust_warning(report.trust); !warning.empty())
    document.say("Trust is " + warning);
  if (report.compute) {
    document.say(overhead_heading(report));
    if (!report.counts.empty()) document.titled("", table_of(report));
    document.list("answers:", answers(report));
    for (const std::string& answer : answers(report)) document.sum_up(answer);
  }
  if (report.best) {
    const SizedBatch& best = report.batches[*report.best];
    const std::string text =
        fmt::format("A batch of {} is the fastest to the target on a GPU of {}.",
                    grouped(best.size), to_text(report.memory));
    if (report.compute)
      document.section("").say(text).sum_up(text);
    else
      document.say(text);
    document.titled("", batches_table(report));
    document.titled("algorithms of this batch:", layers_table(best));
  }
  return document.list("assumed:", report.assumptions).list("notes:", note_texts(report.notes));
}

}  // namespace foretrace
