#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/wording.h"
#include "cli/commands/machine_text.h"
#include "cli/options/command.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/machine.h"
#include "foretrace/scenario.h"
#include "foretrace/transform.h"
#include "network/collective.h"
#include "network/network.h"
#include "question/common/forms.h"
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
    {"commands", [] { return rows_of(outer_commands()); }},
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

/// Prints one list, or all if `what` is empty.
void list(std::string_view what, std::ostream& out) {
  bool is_first = true;
  for (const Listing& list : kLists) {
    if (list.name == what) return print(list, out);
    if (!what.empty()) continue;
    out << (is_first ? "" : "\n") << list.name << ":\n";
    print(list, out);
    is_first = false;
  }
}

class ListCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    std::vector<std::string_view> names;
    for (const Listing& list : kLists) names.push_back(list.name);
    fields.as({.value = "WHAT", .is_positional = true})
        .choice("what", what_, names, "What to list; everything by default");
    fields.as({.value = "MACHINE", .is_positional = true})
        .name_or_path("machine", machine_,
                      "With machines: one to show, by name and settings (dgx-h100:hosts=16) or as "
                      "a file: our JSON, NCCL's topology (.xml), ASTRA-sim's network (.yml)");
    fields.integer("ranks", ranks_, "With a machine: show it with room for this many ranks", 1,
                   10'000'000);
    fields.choice("format", format_, {"text", "json"}, "Format of the result");
  }

  void run(Invocation& invocation) override {
    const bool json = format_ == "json";
    if (machine_.empty() && (json || ranks_ > 0))
      throw Error(
          "list: --format and --ranks need a machine, as in `foretrace list machines dgx-h100`");
    if (machine_.empty()) return list(what_, invocation.out);
    if (what_ != "machines")
      throw Error(
          fmt::format("list: only machines take a name to show, got '{} {}'", what_, machine_));
    if (json) return print_json(cluster_json(machine_, ranks_), invocation.out);
    write_machine(Network(find_cluster(machine_, ranks_)), invocation.out);
  }

 private:
  std::string what_, machine_, format_ = "text";
  std::int64_t ranks_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_list_command() { return std::make_unique<ListCommand>(); }

}  // namespace foretrace
