#include "ask/generate/measured_rows.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "ask/generate/table_row.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kGibi = 1073741824.;
constexpr std::string_view kOutOfMemory = "oom";

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

struct Column {
  std::string_view name;
  std::vector<std::string_view> names;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
#define COLUMN(name, ...) {#name, __VA_ARGS__},
#include "ask/generate/columns.def"
#undef COLUMN
  };
  return all;
}

std::string machine_of(const std::string& device) {
  static constexpr std::pair<std::string_view, std::string_view> kHosts[] = {
#define RECORDED_HOST(start, machine) {start, machine},
#include "ask/generate/hosts.def"
#undef RECORDED_HOST
  };
  const std::string letters = letters_and_digits(device);
  std::string found;
  std::size_t longest = 0;
  for (const auto& [start, machine] : kHosts) {
    if (letters.starts_with(start) && start.size() > longest)
      longest = start.size(), found = machine;
  }
  return found;
}

class Reader {
 public:
  Reader(const RowDefaults& defaults, const std::vector<std::string>& heading)
      : defaults_(defaults) {
    for (const std::string& cell : heading) {
      const std::string letters = letters_and_digits(cell);
      std::string name;
      for (const Column& column : columns()) {
        if (std::ranges::find(column.names, letters) != column.names.end()) name = column.name;
      }
      heading_.push_back(std::move(name));
    }
    if (std::ranges::find(heading_, "time") == heading_.end())
      throw Error("must have a column iteration_ms, step_ms or iteration time (ms)");
  }

  MeasuredRow read(std::vector<std::string> cells) {
    const TableRow row(heading_, std::move(cells));
    MeasuredRow read;
    Layout& layout = read.step.layout;
    layout = defaults_.layout;
    read_layout(row, layout);
    read.step.platform = platform_of(row);
    if (layout.precision == "bf16" && read.step.platform.device.bf16.flops_per_second <= 0)
      layout.precision = "fp16";
    const std::string text = workload_text(row, defaults_.workload, layout);
    read.step.workload = find_workload(text);
    const std::int64_t layers = read.step.workload->layer_count();
    if (layers % layout.pipeline != 0 && (layers + 2) % layout.pipeline == 0)
      layout.embedding_is_layer = true;
    read.step.release = release_of(row.text("variant"));
    read.step.name = name_of(text, layout);
    read.group = text + " on " + row.text("gpu") + " x " + std::to_string(layout.devices());
    read.out_of_memory = row.lower("time").find(kOutOfMemory) != std::string::npos;
    if (!read.out_of_memory) {
      const auto time = row.number("time");
      if (!time || *time <= 0) throw Error("has no time");
      read.step.us = *time * 1e3;
    }
    if (const auto memory = row.number("memory")) read.memory_bytes = *memory * kGibi;
    // A batch that does not divide is refused here.
    StepPricer().price(*read.step.workload, layout, read.step.platform, Constants{});
    return read;
  }

 private:
  static std::string name_of(const std::string& text, const Layout& layout) {
    const auto one = [](const char* name, std::int64_t value) {
      return value > 1 ? std::string(" ") + name + std::to_string(value) : std::string();
    };
    return text + one("tp", layout.tensor) + one("pp", layout.pipeline) + one("dp", layout.data) +
           one("cp", layout.context) + one("ep", layout.expert) + one("vp", layout.virtual_stages) +
           " mb" + std::to_string(layout.micro_batch) + " gb" + std::to_string(layout.global_batch);
  }

  Platform platform_of(const TableRow& row) {
    const std::string recorded = row.has("gpu") ? machine_of(row.text("gpu")) : "";
    const std::string machine = defaults_.machine.empty() ? recorded : defaults_.machine;
    if (machine.empty())
      throw Error("gpu: must be one that is known, or --machine be given, got '" + row.text("gpu") +
                  "'");
    if (!platforms_.contains(machine)) platforms_.emplace(machine, find_platform(machine));
    Platform platform = platforms_.at(machine);
    const auto gpus = row.number("gpus"), nodes = row.number("nodes");
    if (gpus && nodes && *nodes >= 1) {
      const std::int64_t per_node = std::llround(*gpus / *nodes);
      if (per_node >= 1 && per_node<platform.per_node&& * nodes> 1) platform.per_node = per_node;
    }
    return platform;
  }

  const RowDefaults& defaults_;
  std::vector<std::string> heading_;
  std::map<std::string, Platform> platforms_;
};

/// "column=text" filters by the names of the heading itself.
bool passes(const std::vector<std::string>& heading, const std::vector<std::string>& cells,
            const std::vector<std::string>& only) {
  for (const std::string& one : only) {
    const std::size_t equal = one.find('=');
    if (equal == std::string::npos) throw Error("--only: must be COLUMN=TEXT, got '" + one + "'");
    const auto found = std::ranges::find(heading, one.substr(0, equal));
    if (found == heading.end())
      throw Error("--only: there is no column '" + one.substr(0, equal) + "'" +
                  did_you_mean(one.substr(0, equal), heading));
    const auto place = static_cast<std::size_t>(found - heading.begin());
    if (place >= cells.size() || cells[place].find(one.substr(equal + 1)) == std::string::npos)
      return false;
  }
  return true;
}

}  // namespace

std::vector<MeasuredRow> read_measured_rows(const std::string& path, const RowDefaults& defaults,
                                            Notes& notes) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot be read");
  std::string line;
  std::getline(file, line);
  if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  const std::vector<std::string> heading = cells_of(line);
  std::vector<MeasuredRow> rows;
  within(path, [&] {
    Reader reader(defaults, heading);
    for (std::size_t number = 1; std::getline(file, line); ++number) {
      std::vector<std::string> cells = cells_of(line);
      if (!passes(heading, cells, defaults.only)) continue;
      try {
        rows.push_back(reader.read(std::move(cells)));
        rows.back().number = number;
      } catch (const Error& error) {
        notes.add(Severity::warning, kLeftOut,
                  "row " + std::to_string(number) + ": " + error.what());
      }
    }
    if (rows.empty()) throw Error("has no row that can be priced");
  });
  return rows;
}

}  // namespace foretrace
