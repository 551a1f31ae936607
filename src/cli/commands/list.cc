#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/wording.h"
#include "cli/options/options.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/machine.h"
#include "foretrace/report.h"
#include "foretrace/transform.h"
#include "network/collective.h"
#include "network/network.h"
#include "report/machine/machine_text.h"
#include "schedule/schedule.h"
#include "transform/synonyms.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

template <class Entries>
Rows rows_of(const Entries& entries) {
  Rows rows;
  for (const auto& entry : entries) rows.emplace_back(entry.name, entry.summary);
  return rows;
}

Rows device_rows() {
  Rows rows;
  for (const std::string_view name : device_names()) {
    const DeviceModel device = find_device(name);
    const bool tensor_cores = device.bf16.flops_per_second > 0;
    const Throughput half = tensor_cores ? device.bf16 : device.fp16;
    const std::string what = tensor_cores ? " bf16, " : " fp16, ";
    rows.emplace_back(name, fmt::format("{}{} fp32, {}, {}",
                                        half.flops_per_second > 0 ? to_text(half) + what : "",
                                        to_text(device.fp32), to_text(device.memory_bandwidth),
                                        to_text(device.memory)));
  }
  return rows;
}

struct Listing {
  std::string_view name;
  Rows (*rows)();
};

/// Shows what each common name stands for, in one row for all names of the same step.
Rows synonym_rows() {
  Rows rows;
  for (const Synonym& synonym : synonyms()) {
    std::string step(synonym.transform);
    if (!synonym.settings.empty()) step += ":" + std::string(synonym.settings);
    std::string words = joined(synonym.words);
    if (!synonym.value.empty()) words += "; with =VALUE it sets " + std::string(synonym.value);
    rows.emplace_back(std::move(step), std::move(words));
  }
  return rows;
}

constexpr Listing kLists[] = {
    {"collectives", [] { return rows_of(algorithms()); }},
    {"commands", [] { return rows_of(commands()); }},
    {"devices", device_rows},
    {"exporters", [] { return rows_of(exporters()); }},
    {"importers", [] { return rows_of(importers()); }},
    {"machines", [] { return rows_of(clusters()); }},
    {"models", [] { return rows_of(workloads()); }},
    {"reports", [] { return rows_of(reports()); }},
    {"schedules", [] { return rows_of(schedules()); }},
    {"synonyms", synonym_rows},
    {"transforms", [] { return rows_of(transforms()); }},
};

void print(const Listing& list, std::ostream& out) {
  const Rows rows = list.rows();
  std::size_t width = 0;
  for (const auto& [name, summary] : rows) width = std::max(width, name.size());
  for (const auto& [name, summary] : rows) {
    out << name << std::string(width - name.size() + 2, ' ') << summary << '\n';
  }
}

void list(const std::string& what, Session& session) {
  std::vector<std::string_view> names;
  for (const Listing& list : kLists) {
    if (list.name == what) return print(list, session.out);
    names.push_back(list.name);
    if (!what.empty()) continue;
    session.out << (names.size() == 1 ? "" : "\n") << list.name << ":\n";
    print(list, session.out);
  }
  if (what.empty()) return;
  throw Error(fmt::format("list: must be one of {}, got '{}'{}", joined(names), what,
                          did_you_mean(what, names)));
}

struct ListCommand {
  std::string what, machine;
  FormatOption format{{"text", "json"}, "text"};
  std::int64_t ranks = 0;

  void add_to(CLI::App& command) {
    std::string all;
    for (const Listing& list : kLists) all += (all.empty() ? "" : "|") + std::string(list.name);
    command.add_option("WHAT", what, "What to list; everything by default")->type_name(all);
    command
        .add_option("MACHINE", machine,
                    "With machines: one to show, by name and settings (dgx-h100:hosts=16) or as a "
                    "file: our JSON, NCCL's topology (.xml), ASTRA-sim's network (.yml)")
        ->type_name("NAME");
    command.add_option("--ranks", ranks, "With a machine: show it with room for this many ranks")
        ->check(CLI::Range(1, 10'000'000));
    format.add_to(command);
  }

  void run(Session& session) const {
    format.check();
    const bool json = format.chosen == "json";
    if (machine.empty() && (json || ranks > 0))
      throw Error(
          "list: --format and --ranks need a machine, as in `foretrace list machines dgx-h100`");
    if (machine.empty()) return list(what, session);
    if (what != "machines")
      throw Error(
          fmt::format("list: only machines can be shown one by one, got '{} {}'", what, machine));
    if (json) return print_json(cluster_json(machine, ranks), session.out);
    write_machine(Network(find_cluster(machine, ranks)), session.out);
  }
};

}  // namespace

void add_list(CLI::App& command, Session& session) { add_command<ListCommand>(command, session); }

}  // namespace foretrace
