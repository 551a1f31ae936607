#include <nlohmann/json.hpp>

#include "base/shown.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "cli/options/shipped_pairs.h"
#include "foretrace/ask/examine.h"
#include "foretrace/ask/pairs.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Row = ValidatedRank;

std::string percent(double fraction, int decimals = 2) { return to_share(fraction, decimals); }

std::string percent(const std::optional<double>& fraction) {
  return fraction ? percent(*fraction) : "-";
}

std::string share(Nanoseconds part, Nanoseconds whole) {
  if (whole == 0ns) return "-";
  return percent(static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string metamorphic(const Row& row) {
  if (!row.against.empty()) return "-";
  std::string broken;
  for (const std::string_view name : row.broken())
    broken += (broken.empty() ? "BROKEN: " : ",") + std::string(name);
  return broken.empty() ? "holds" : broken;
}

/// How many steps, their time taken as unknown, are inside the interval.
std::string left_out_text(const Row& row) {
  if (row.left_out.steps == 0) return "-";
  return std::to_string(row.left_out.inside) + " of " + std::to_string(row.left_out.steps);
}

/// A heading and the cell of a row.
struct Column {
  const char* heading;
  std::string (*cell)(const Row& row);
};

constexpr Column kColumns[] = {
    {"trace", [](const Row& row) { return shown(row.trace); }},
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
    {"left out", left_out_text},
    {"same as first", [](const Row& row) { return percent(row.validation.same_as_first_error); }},
    {"metamorphic", metamorphic},
};

using Lines = std::vector<std::vector<std::string>>;

Lines cells_of(const std::vector<Row>& rows) {
  Lines cells(rows.size() + 1);
  for (const Column& column : kColumns) {
    cells[0].push_back(column.heading);
    for (std::size_t i = 0; i < rows.size(); ++i) cells[i + 1].push_back(column.cell(rows[i]));
  }
  return cells;
}

void write_markdown_lines(const Lines& lines, std::ostream& out) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out << '|';
    for (const std::string& cell : lines[i]) out << ' ' << markdown_cell(cell) << " |";
    out << '\n';
    if (i > 0) continue;
    out << "|---|";
    for (std::size_t column = 1; column < lines[i].size(); ++column) out << "--:|";
    out << '\n';
  }
}

void write_lines(const Lines& lines, std::ostream& out) {
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      const bool left = i == 0 || i + 1 == line.size();
      out << (i == 0 ? "" : "  ") << (left ? line[i] : space + line[i]);
      if (left && i + 1 < line.size()) out << space;
    }
    out << '\n';
  }
}

LeftOutSteps left_out_of_all(const std::vector<Row>& rows) {
  LeftOutSteps all;
  for (const Row& row : rows) {
    all.steps += row.left_out.steps;
    all.inside += row.left_out.inside;
  }
  return all;
}

void write_rows(const std::vector<Row>& rows, const std::string& format, std::ostream& out) {
  (format == "markdown" ? write_markdown_lines : write_lines)(cells_of(rows), out);
  const LeftOutSteps all = left_out_of_all(rows);
  if (all.steps == 0) return;
  out << "\nOf " << all.steps << " steps that were left out, the interval from the others contains "
      << all.inside << " ("
      << percent(static_cast<double>(all.inside) / static_cast<double>(all.steps), 1)
      << "; 80 % are expected)\n";
}

struct ValidateCommand {
  std::vector<std::string> traces;
  std::string against, pairs, folder, ledger, written_ledger;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    command.add_option(
        "TRACE", traces,
        "Traces, or folders with the traces of all ranks; without any: check the shipped pairs");
    command
        .add_option("--against", against, "Take the work from this other recording of the same job")
        ->type_name("TRACE");
    command
        .add_option("--pairs", pairs,
                    "Compare predictions with the outcomes of these before/after pairs: a list "
                    "(foretrace.pairs/1) or traces/ground_truth.json")
        ->type_name("FILE");
    command.add_option("--traces", folder, "Folder with the recordings of the pairs")
        ->type_name("FOLDER");
    command
        .add_option("--ledger", ledger,
                    "Your own ledger of outcomes, which widens or narrows the intervals")
        ->type_name("FILE");
    names_output(command.add_option(
        "--write-ledger", written_ledger,
        "Also write the outcomes of the pairs as a ledger, for predict --ledger"));
    options.format.names.push_back("markdown");
    options.add_to(command);
  }

  /// The given file, or the shipped ones: those of public recordings only with a folder.
  std::vector<PairList> pair_lists() const {
    if (!pairs.empty()) return {read_pairs(pairs, folder)};
    std::vector<PairList> lists;
    for (const ShippedPairs& shipped : shipped_pairs()) {
      if (!shipped.recorded_elsewhere) lists.push_back(read_pairs(shipped.path));
      if (shipped.recorded_elsewhere && !folder.empty())
        lists.push_back(read_pairs(shipped.path, folder));
    }
    return lists;
  }

  void run_pairs(Session& session) const {
    if (!against.empty()) throw Error("--against: needs a TRACE to compare with");
    const PairsReport report = [&] {
      const Progress progress("comparing pairs", options.quiet);
      return compare_pairs(pair_lists(),
                           {.reading = options.reading.options(), .ledger_path = ledger});
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print_json(to_json(report), out);
      if (options.format.chosen == "markdown") return write_pairs_markdown(report, out);
      write_pairs_text(report, out);
    });
    if (!written_ledger.empty()) write_ledger(written_ledger, outcomes_of(report));
  }

  void run(Session& session) const {
    options.format.check();
    if (traces.empty()) return run_pairs(session);
    for (const auto& [name, value] :
         {std::pair("--pairs", pairs), std::pair("--traces", folder), std::pair("--ledger", ledger),
          std::pair("--write-ledger", written_ledger)}) {
      if (!value.empty())
        throw Error(std::string(name) + ": is a list of pairs; leave out the TRACE");
    }
    std::vector<Row> rows;
    for (const std::string& path : traces) {
      const Progress progress("validating " + path, options.quiet);
      for (Row& row : validate_trace(path, against, options.reading.options()))
        rows.push_back(std::move(row));
    }
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen != "json") return write_rows(rows, options.format.chosen, out);
      nlohmann::json all = nlohmann::json::array();
      for (const Row& row : rows) all.push_back(to_json(row));
      print_json(all, out);
    });
    for (const Row& row : rows) {
      if (!row.broken().empty()) session.exit_code = kCheckFailed;
    }
  }
};

}  // namespace

void add_validate(CLI::App& command, Session& session) {
  add_command<ValidateCommand>(command, session);
}

}  // namespace foretrace
