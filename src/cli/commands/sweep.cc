#include "foretrace/ask/sweep.h"

#include <chrono>
#include <fmt/core.h>
#include <iostream>
#include <optional>

#include "ask/many/sweep_file.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "cli/options/stop_signals.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct SweepCommand {
  std::string scenario, form_name, shard_text;
  SweepOptions options;
  bool fresh = false, no_memory = false, quiet = false;
  FormatOption summary{{"text", "json", "markdown"}, "text"};
  OutputOption output, html;
  ReadingOptions reading;
  CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.add_option("SCENARIO", scenario, "A scenario with a \"sweep\", a \"matrix\" or both");
    command
        .add_option("--trace", options.trace, "Replaces the scenario's trace: a trace, or a folder")
        ->type_name("TRACE");
    output.add_to(command, "--output,-o",
                  "Write each answer to this file, one per line, as soon as it is found; the same "
                  "command continues an existing file. If stopped (SIGINT, SIGTERM), the answers "
                  "so far are kept and the exit code is 130 or 143");
    command
        .add_option("--format", form_name,
                    "Format of the answers: jsonl or csv (also selected by the ending of FILE); "
                    "without --output they are printed")
        ->type_name("NAME");
    command.add_option("--summary", summary.chosen, "Format of the summary: text, json, markdown")
        ->type_name("NAME");
    html.add_to(command, "--html",
                "Also write a page that draws the answers and lists them in a table");
    command.add_flag("--fresh", fresh, "Discard the answers that FILE already has");
    command
        .add_option("--shard", shard_text,
                    "Answer only part I of N (1/N to N/N) and write it to its own file; auto: take "
                    "I and N from Slurm or MPI")
        ->type_name("I/N|auto");
    command.add_option("--jobs,-j", options.jobs, "Number of threads; by default one per core")
        ->check(CLI::Range(1U, 1024U));
    command.add_flag("--intervals", options.intervals,
                     "Also compute the interval of each answer, which takes longer");
    command.add_flag("--no-memory", no_memory,
                     "Leave out memory peaks, which take longer on traces that record memory");
    command.add_flag("--quiet", quiet, "Show no progress");
    reading.add_to(command);
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // `sweep merge` has answered.
    if (scenario.empty()) throw Error("sweep: which SCENARIO?");
    within("--summary", [&] { check_summary(); });
    const SweepForm form = sweep_form(form_name, output.path);
    const Shard shard = shard_text.empty() ? Shard{} : read_shard(shard_text, environment_value);
    if (shard.count > 1 && output.path.empty()) throw Error("--shard: needs --output");
    if (fresh && output.path.empty()) throw Error("--fresh: needs --output");
    add_files(session, shard, form);
    options.memory = !no_memory;
    options.reading = reading.options();
    const Sweep sweep = [&] {
      const Progress progress(fmt::format("reading what {} asks about", scenario), quiet);
      return Sweep(scenario, options);
    }();
    const SweepReport report =
        answer({.path = output.path, .form = form, .shard = shard, .fresh = fresh}, sweep, session);
    if (!stop_requested()) finish(report, session);
  }

  /// Declares the output files whose names are not on the command line.
  void add_files(Session& session, const Shard& shard, SweepForm form) const {
    if (output.path.empty()) return;
    const std::string path = path_of_shard(output.path, shard);
    session.files.add_outputs({{"--output", path}});
    if (form == SweepForm::csv) session.files.add_outputs({{"--output", header_file_of(path)}});
  }

  void check_summary() const {
    for (const std::string_view name : summary.names) {
      if (name == summary.chosen) return;
    }
    throw Error(fmt::format("must be one of text, json, markdown, got '{}'{}", summary.chosen,
                            did_you_mean(summary.chosen, summary.names)));
  }

  bool prints_answers() const { return output.path.empty() && !form_name.empty(); }

  SweepReport answer(const SweepOutput& into, const Sweep& sweep, Session& session) const {
    using Clock = std::chrono::steady_clock;
    std::optional<CountedProgress> progress;
    std::uint64_t already_answered = 0;
    Clock::time_point begin;
    SweepEvents events;
    events.begin = [&](std::uint64_t had, std::uint64_t left) {
      already_answered = had;
      begin = Clock::now();
      progress.emplace("points", left, quiet);
      if (!prints_answers()) return;
      const SweepHeader& header = sweep.header();
      session.out << (into.form == SweepForm::csv ? sweep_csv_heading(header)
                                                  : sweep_header_line(header));
    };
    events.take = [&](const SweepPoint& point) {
      if (prints_answers()) session.out << sweep_point_line(sweep.header(), point, into.form);
      progress->add();
    };
    events.flush = [&] {
      if (prints_answers()) session.out.flush();
    };
    const StopSignals signals;
    SweepReport report = answer_into(into, sweep, events, stop_requested());
    progress.reset();
    const std::chrono::duration<double> passed = Clock::now() - begin;
    report_progress(sweep, report, already_answered, passed.count());
    // As a shell reports a program that a signal ended.
    if (stop_requested()) session.exit_code = exit_code_of_stop();
    return report;
  }

  void report_progress(const Sweep& sweep, const SweepReport& report,
                       std::uint64_t already_answered, double seconds) const {
    const std::uint64_t found = report.points.size() - already_answered;
    if (stop_requested()) {
      std::cerr << "foretrace: stopped after " << report.points.size() << " points"
                << (output.path.empty() ? "" : "; run the same command again to continue") << '\n';
      return;
    }
    if (quiet) return;
    std::cerr << "foretrace: " << found << " points in " << to_fixed(seconds, 1) << " s";
    if (seconds > 0 && found > 0)
      std::cerr << ", " << to_fixed(static_cast<double>(found) / seconds, 0) << " a second";
    if (sweep.answered_together() > 0)
      std::cerr << ", " << sweep.answered_together() << " of them on shared structures";
    if (already_answered > 0) std::cerr << "; " << already_answered << " were in the file already";
    std::cerr << '\n';
  }

  void finish(const SweepReport& report, Session& session) const {
    const SweepSummary found = summarize(report);
    if (!html.path.empty())
      html.write(session, [&](std::ostream& out) { write_sweep_page(report, out); });
    // Other shards may have answers even if this one has none, and launchers end all processes when
    // one fails.
    const bool is_whole = report.header.shards == 1;
    if (found.answered == 0 && is_whole)
      throw Error("sweep: no question has an answer; the first error: " +
                  report.points.front().refused);
    if (!prints_answers()) {
      if (summary.chosen == "json") print_answer(report, session.out);
      if (summary.chosen == "markdown") write_sweep_markdown(report, session.out);
      if (summary.chosen == "text") write_sweep_text(report, session.out);
    }
    if (is_whole && !report.header.asserts.empty() && !found.best) session.exit_code = kCheckFailed;
  }
};

/// "foretrace sweep merge FILES": merges the answers of all shards into the file that one process
/// would have written.
struct SweepMergeCommand {
  std::vector<std::string> files;
  std::string output;

  void add_to(CLI::App& command) {
    command.add_option("FILES", files, "Answers of all shards, in any order")->required();
    names_output(
        command.add_option("--output,-o", output, "Output file for the answers of the whole sweep"))
        ->required();
  }

  void run(Session& session) const {
    const SweepForm form = sweep_form("", output);
    for (const std::string& file : files) {
      if (sweep_form("", file) != form)
        throw Error(fmt::format("sweep merge: '{}' and '{}' must both end in .csv, or both not",
                                file, output));
    }
    if (form == SweepForm::csv) session.files.add_outputs({{"--output", header_file_of(output)}});
    merge_shards(files, output, form);
  }
};

}  // namespace

void add_sweep(CLI::App& command, Session& session) {
  add_command<SweepCommand>(command, session);
  add_command<SweepMergeCommand>(
      *command.add_subcommand("merge", "Merge the answers of all shards into one file"), session);
}

}  // namespace foretrace
