#include "foretrace/ask/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/files/new_file.h"
#include "base/shown.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// GitHub refuses a step summary of more bytes than this.
constexpr std::size_t kLongestSummary = 1024 * 1024;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Cuts the text after a whole line, so that it and a note about the cut fit into `room` bytes.
std::string truncated(std::string text, std::size_t room) {
  if (text.size() <= room) return text;
  constexpr std::string_view kCut = "\n(cut: the summary is full)\n";
  if (room < kCut.size()) return {};
  const std::size_t end = text.rfind('\n', room - kCut.size());
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.append(kCut);
}

/// Appends to the file instead of replacing it, because other steps may be writing to it at the
/// same time. If the whole text cannot be written, the file keeps its old size.
void append_summary(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const auto fail = [&] {
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  };
  if (file < 0) fail();
  struct stat before = {};
  const bool has_size = ::fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  const auto old_size = has_size ? static_cast<std::size_t>(before.st_size) : 0;
  const std::string added =
      truncated(text, old_size >= kLongestSummary ? 0 : kLongestSummary - old_size);
  const ::ssize_t written = ::write(file, added.data(), added.size());
  const int error = written < 0 ? errno : ENOSPC;
  const bool is_written = written >= 0 && static_cast<std::size_t>(written) == added.size();
  if (!is_written && has_size) static_cast<void>(::ftruncate(file, before.st_size));
  const bool closed = ::close(file) == 0;
  if (is_written && closed) return;
  if (!is_written) errno = error;
  fail();
}

struct CheckCommand {
  std::string trace, baseline, scenario_path, undecided, source_root, summary;
  std::vector<std::string> more_traces, steps, most, warn;
  /// Paths of the additional output files, by the name of their format.
  std::vector<std::pair<std::string_view, std::string>> files;
  bool structure_only = false, bless_it = false, adds = false, github = false, quiet = false;
  FormatOption format{{}, "text"};
  OutputOption output;
  ReadingOptions reading;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    command.add_option("MORE", more_traces,
                       "With --bless: more recordings of the unchanged job; differences between "
                       "them count as noise, not as regressions");
    command
        .add_option("--baseline", baseline,
                    "The committed baseline to compare the trace with; --bless writes it")
        ->type_name("FILE")
        ->required();
    command
        .add_option(
            "--max", most,
            "Fail if this metric gets worse by more than: step_time:5%, peak_reserved:200MB, "
            "syncs:+0, overlap:-5%, host_time:5%+2ms, kernels:off; may be repeated")
        ->type_name("METRIC:LIMIT")
        ->allow_extra_args(false);
    command.add_option("--warn", warn, "Like --max, but only warn; may be repeated")
        ->type_name("METRIC:LIMIT")
        ->allow_extra_args(false);
    command
        .add_option("--scenario", scenario_path,
                    "Check the prediction for this scenario instead of the recording")
        ->type_name("FILE");
    command
        .add_option("--with", steps,
                    "Check the prediction for this transform with its settings; may be repeated")
        ->type_name("STEP")
        ->allow_extra_args(false);
    command.add_flag("--structure-only", structure_only,
                     "Compare counts, bytes, memory and possible overlap but no times, for example "
                     "on a busy device");
    command.add_flag("--bless", bless_it,
                     "Write the baseline from this trace, or from several of the same job; limits "
                     "in the file are kept");
    command.add_flag(
        "--add", adds,
        "With --bless: keep the recordings that the baseline already represents, and add these");
    command
        .add_option("--undecided", undecided,
                    "How to treat metrics whose interval straddles the limit: pass or fail")
        ->type_name("pass|fail");
    add_outputs(command);
    command.footer(metrics_help());
    command.add_flag("--quiet", quiet, "Show no progress");
    reading.add_part_to(command);
    reading.add_to(command);
  }

  static std::string metrics_help() {
    std::string text = "Metrics:";
    for (const FigureEntry& entry : figure_entries())
      text += fmt::format("\n  {:<23} {}", entry.name, entry.says);
    return text;
  }

  void add_outputs(CLI::App& command) {
    for (const CheckForm& form : check_forms()) format.names.push_back(form.name);
    format.add_to(command);
    output.add_to(command);
    for (const CheckForm& form : check_forms()) {
      if (form.name != "text" && form.name != "github") files.emplace_back(form.name, "");
    }
    for (auto& [name, path] : files)
      names_output(
          command.add_option("--" + std::string(name), path,
                             "Also write the answer to a file: " + std::string(summary_of(name))));
    command.add_flag(
        "--github", github,
        "Also annotate source lines, and append the answer to $GITHUB_STEP_SUMMARY if that is set");
    names_output(command.add_option("--summary", summary,
                                    "Also append the answer to this file, as Markdown"));
    command
        .add_option("--source-root", source_root,
                    "Folder that paths in annotations are relative to; by default the repository")
        ->type_name("FOLDER");
  }

  static std::string_view summary_of(std::string_view name) {
    for (const CheckForm& form : check_forms()) {
      if (form.name == name) return form.summary;
    }
    return {};
  }

  Scenario scenario() const {
    Scenario asked;
    if (!scenario_path.empty()) asked = read_scenario(scenario_path);
    for (const std::string& step : steps) {
      within("--with " + step, [&] { add_steps(step, asked); });
    }
    asked.trace = trace;
    return asked;
  }

  /// A later limit for the same metric replaces the earlier one.
  static void add_limit(std::map<std::string, Limit>& limits, std::pair<std::string, Limit> limit) {
    limits.insert_or_assign(std::move(limit.first), std::move(limit.second));
  }

  CheckOptions options() const {
    CheckOptions chosen;
    for (const std::string& text : most)
      add_limit(chosen.fail, within("--max", [&] { return parse_named_limit(text); }));
    for (const std::string& text : warn)
      add_limit(chosen.warn, within("--warn", [&] { return parse_named_limit(text); }));
    chosen.structure_only = structure_only;
    chosen.adds_runs = adds;
    if (!undecided.empty() && undecided != "pass" && undecided != "fail")
      throw Error(fmt::format("--undecided: must be pass or fail, got '{}'", undecided));
    if (!undecided.empty())
      chosen.undecided = undecided == "pass" ? CheckOutcome::passed : CheckOutcome::failed;
    std::error_code ignored;
    if (!source_root.empty() && !fs::is_directory(source_root, ignored))
      throw Error(fmt::format("--source-root: must be a folder, got '{}'", source_root));
    chosen.source_root = source_root.empty() ? source_root_here() : source_root;
    chosen.reading = reading.options();
    return chosen;
  }

  void run(Session& session) const {
    format.check();
    if (adds && !bless_it) throw Error("--add: needs --bless");
    if (!more_traces.empty() && !bless_it)
      throw Error(
          fmt::format("several recordings are only allowed with --bless, got '{}' after '{}'",
                      more_traces.front(), trace));
    if (bless_it) session.files.add_outputs({{"--baseline", baseline}});
    if (const std::string path = step_summary(); !path.empty() && path != summary)
      session.files.add_outputs({{"GITHUB_STEP_SUMMARY", path}});
    const Scenario asked = scenario();
    const CheckOptions chosen = options();
    warn_if_large(trace, chosen.reading, quiet);
    std::error_code ignored;
    const bool exists = fs::exists(baseline, ignored);
    if (bless_it) return make_baseline(session, asked, chosen, exists);
    if (!exists)
      throw Error(
          fmt::format("there is no baseline '{}' yet; create it with --bless: foretrace check {} "
                      "--baseline {} --bless",
                      baseline, trace, baseline));
    const CheckBaseline stored = read_baseline(baseline);
    const CheckReport report = [&] {
      const Progress progress("checking " + trace, quiet);
      CheckReport found = check(trace, asked, stored, chosen);
      found.baseline = baseline;
      return found;
    }();
    answer(session, report);
    session.exit_code = exit_code(report.standing());
  }

  /// Writes the baseline. An existing file keeps its limits, even if its format is too old for a
  /// comparison; if it cannot be read at all, a warning says so.
  void make_baseline(Session& session, const Scenario& asked, const CheckOptions& chosen,
                     bool exists) const {
    std::optional<CheckBaseline> old;
    if (exists) {
      try {
        old = read_baseline(baseline);
      } catch (const Error& error) {
        std::cerr
            << "foretrace: warning: the limits of the old baseline could not be read and are lost: "
            << shown(error.what()) << '\n';
      }
    }
    const CheckBaseline blessed = [&] {
      const Progress progress("summarizing " + trace, quiet);
      std::vector<std::string> traces{trace};
      traces.insert(traces.end(), more_traces.begin(), more_traces.end());
      return bless(traces, asked, chosen, old ? &*old : nullptr);
    }();
    write_new_file(baseline, shown_answer(write_baseline(blessed)));
    output.write(session, [&](std::ostream& out) {
      out << "Wrote " << shown(baseline) << ": " << blessed.summary.figures.size() << " metrics, "
          << blessed.summary.groups.size() << " groups of work";
      if (const std::size_t runs = blessed.summary.runs.size(); runs > 1)
        out << ", of " << runs << " recordings";
      out << ". Commit it.\n";
      for (const auto& [name, values] : blessed.summary.figures) {
        const FigureEntry& entry = figure_entry(name);
        const auto limit = blessed.fail.find(name);
        out << "  " << name << ' ' << figure_text(entry.unit, figure_value(entry, values))
            << (limit == blessed.fail.end() ? ", no limit" : ", limit " + limit->second.text);
        if (old && old->summary.figures.contains(name)) {
          const std::int64_t was = figure_value(entry, old->summary.figures.at(name));
          if (was != figure_value(entry, values)) out << ", was " << figure_text(entry.unit, was);
        }
        out << '\n';
      }
    });
  }

  std::string step_summary() const { return github ? environment("GITHUB_STEP_SUMMARY") : ""; }

  void answer(Session& session, const CheckReport& report) const {
    for (const auto& [name, path] : files) {
      if (!path.empty()) write_new_file(path, formatted(name, report));
    }
    const std::string markdown = formatted("markdown", report) + "\n";
    if (!summary.empty()) append_summary(summary, markdown);
    output.write(session, [&](std::ostream& out) { write_form(format.chosen, report, out); });
    if (const std::string path = step_summary(); !path.empty()) append_summary(path, markdown);
    if (!github) return;
    if (format.chosen != "github" || !output.path.empty()) write_check_github(report, session.out);
  }

  static void write_form(std::string_view name, const CheckReport& report, std::ostream& out) {
    for (const CheckForm& form : check_forms()) {
      if (form.name == name) form.write(report, out);
    }
  }

  static std::string formatted(std::string_view name, const CheckReport& report) {
    std::ostringstream out;
    {
      const EscapedOutput wall(out);
      write_form(name, report, out);
    }
    return out.str();
  }

  static int exit_code(CheckOutcome standing) {
    if (standing == CheckOutcome::failed) return kCheckFailed;
    return standing == CheckOutcome::undecided || standing == CheckOutcome::left_out ? kUndecided
                                                                                     : kAnswered;
  }
};

}  // namespace

void add_check(CLI::App& command, Session& session) { add_command<CheckCommand>(command, session); }

}  // namespace foretrace
