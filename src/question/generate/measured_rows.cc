#include "question/generate/measured_rows.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <fstream>
#include <map>

#include "base/fields/assignments.h"
#include "base/files/csv_rows.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "question/generate/table_row.h"

namespace foretrace {
namespace {

constexpr double kGibi = 1073741824.;
constexpr std::string_view kOutOfMemory = "oom";

struct Column {
  std::string_view name;
  std::vector<std::string_view> names;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
#define COLUMN(name, ...) {#name, __VA_ARGS__},
#include "question/generate/columns.def"
#undef COLUMN
  };
  return all;
}

struct RecordedHost {
  std::string_view start, machine, settings;
};

/// "a10080gb" of "NVIDIA A100-80GB"
std::string short_name(const std::string& device) {
  constexpr std::string_view kMaker = "nvidia";
  std::string letters = letters_and_digits(device);
  if (letters.starts_with(kMaker)) letters.erase(0, kMaker.size());
  return letters;
}

/// Returns nullptr if `device` begins with no known start.
const RecordedHost* host_of(const std::string& device) {
  static constexpr RecordedHost kHosts[] = {
#define RECORDED_HOST(start, machine, settings) {start, machine, settings},
#include "question/generate/hosts.def"
#undef RECORDED_HOST
  };
  const std::string letters = short_name(device);
  const RecordedHost* found = nullptr;
  for (const RecordedHost& host : kHosts) {
    if (letters.starts_with(host.start) &&
        (found == nullptr || host.start.size() > found->start.size()))
      found = &host;
  }
  return found;
}

const RecordedHost* host_of(const TableRow& row) {
  const RecordedHost* const of_source = host_of(row.text("source") + row.text("gpu"));
  return of_source != nullptr ? of_source : host_of(row.text("gpu"));
}

/// Applies the settings of the program that ran a row.
void read_launcher(const TableRow& row, const std::string& path, Layout& layout) {
  static constexpr std::pair<std::string_view, const char*> kLaunchers[] = {
#define LAUNCHER(word, settings) {word, settings},
#include "question/generate/launchers.def"
#undef LAUNCHER
  };
  std::string words = letters_and_digits(row.text("framework") + row.text("source"));
  if (words.empty()) words = letters_and_digits(path.substr(path.rfind('/') + 1));
  for (const auto& [word, settings] : kLaunchers) {
    if (words.find(word) != std::string::npos) return read_assigned(settings, layout);
  }
}

class RowReader {
 public:
  RowReader(const RowDefaults& defaults, const std::vector<std::string>& heading, std::string path)
      : defaults_(defaults), path_(std::move(path)) {
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
    if (const RecordedHost* const host = host_of(row); host != nullptr && !host->settings.empty())
      read_assigned(host->settings, layout);
    read_launcher(row, path_, layout);
    read_assigned(defaults_.stated, layout);
    read.is_guessed = read_layout(row, layout);
    if (layout.tensor == 1) layout.sequence_parallel = false;
    read.step.platform = platform_of(row);
    read_precision(row, read.step.platform.device, layout);
    note_stated(row, read);
    const std::string text = workload_text(row, defaults_.workload, layout);
    read.step.workload = find_workload(text);
    const std::int64_t layers = read.step.workload->layer_count();
    if (layers % layout.pipeline != 0 && (layers + 2) % layout.pipeline == 0)
      layout.embedding_is_layer = true;
    read.step.release = release_of(row.text("variant"));
    read.step.name = name_of(text, layout);
    read.group = fmt::format("{} on {} x {}", text, row.text("gpu"), layout.devices());
    read.out_of_memory = row.lower("time").find(kOutOfMemory) != std::string::npos ||
                         row.lower("status") == "failed";
    if (!read.out_of_memory) {
      const auto time = row.number("time");
      if (!time || *time <= 0) throw Error("has no time");
      read.step.us = *time * 1e3;
    }
    read.states_recompute = row.has("recompute") || layout.recompute != "none" ||
                            layout.framework == "nanotron";  // Which recomputes nothing by default.
    if (const auto memory = row.number("memory")) read.memory_bytes = *memory * kGibi;
    try {
      // A run that does not say what it recomputes, and that ran, recomputed what it had to.
      if (!read.states_recompute && !read.out_of_memory)
        layout = pricer_.fitting(*read.step.workload, layout, read.step.platform);
      // Pricing once rejects rows whose batch cannot be divided.
      pricer_.price(*read.step.workload, layout, read.step.platform, Constants{});
      check_roofline(read);
    } catch (const Error&) {
      if (!read.out_of_memory) throw;
      read.cannot_run = true;
    }
    return read;
  }

 private:
  void note_stated(const TableRow& row, MeasuredRow& read) const {
    const auto has = [&](const std::string& name) {
      return row.has(name) || defaults_.stated.find(name + "=") != std::string::npos;
    };
    const Layout& layout = read.step.layout;
    read.states_sharding = layout.zero > 0 || layout.data == 1 || has("zero");
    read.states_precision = has("precision") || sheet_peak(read.step.platform.device, "fp8") <= 0;
  }

  /// Rows that state no precision have the usual one of the device.
  static void read_precision(const TableRow& row, const DeviceModel& device, Layout& layout) {
    const bool has_it = sheet_peak(device, layout.precision) > 0;
    if (layout.precision == "bf16" || (!has_it && !row.has("precision")))
      layout.precision = device.usual_precision();
  }

  /// No step is shorter than its products at the peak of the data sheet.
  static void check_roofline(const MeasuredRow& row) {
    if (row.out_of_memory) return;
    const double least = least_us(*row.step.workload, row.step.layout, row.step.platform);
    if (row.step.us < least)
      throw Error(
          fmt::format("time: must be at least {} ms, which the products take at the peak "
                      "of {} in {}, got {} ms",
                      to_text(least / 1e3), row.step.platform.device.name,
                      row.step.layout.precision, to_text(row.step.us / 1e3)));
  }

  static std::string name_of(const std::string& text, const Layout& layout) {
    const auto above_one = [](const char* name, std::int64_t value) {
      return value > 1 ? fmt::format(" {}{}", name, value) : std::string();
    };
    return fmt::format("{}{}{}{}{}{}{} mb{} gb{}", text, above_one("tp", layout.tensor),
                       above_one("pp", layout.pipeline), above_one("dp", layout.data),
                       above_one("cp", layout.context), above_one("ep", layout.expert),
                       above_one("vp", layout.virtual_stages), layout.micro_batch,
                       layout.global_batch);
  }

  const Platform& machine_named(const std::string& name) {
    if (!platforms_.contains(name)) platforms_.emplace(name, find_platform(name));
    return platforms_.at(name);
  }

  /// The platform that a row names, or else --machine, which also says how devices that are its own
  /// are joined.
  Platform whole_platform(const TableRow& row) {
    const RecordedHost* const host = host_of(row);
    const DeviceModel* const device = device_recorded_as(row.text("gpu"));
    const bool is_card = device != nullptr && device->name.find("pcie") != std::string::npos;
    const bool has_host = host != nullptr && !is_card;
    const std::string stated = defaults_.machine;
    if (!stated.empty()) {
      const std::string& own = machine_named(stated).device.name;
      const std::string named = has_host ? machine_named(std::string(host->machine)).device.name
                                : device != nullptr ? device->name
                                                    : own;
      // "A100" may be either of its memories.
      const bool is_family = short_name(row.text("gpu")) == own.substr(0, own.find('-'));
      if (named == own || is_family) return machine_named(stated);
    }
    if (has_host) return machine_named(std::string(host->machine));
    if (device != nullptr && row.number("gpus") == 1) return lone_platform(*device);
    throw Error(fmt::format("gpu: must be one whose host is known, or of --machine, got '{}'",
                            row.text("gpu")));
  }

  Platform platform_of(const TableRow& row) {
    Platform platform = whole_platform(row);
    const auto gpus = row.number("gpus"), nodes = row.number("nodes");
    if (gpus && nodes && *nodes >= 1) {
      const std::int64_t per_node = std::llround(*gpus / *nodes);
      // A host of fewer devices than the machine's. NVLink may join many hosts.
      if (*nodes > 1 && per_node >= 1 && per_node < platform.per_host)
        platform.per_host = per_node, platform.per_node = std::min(platform.per_node, per_node);
    }
    return platform;
  }

  const RowDefaults& defaults_;
  std::string path_;
  std::vector<std::string> heading_;
  std::map<std::string, Platform> platforms_;
  StepPricer pricer_;
};

void note_assumptions(const MeasuredRow& row, Notes& notes) {
  const auto note = [&](const char* text) {
    notes.add(Severity::info, text, fmt::format("row {}: {}", row.number, row.step.name));
  };
  if (row.is_guessed) note("rows are not scored, because their layout was guessed");
  if (!row.states_precision)
    notes.add(Severity::info, "rows do not say their precision; what is usual there is assumed",
              fmt::format("row {}: {}", row.number, row.step.layout.precision));
  if (!row.states_recompute)
    note("rows do not say what they recompute; the least with which they fit is assumed");
}

}  // namespace

std::vector<MeasuredRow> read_measured_rows(const std::string& path, const RowDefaults& defaults,
                                            Notes& notes) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot be read");
  std::string line;
  const auto next_line = [&] {
    if (!std::getline(file, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  next_line();
  if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  std::vector<MeasuredRow> rows;
  within(path, [&] {
    const std::vector<std::string> heading = csv_cells(line);
    const CsvFilter filter(heading, defaults.only);
    RowReader reader(defaults, heading, path);
    for (std::size_t number = 1; next_line(); ++number) {
      try {
        std::vector<std::string> cells = csv_cells(line);
        if (!filter.passes(cells)) continue;
        rows.push_back(reader.read(std::move(cells)));
        rows.back().number = number;
        note_assumptions(rows.back(), notes);
      } catch (const Error& error) {
        notes.add(Severity::warning, kLeftOut, fmt::format("row {}: {}", number, error.what()));
      }
    }
    if (rows.empty()) throw Error("has no row that can be priced");
  });
  return rows;
}

}  // namespace foretrace
