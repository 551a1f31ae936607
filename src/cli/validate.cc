#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/options.h"
#include "cli/progress.h"
#include "foretrace/error.h"
#include "foretrace/scenario.h"

namespace foretrace {
namespace {

struct Row {
  std::string trace;
  Validation validation;
  bool against = false;
};

std::string percent(double fraction, int decimals = 2) {
  return to_fixed(100 * fraction, decimals) + " %";
}

std::string percent(const std::optional<double>& fraction) {
  return fraction ? percent(*fraction) : "-";
}

std::string share(Nanoseconds part, Nanoseconds whole) {
  if (whole == 0ns) return "-";
  return percent(static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string metamorphic(const Row& row) {
  if (row.against) return "-";
  std::string broken;
  const auto check = [&](bool holds, const char* name) {
    if (!holds) broken += (broken.empty() ? "" : ",") + std::string(name);
  };
  check(row.validation.scale_holds, "scale");
  check(row.validation.neutral_holds, "neutral");
  check(row.validation.shrink_holds, "shrink");
  check(row.validation.export_holds, "export");
  return broken.empty() ? "holds" : "BROKEN: " + broken;
}

/// A heading and the cell of a row.
struct Column {
  const char* heading;
  std::string (*cell)(const Row& row);
};

constexpr Column kColumns[] = {
    {"trace", [](const Row& row) { return row.trace; }},
    {"tasks", [](const Row& row) { return std::to_string(row.validation.tasks); }},
    {"step", [](const Row& row) { return to_text(row.validation.measured); }},
    {"replay", [](const Row& row) { return percent(row.validation.replay_error, 3); }},
    {"pinned",
     [](const Row& row) { return std::to_string(row.validation.unexplained.pinned_tasks); }},
    {"unexplained",
     [](const Row& row) {
       return share(row.validation.unexplained.lag, row.validation.unexplained.window);
     }},
    {"peers",
     [](const Row& row) {
       return share(row.validation.unexplained.peers, row.validation.unexplained.window);
     }},
    {"alike", [](const Row& row) { return std::to_string(row.validation.alike_steps); }},
    {"cross-step", [](const Row& row) { return percent(row.validation.cross_step_error); }},
    {"worst", [](const Row& row) { return percent(row.validation.worst_cross_step_error); }},
    {"same as first", [](const Row& row) { return percent(row.validation.same_as_first_error); }},
    {"metamorphic", metamorphic},
};

void write_table(const std::vector<Row>& rows, std::ostream& out) {
  std::vector<std::vector<std::string>> cells(rows.size() + 1);
  std::vector<std::size_t> widths;
  for (const Column& column : kColumns) {
    cells[0].push_back(column.heading);
    std::size_t width = cells[0].back().size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      cells[i + 1].push_back(column.cell(rows[i]));
      width = std::max(width, cells[i + 1].back().size());
    }
    widths.push_back(width);
  }
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      const bool left = i == 0 || i + 1 == line.size();
      out << (i == 0 ? "" : "  ") << (left ? line[i] : space + line[i]);
      if (left && i + 1 < line.size()) out << space;
    }
    out << '\n';
  }
}

struct ValidateCommand {
  std::vector<std::string> traces;
  std::string against;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    command.add_option("TRACE", traces, "Traces, or folders with those of all ranks")->required();
    command
        .add_option("--against", against, "Take the work from this other recording of the same job")
        ->type_name("TRACE");
    options.add_to(command);
  }

  std::vector<Row> rows_of(const std::string& path) const {
    const Progress progress("validating " + path, options.quiet);
    std::vector<Row> rows;
    std::optional<Inference> other;
    if (!against.empty())
      other = infer(import_trace(against, {.cache_folder = options.cache.chosen()}));
    const std::vector<Trace> ranks = import_all(path, {.cache_folder = options.cache.chosen()});
    for (const Trace& trace : ranks) {
      const std::string name =
          ranks.size() == 1 ? path : path + ", rank " + std::to_string(trace.rank);
      within(name, [&] {
        const Inference inference = infer(trace);
        rows.push_back({name, other ? validate_against(inference, *other) : validate(inference),
                        other.has_value()});
      });
    }
    return rows;
  }

  void run(Session& session) const {
    options.format.check();
    std::vector<Row> rows;
    for (const std::string& path : traces) {
      for (Row& row : rows_of(path)) rows.push_back(std::move(row));
    }
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "text") return write_table(rows, out);
      nlohmann::json all = nlohmann::json::array();
      for (const Row& row : rows) {
        nlohmann::json object = to_json(row.validation);
        object["trace"] = row.trace;
        if (row.against) {
          object["against"] = against;
          object.erase("metamorphic");
        }
        all.push_back(std::move(object));
      }
      print_json(all, out);
    });
    for (const Row& row : rows) {
      if (metamorphic(row).starts_with("BROKEN")) session.exit_code = kCheckFailed;
    }
  }
};

}  // namespace

void add_validate(CLI::App& command, Session& session) {
  add_command<ValidateCommand>(command, session);
}

}  // namespace foretrace
