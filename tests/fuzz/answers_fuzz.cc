// Answers that do not come from one recording (collectives, scaling, pipelines, generated steps,
// plans, node allocation, sizing, systems) in every form, with arbitrary bytes for their texts and
// unusual values for their figures. They must contain nothing that a terminal, a browser or a
// runner would obey.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/shown.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/collective.h"
#include "foretrace/answer/generation.h"
#include "foretrace/answer/pipeline.h"
#include "foretrace/answer/plan.h"
#include "foretrace/answer/scale.h"
#include "foretrace/answer/trust.h"
#include "fuzz/hostile_trace.h"
#include "fuzz/report_bytes.h"
#include "fuzz/supply.h"
#include "studies/allocate/allocate.h"
#include "studies/size/size.h"
#include "studies/system/system.h"

namespace {

using namespace foretrace;

class Answers {
 public:
  explicit Answers(Supply& supply) : supply_(supply) {}

  void collective() {
    CollectiveReport report;
    report.machine = text("dgx-h100"), report.fidelity = "closed";
    for (std::uint32_t i = few(); i > 0; --i) {
      CollectiveRow row;
      row.operation = "all_reduce", row.ranks = 1 + few(), row.bytes = bytes();
      row.algorithm = "Tree LL128", row.basis = "NCCL's model";
      row.time = time(), row.lower = time(), row.upper = time();
      row.algorithm_bandwidth = number(), row.bus_bandwidth = number(),
      row.measured = maybe(time());
      if (supply_.below(2) != 0)
        row.packets = PacketFigures{.transport = "dctcp", .mean = time(), .p99 = time()};
      report.rows.push_back(row);
    }
    for (std::uint32_t i = few(); i > 0; --i)
      report.errors.push_back({"2 nodes x 4 ranks", few(), number(), number()});
    report.assumptions = texts("links are idle"), report.calibration = text("measured.csv");
    check(report);
  }

  void scale() {
    ScaleReport report;
    report.inputs = {{text("job.json.gz"), "kineto", "ab12"}};
    report.machine = text("dgx-a100"), report.changes = texts("amp"), report.recorded = time();
    for (std::uint32_t i = few(); i > 0; --i) {
      ScalePoint point;
      point.scheme = text("data_parallel:bucket=50MB"), point.gpus = 1 + few();
      point.step_time = time(), point.lower = time(), point.upper = time();
      point.throughput = number(), point.efficiency = number(), point.rate = maybe(number());
      point.peak = maybe(bytes());
      if (supply_.below(3) == 0) point.refused = text("32 GPUs are more than the machine has");
      report.points.push_back(point);
    }
    report.limits = texts("data_parallel: the links"), report.assumptions = texts("no contention");
    report.trust = trust();
    add_notes(report.notes);
    check(report);
  }

  void pipeline() {
    PipelineReport report;
    report.schedule = "1f1b", report.settings_json = R"({"stages":2})";
    report.stages = 2, report.micro_batches = 2, report.makespan = Nanoseconds(100);
    report.bubble_rate = number(), report.assumptions = texts("stages are equal");
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      PipelineRank& line = report.ranks.emplace_back();
      for (std::uint32_t i = few(); i > 0; --i) {
        const Nanoseconds start = std::min(time(), Nanoseconds(99));
        line.actions.push_back(
            {.name = text("2F5"), .stage = rank, .start = start, .finish = report.makespan});
      }
    }
    check(report);
  }

  void generation() { check(generated()); }

  void plan() {
    PlanReport report;
    report.model = text("gpt3"), report.machine = text("dgx-h100");
    report.trace = text("job.json.gz"), report.limit = bytes(), report.currency = text("$");
    report.layouts = few(), report.replayed = few(), report.command = text("foretrace generate");
    report.ranked = plan_rows(), report.front = plan_rows();
    if (supply_.below(2) != 0) {
      report.strategy = PlanStrategy{.name = "alpa", .time = time(), .schedule = "1f1b"};
      report.strategy->stages.push_back({text("embedding"), text("head"), 1, 4, 2, time()});
    }
    for (std::uint32_t i = few(); i > 0; --i) {
      report.losses.emplace_back("memory", few());
      const std::vector<PlanRow> rows = plan_rows();
      report.launches.push_back({.program = "torchrun",
                                 .row = rows.empty() ? std::nullopt : std::optional(rows[0]),
                                 .flags = texts("--tp 2")});
    }
    if (supply_.below(2) != 0) report.measured = generated();
    report.assumptions = texts("links are idle");
    add_notes(report.notes);
    check(report);
  }

  void allocation() {
    AllocationReport report{.objective = "throughput", .solver = "milp"};
    for (std::uint32_t i = few(); i > 0; --i)
      report.jobs.push_back({text("resnet"), few(), few(), number()});
    report.value = number(), report.assumptions = texts("nodes are equal");
    if (supply_.below(2) != 0)
      report.replay = AllocationReplay{
          .makespan = time(), .mean_nodes = number(), .samples = number(), .efficiency = number()};
    add_notes(report.notes);
    check(report);
  }

  void sizing() {
    SizingReport report{.trace = text("job.json.gz"), .compute = time(), .overhead = time()};
    for (std::uint32_t i = few(); i > 0; --i) {
      report.parts.emplace_back("copies", time());
      report.counts.push_back({1 + few(), number(), number(), maybe(number()), std::nullopt});
    }
    report.speedup = maybe(number()), report.gpus_for_speedup = maybe(number());
    report.efficiency = maybe(number()), report.gpus_for_efficiency = maybe(number());
    for (std::uint32_t i = few(); i > 0; --i) {
      SizedBatch& batch = report.batches.emplace_back();
      batch.size = 1 + few(), batch.bound = bytes(), batch.time = time(), batch.epochs = number();
      batch.fits = supply_.below(2) != 0, batch.memory = bytes();
      batch.layers.push_back({text("conv1"), text("winograd"), time(), bytes()});
    }
    report.solver = "milp", report.trust = trust(), report.assumptions = texts("one server");
    add_notes(report.notes);
    check(report);
  }

  void system() {
    SystemReport report{.title = text("A cache")};
    const std::string setting = text("nodes"), figure = text("epoch");  // The same in all rows.
    for (std::uint32_t i = 1 + few(); i > 0; --i) {
      SystemRow& row = report.rows.emplace_back();
      row.settings[setting] = number(), row.seconds = number();
      row.figures.emplace_back(figure, number()), row.failed = texts("epoch < 3 s");
    }
    report.means.emplace_back(text("epoch"), number()), report.failed = texts("mean < 3");
    check(report);
  }

 private:
  std::uint32_t few() { return supply_.below(4); }
  std::string text(std::string_view usual) { return hostile_text(supply_, usual); }
  Nanoseconds time() { return Nanoseconds(supply_.time()); }
  Bytes bytes() { return Bytes{supply_.time() * 1000}; }

  double number() {
    constexpr double kNumbers[] = {0,
                                   1,
                                   0.37,
                                   -2,
                                   1e-12,
                                   3.4e18,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    return supply_.one_of(kNumbers);
  }

  template <class Value>
  std::optional<Value> maybe(Value value) {
    return supply_.below(2) == 0 ? std::nullopt : std::optional(value);
  }

  std::vector<std::string> texts(std::string_view usual) {
    std::vector<std::string> all(few());
    for (std::string& one : all) one = text(usual);
    return all;
  }

  Trust trust() {
    return {{{"other_ranks", Grade::poor, text("87.9 % of the step is unknown"), maybe(number()),
              maybe(number())}}};
  }

  void add_notes(Notes& notes) {
    for (std::uint32_t i = few(); i > 0; --i)
      notes.add(Severity::warning, text("odd records"), text("record 7"));
  }

  std::vector<PlanRow> plan_rows() {
    std::vector<PlanRow> rows(few());
    for (PlanRow& row : rows) {
      row.role = "yours", row.layout = text("tp2 pp4"), row.loss = "memory";
      row.time = time(), row.lower = time(), row.upper = time(), row.network = time();
      row.reserved = bytes(), row.cost = maybe(number()), row.gpus = 1 + few();
    }
    return rows;
  }

  GenerationReport generated() {
    GenerationReport report;
    if (supply_.below(2) != 0) {
      GeneratedStep step{.model = text("gpt3"), .machine = text("dgx-h100"), .layout = text("tp2")};
      step.time = time(), step.lower = time(), step.upper = time(), step.allocated = bytes();
      step.tokens_per_second = number(), step.utilization = number();
      for (std::uint32_t i = few(); i > 0; --i) {
        step.layers.push_back({text("attention"), 1 + few(), number(), number(), bytes(), bytes()});
        step.breakdown.emplace_back("compute", time());
        step.memory.emplace_back(text("weights"), bytes());
      }
      report.step = step;
    }
    for (std::uint32_t i = few(); i > 0; --i) {
      GeneratedRow row{
          .number = i, .name = text("run 7"), .time = time(), .measured = maybe(time())};
      row.lower = time(), row.upper = time(), row.allocated = bytes();
      report.rows.push_back(row);
    }
    const std::vector<std::pair<std::string, double>> groups(report.rows.size());
    report.score = maybe(score_of(report.rows, groups));
    report.constants.emplace_back(text("efficiency"), number(), "%");
    report.calibration = text("measured.csv"), report.assumptions = texts("links are idle");
    add_notes(report.notes);
    return report;
  }

  template <class Report>
  static void check(const Report& report) {
    require_json(indented_json(to_json(report)));
    check_document(document_of(report));
    if constexpr (requires(std::ostream & out) { write_csv(report, out); })
      require_plain(written([&](std::ostream& out) { write_csv(report, out); }));
  }

  Supply& supply_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Check = void (Answers::*)();
  constexpr Check kChecks[] = {&Answers::collective, &Answers::scale, &Answers::pipeline,
                               &Answers::generation, &Answers::plan,  &Answers::allocation,
                               &Answers::sizing,     &Answers::system};
  Supply supply(data, size);
  const Check check = supply.one_of(kChecks);
  Answers answers(supply);
  (answers.*check)();
  return 0;
}
