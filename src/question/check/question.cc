#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/files/new_file.h"
#include "base/shown.h"
#include "foretrace/error.h"
#include "foretrace/question/check.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

/// GitHub refuses a step summary of more bytes than this.
constexpr std::size_t kLongestSummary = 1024 * 1024;

/// Cuts the text after a whole line, so that it and a note about the cut fit into `room` bytes.
std::string truncated(std::string text, std::size_t room) {
  if (text.size() <= room) return text;
  constexpr std::string_view kCut = "\n(cut: the summary is full)\n";
  if (room < kCut.size()) return {};
  const std::size_t end = text.rfind('\n', room - kCut.size());
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.append(kCut);
}

/// Appends to the file instead of replacing it, because other steps of a build may be writing to it
/// at the same time. What does not fit into GitHub's limit is cut after a whole line. If the whole
/// text cannot be written, the file keeps its old size. Throws Error.
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

namespace fs = std::filesystem;

/// The report of a comparison, or what a new baseline holds.
struct CheckedRun {
  std::optional<CheckReport> report;
  std::string blessed;
  std::string summary;     ///< Path of a file that the answer is appended to, as Markdown.
  bool annotates = false;  ///< As workflow commands for GitHub.
};

Document document_of(const CheckedRun& job) {
  if (job.report) return document_of(*job.report);
  const std::size_t end = job.blessed.find('\n');
  Document document("Baseline");
  document.say(job.blessed.substr(0, end));
  if (end != std::string::npos) document.draw({.letters = job.blessed.substr(end + 1)});
  return document;
}
/// A baseline is its file; what is said about it is for people.
nlohmann::json to_json(const CheckedRun& job) {
  return job.report ? to_json(*job.report) : nlohmann::json{{"blessed", job.blessed}};
}

/// The file that GitHub shows as the summary of a step; empty if there is none.
std::string step_summary(bool annotates) {
  const char* path = annotates ? std::getenv("GITHUB_STEP_SUMMARY") : nullptr;
  return path == nullptr ? "" : path;
}

class CheckAnswer final : public AnswerOf<CheckedRun> {
 public:
  using AnswerOf::AnswerOf;

  void finish(std::string_view form, std::ostream& out) const override {
    const CheckedRun& job = value();
    if (!job.report) return;
    std::ostringstream markdown;
    {
      const EscapedOutput wall(markdown);
      write_markdown(document_of(*job.report), markdown);
    }
    const std::string text = markdown.str() + "\n";
    if (!job.summary.empty()) append_summary(job.summary, text);
    if (const std::string path = step_summary(job.annotates); !path.empty())
      append_summary(path, text);
    if (job.annotates && form != "github") write_check_github(*job.report, out);
  }
};

ExitCode code_of(CheckOutcome standing) {
  if (standing == CheckOutcome::failed) return kCheckFailed;
  return standing == CheckOutcome::undecided || standing == CheckOutcome::left_out ? kUndecided
                                                                                   : kAnswered;
}

/// A later limit for the same metric replaces the earlier one.
void add_limits(std::string_view setting, const std::vector<std::string>& texts,
                std::map<std::string, Limit>& limits) {
  for (const std::string& text : texts) {
    auto [name, limit] = within(setting, [&] { return parse_named_limit(text); });
    limits.insert_or_assign(std::move(name), std::move(limit));
  }
}

std::string blessed_text(const std::string& path, std::int64_t size, const CheckBaseline& blessed,
                         const std::optional<CheckBaseline>& old) {
  std::string text =
      fmt::format("Wrote {}: {}, {} metrics, {} groups of work", shown(path), to_text(Bytes{size}),
                  blessed.summary.figures.size(), blessed.summary.groups.size());
  if (const std::size_t runs = blessed.summary.runs.size(); runs > 1)
    text += fmt::format(", of {} recordings", runs);
  text += ". Commit it.\n";
  for (const auto& [name, values] : blessed.summary.figures) {
    const FigureEntry& entry = figure_entry(name);
    const auto limit = blessed.fail.find(name);
    text +=
        fmt::format("  {} {}{}", name, figure_text(entry.unit, figure_value(entry, values)),
                    limit == blessed.fail.end() ? ", no limit" : ", limit " + limit->second.text);
    if (old && old->summary.figures.contains(name)) {
      const std::int64_t was = figure_value(entry, old->summary.figures.at(name));
      if (was != figure_value(entry, values)) text += ", was " + figure_text(entry.unit, was);
    }
    text += '\n';
  }
  return text;
}

class CheckJob final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    fields.as({.value = "MORE", .is_positional = true})
        .texts("more", more_traces_,
               "With --bless: more recordings of the unchanged job; differences between them count "
               "as noise, not as regressions");
    fields.as({.is_required = true})
        .path("baseline", baseline_,
              "The committed baseline to compare the trace with; --bless writes it");
    fields.as({.value = "METRIC:LIMIT"})
        .texts("max", most_,
               "Fail if this metric gets worse by more than: step_time:5%, peak_reserved:200MB, "
               "syncs:+0, overlap:-5%, host_time:5%+2ms, kernels:off; may be repeated");
    fields.as({.value = "METRIC:LIMIT"})
        .texts("warn", warn_, "Like --max, but only warn; may be repeated");
    changes_.describe(fields,
                      "Check the prediction for this transform with its settings; may be repeated",
                      "Check the prediction for this scenario instead of the recording");
    changes_.describe_machine(fields);
    allocator_.describe(fields);
    fields.flag("structure_only", options_.structure_only,
                "Compare counts, bytes, memory and possible overlap but no times, for example on a "
                "busy device");
    fields.flag("bless", blesses_,
                "Write the baseline from this trace, or from several of the same job; limits in "
                "the file are kept");
    fields.flag("add", options_.adds_runs,
                "With --bless: keep the recordings that the baseline already represents, and add "
                "these");
    fields.as({.value = "pass|fail"})
        .text("undecided", undecided_,
              "How to treat metrics whose interval straddles the limit: pass or fail");
    describe_outputs(fields);
    reading_.describe_part(fields);
    reading_.describe(fields);
  }

  std::string remarks() const override {
    std::string text = "Metrics:";
    for (const FigureEntry& entry : figure_entries())
      text += fmt::format("\n  {:<23} {}", entry.name, entry.says);
    return text;
  }

  std::vector<Form> forms() const override {
    std::vector<Form> all = forms_of<CheckedRun>();
    for (Form& one : all) {
      if (one.name == "json" || one.name == "markdown")
        one.file_help = "Also write the answer to a file: " + std::string(one.name);
    }
    for (const CheckForm& form : check_forms()) {
      Form one{form.name, [&form](const Answer& answer, std::ostream& out) {
                 const CheckedRun& job = dynamic_cast<const CheckAnswer&>(answer).value();
                 if (job.report) return form.write(*job.report, out);
                 out << job.blessed;
               }};
      if (form.name != "github")
        one.file_help = "Also write the answer to a file: " + std::string(form.summary);
      all.push_back(std::move(one));
    }
    return all;
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    check_settings();
    if (blesses_) session.will_write("baseline", {baseline_});
    if (const std::string path = step_summary(annotates_); !path.empty() && path != summary_)
      session.will_write("GITHUB_STEP_SUMMARY", {path});
    Scenario asked = changes_.scenario();
    asked.trace = trace_;
    allocator_.set(asked.allocator);
    read_options(session);
    warn_if_large(trace_, options_.reading, session);
    std::error_code ignored;
    const bool exists = fs::exists(baseline_, ignored);
    if (blesses_) return make_baseline(asked, exists, session);
    if (!exists)
      throw Error(
          fmt::format("there is no baseline '{}' yet; create it with --bless: foretrace check {} "
                      "--baseline {} --bless",
                      baseline_, trace_, baseline_));
    const CheckBaseline stored = read_baseline(baseline_);
    const auto activity = session.begin("checking " + trace_);
    CheckReport report = foretrace::check(trace_, asked, stored, options_);
    report.baseline = baseline_;
    const ExitCode code = code_of(report.standing());
    return std::make_unique<CheckAnswer>(CheckedRun{std::move(report), {}, summary_, annotates_},
                                         code);
  }

 private:
  void describe_outputs(Fields& fields) {
    fields.flag("github", annotates_,
                "Also annotate source lines, and append the answer to $GITHUB_STEP_SUMMARY if that "
                "is set");
    fields.as({.value = "OUT"})
        .path("summary", summary_, "Also append the answer to this file, as Markdown");
    fields.as({.value = "FOLDER"})
        .path("source_root", source_root_,
              "Folder that paths in annotations are relative to; by default the repository");
  }

  void check_settings() const {
    if (options_.adds_runs && !blesses_) throw Error("--add: needs --bless");
    if (!more_traces_.empty() && !blesses_)
      throw Error(
          fmt::format("several recordings are only allowed with --bless, got '{}' after '{}'",
                      more_traces_.front(), trace_));
    if (!undecided_.empty() && undecided_ != "pass" && undecided_ != "fail")
      throw Error(fmt::format("--undecided: must be pass or fail, got '{}'", undecided_));
    std::error_code ignored;
    if (!source_root_.empty() && !fs::is_directory(source_root_, ignored))
      throw Error(fmt::format("--source-root: must be a folder, got '{}'", source_root_));
  }

  void read_options(const Session& session) {
    add_limits("--max", most_, options_.fail);
    add_limits("--warn", warn_, options_.warn);
    if (!undecided_.empty())
      options_.undecided = undecided_ == "pass" ? CheckOutcome::passed : CheckOutcome::failed;
    options_.source_root = source_root_.empty() ? source_root_here() : source_root_;
    options_.reading = reading_.options(session);
  }

  /// Writes the baseline. An existing file keeps its limits, even if its format is too old for a
  /// comparison; if it cannot be read at all, a warning says so.
  std::unique_ptr<Answer> make_baseline(const Scenario& asked, bool exists,
                                        Session& session) const {
    std::optional<CheckBaseline> old;
    if (exists) {
      try {
        old = read_baseline(baseline_);
      } catch (const Error& error) {
        session.remark("warning: the limits of the old baseline could not be read and are lost: " +
                       shown(error.what()));
      }
    }
    const auto activity = session.begin("summarizing " + trace_);
    std::vector<std::string> traces{trace_};
    traces.insert(traces.end(), more_traces_.begin(), more_traces_.end());
    const CheckBaseline blessed = bless(traces, asked, options_, old ? &*old : nullptr);
    const std::string content = shown_answer(write_baseline(blessed));
    write_new_file(baseline_, content);
    return std::make_unique<CheckAnswer>(
        CheckedRun{{}, blessed_text(baseline_, std::ssize(content), blessed, old), {}, false});
  }

  std::string trace_, baseline_, undecided_, source_root_, summary_;
  std::vector<std::string> more_traces_, most_, warn_;
  bool blesses_ = false, annotates_ = false;
  Changes changes_;
  AllocatorChoice allocator_;
  CheckOptions options_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_check() { return std::make_unique<CheckJob>(); }

}  // namespace foretrace
