#include <chrono>
#include <fmt/core.h>
#include <optional>

#include "foretrace/answer/sweep.h"
#include "foretrace/error.h"
#include "foretrace/question/sweep.h"
#include "question/common/forms.h"
#include "question/common/reading.h"
#include "question/sweep/sweep_file.h"

namespace foretrace {
namespace {

/// The answers to all questions of a scenario.
struct SweptScenario {
  SweepReport report;
  bool is_stopped = false;   ///< Nothing is written.
  bool was_printed = false;  ///< One by one; there is no summary then.
};

/// The answers one by one, for programs.
void write_swept_lines(const SweptScenario& swept, std::ostream& out) {
  for (const SweepPoint& point : swept.report.points)
    out << sweep_point_line(swept.report.header, point, SweepForm::jsonl);
}

class SweepScenario final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "SCENARIO", .is_positional = true, .is_required = true})
        .path("scenario", scenario_, "A scenario with a \"sweep\", a \"matrix\" or both");
    fields.as({.value = "TRACE"})
        .text("trace", options_.trace, "Replaces the scenario's trace: a trace, or a folder");
    fields.as({.value = "OUT", .letter = "o"})
        .path("output", output_,
              "Write each answer to this file, one per line, as soon as it is found; the same "
              "command continues an existing file. If stopped (SIGINT, SIGTERM), the answers so "
              "far are kept and the exit code is 130 or 143");
    fields.as({.value = "NAME"})
        .text("format", form_,
              "Format of the answers: jsonl or csv (also selected by the ending of FILE); without "
              "--output they are printed");
    fields.flag("fresh", fresh_, "Discard the answers that FILE already has");
    fields.as({.value = "I/N|auto"})
        .text("shard", shard_,
              "Answer only part I of N (1/N to N/N) and write it to its own file; auto: take I and "
              "N from Slurm or MPI");
    fields.as({.letter = "j"})
        .integer("jobs", jobs_, "Number of threads; 0: one per core", 0, 1024);
    fields.flag("intervals", options_.intervals,
                "Also compute the interval of each answer, which takes longer");
    fields.flag("no_memory", no_memory_,
                "Leave out memory peaks, which take longer on traces that record memory");
    reading_.describe(fields);
  }

  std::string_view form_setting() const override { return "summary"; }

  std::vector<Form> forms() const override {
    std::vector<Form> all = forms_with_page<SweepReport>(
        "Also write a page that draws the answers and lists them in a table", write_sweep_page);
    for (Form& one : all) {
      one.write = [write = one.write, is_file = !one.is_printed](const Answer& answer,
                                                                 std::ostream& out) {
        const auto& swept = dynamic_cast<const AnswerOf<SweptScenario>&>(answer).value();
        if (!swept.is_stopped && (is_file || !swept.was_printed))
          write(AnswerOf<SweepReport>(swept.report), out);
      };
    }
    all.push_back(form("jsonl", write_swept_lines));
    all.back().is_printed = false;
    return all;
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    const SweepForm form = sweep_form(form_, output_);
    const Shard shard = shard_.empty() ? Shard{} : read_shard(shard_, environment_value);
    if (shard.count > 1 && output_.empty()) throw Error("--shard: needs --output");
    if (fresh_ && output_.empty()) throw Error("--fresh: needs --output");
    announce_files(shard, form, session);
    options_.jobs = static_cast<unsigned>(jobs_);
    options_.memory = !no_memory_;
    options_.reading = reading_.options(session);
    const Sweep sweep = [&] {
      const auto activity = session.begin("reading what " + scenario_ + " asks about");
      if (scenario_.starts_with('{')) return Sweep(parse_json<nlohmann::json>(scenario_), options_);
      return Sweep(scenario_, options_);
    }();
    const SweepOutput into{.path = output_, .form = form, .shard = shard, .fresh = fresh_};
    SweptScenario swept{answer(into, sweep, session)};
    swept.is_stopped = session.stop();
    if (swept.is_stopped) return answer_of(std::move(swept));
    const SweepSummary found = summarize(swept.report);
    // Other shards may have answers even if this one has none, and launchers end all processes when
    // one fails.
    const bool is_whole = swept.report.header.shards == 1;
    if (found.answered == 0 && is_whole)
      throw Error("sweep: no question has an answer; the first error: " +
                  swept.report.points.front().refused);
    swept.was_printed = prints_answers();
    const bool fails = is_whole && !swept.report.header.asserts.empty() && !found.best;
    return answer_of(std::move(swept), fails ? kCheckFailed : kAnswered);
  }

 private:
  /// Announces the output files whose names no setting says.
  void announce_files(const Shard& shard, SweepForm form, Session& session) const {
    if (output_.empty()) return;
    const std::string path = path_of_shard(output_, shard);
    session.will_write("output", {path});
    if (form == SweepForm::csv) session.will_write("output", {header_file_of(path)});
  }

  bool prints_answers() const { return output_.empty() && !form_.empty(); }

  SweepReport answer(const SweepOutput& into, const Sweep& sweep, Session& session) const {
    using Clock = std::chrono::steady_clock;
    std::unique_ptr<Activity> activity;
    std::uint64_t already_answered = 0;
    Clock::time_point begin;
    std::ostream* const rows = prints_answers() ? session.rows() : nullptr;
    SweepEvents events;
    events.begin = [&](std::uint64_t had, std::uint64_t left) {
      already_answered = had;
      begin = Clock::now();
      activity = session.begin_counting("points", left);
      if (rows)
        *rows << (into.form == SweepForm::csv ? sweep_csv_heading(sweep.header())
                                              : sweep_header_line(sweep.header()));
    };
    events.take = [&](const SweepPoint& point) {
      if (rows) *rows << sweep_point_line(sweep.header(), point, into.form);
      activity->add();
    };
    events.flush = [&] {
      if (rows) rows->flush();
    };
    SweepReport report = answer_into(into, sweep, events, session.stop());
    activity.reset();
    const std::chrono::duration<double> passed = Clock::now() - begin;
    tell_progress(sweep, report, already_answered, passed.count(), session);
    return report;
  }

  void tell_progress(const Sweep& sweep, const SweepReport& report, std::uint64_t already_answered,
                     double seconds, Session& session) const {
    const std::uint64_t found = report.points.size() - already_answered;
    if (session.stop()) {
      return session.remark(
          fmt::format("stopped after {} points{}", report.points.size(),
                      output_.empty() ? "" : "; run the same command again to continue"));
    }
    std::string text = fmt::format("{} points in {} s", found, to_fixed(seconds, 1));
    if (seconds > 0 && found > 0)
      text += fmt::format(", {} a second", to_fixed(static_cast<double>(found) / seconds, 0));
    if (sweep.answered_together() > 0)
      text += fmt::format(", {} of them on shared structures", sweep.answered_together());
    if (already_answered > 0)
      text += fmt::format("; {} were in the file already", already_answered);
    session.mention(text);
  }

  std::string scenario_, output_, form_, shard_;
  std::int64_t jobs_ = 0;
  bool fresh_ = false, no_memory_ = false;
  SweepOptions options_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_sweep() { return std::make_unique<SweepScenario>(); }

}  // namespace foretrace
