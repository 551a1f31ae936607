// The formats that build servers read: JUnit's XML, and the workflow commands of GitHub.

#include <algorithm>
#include <fmt/core.h>
#include <ostream>

#include "base/shown.h"
#include "document/page/page_shell.h"
#include "foretrace/answer/check.h"

namespace foretrace {
namespace {

/// Escapes text for a workflow command: % and line breaks, and in properties also : and ,.
std::string command_text(std::string_view text, bool is_property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%') {
      escaped += "%25";
    } else if (c == '\r') {
      escaped += "%0D";
    } else if (c == '\n') {
      escaped += "%0A";
    } else if (is_property && c == ':') {
      escaped += "%3A";
    } else if (is_property && c == ',') {
      escaped += "%2C";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string seconds(std::int64_t nanoseconds) {
  return to_fixed(static_cast<double>(nanoseconds) * 1e-9, 9);
}

/// Describes a failure and lists all causes, because each may matter; those of this metric come
/// first.
std::string failure_body(const CheckReport& report, const CheckedFigure& figure) {
  std::string body = fmt::format("{}\n{}\n", figure_sentence(figure), figure.says);
  for (const bool own : {true, false}) {
    for (const CheckCause& cause : report.causes) {
      if ((cause.figure == figure.name) == own)
        body += fmt::format("  {}\n", cause_sentence(cause));
    }
  }
  return body;
}

void write_test(const CheckReport& report, const CheckedFigure& figure, std::ostream& out) {
  out << "    <testcase name=\"" << html_text(figure.name) << "\" classname=\"foretrace.check."
      << html_text(report.scenario) << "\" time=\""
      << (figure.unit == FigureUnit::time ? seconds(figure.after.value_or(0)) : "0") << '"';
  const auto cause = std::find_if(
      report.causes.begin(), report.causes.end(),
      [&](const CheckCause& one) { return one.figure == figure.name && !one.file.empty(); });
  if (cause != report.causes.end()) {
    out << " file=\"" << html_text(cause->file) << '"';
    if (cause->line > 0) out << " line=\"" << cause->line << '"';
  }
  const std::string message = html_text(figure_sentence(figure));
  switch (figure.standing) {
    case CheckOutcome::failed:
      out << ">\n      <failure type=\"regression\" message=\"" << message << "\">"
          << html_text(failure_body(report, figure)) << "</failure>\n    </testcase>\n";
      return;
    case CheckOutcome::undecided:
      out << ">\n      <error type=\"undecided\" message=\"" << message << "\">"
          << html_text(failure_body(report, figure)) << "</error>\n    </testcase>\n";
      return;
    case CheckOutcome::left_out:
      out << ">\n      <skipped message=\"" << html_text(figure.why) << "\"/>\n    </testcase>\n";
      return;
    case CheckOutcome::warned:
      out << ">\n      <system-out>" << html_text("warning: " + failure_body(report, figure))
          << "</system-out>\n    </testcase>\n";
      return;
    case CheckOutcome::passed:
      out << "/>\n";
  }
}

/// GitHub shows at most this many annotations of each kind for a step.
constexpr std::size_t kMaxAnnotations = 10;

/// The annotations of one kind. If there are too many, the last one says how many more there are.
class Annotations {
 public:
  explicit Annotations(std::string kind) : kind_(std::move(kind)) {}
  void add(const std::string& properties, const std::string& message) {
    lines_.push_back(fmt::format("::{} {}::{}", kind_, properties, command_text(message, false)));
  }
  void write(std::ostream& out) const {
    const bool all = lines_.size() <= kMaxAnnotations;
    const std::size_t shown = all ? lines_.size() : kMaxAnnotations - 1;
    for (std::size_t i = 0; i < shown; ++i) out << lines_[i] << '\n';
    if (!all)
      out << "::" << kind_ << " title=foretrace::" << lines_.size() - shown
          << " more in the summary\n";
  }

 private:
  std::string kind_;
  std::vector<std::string> lines_;
};

std::string cause_properties(const CheckCause& cause, const std::string& title) {
  std::string properties;
  if (!cause.file.empty()) {
    properties = fmt::format("file={},", command_text(cause.file, true));
    if (cause.line > 0) properties += fmt::format("line={},", cause.line);
  }
  return properties + "title=" + command_text(title, true);
}

}  // namespace

void write_check_junit(const CheckReport& report, std::ostream& out) {
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\"",
                  report.figures.size(), report.count(CheckOutcome::failed),
                  report.count(CheckOutcome::undecided), report.count(CheckOutcome::left_out));
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"foretrace\" " << counts
      << ">\n  <testsuite name=\"foretrace check\" " << counts << ">\n    <properties>\n";
  const std::pair<const char*, std::string> properties[] = {
      {"scenario", report.scenario},
      {"baseline", report.baseline},
      {"standing", std::string(to_string(report.standing()))},
      {"structure_only", report.structure_only ? "true" : "false"}};
  for (const auto& [name, value] : properties) {
    out << "      <property name=\"" << name << "\" value=\"" << html_text(value) << "\"/>\n";
  }
  out << "    </properties>\n";
  for (const CheckedFigure& figure : report.figures) write_test(report, figure, out);
  out << "  </testsuite>\n</testsuites>\n";
}

void write_check_github(const CheckReport& report, std::ostream& out) {
  const CommandPassthrough commands(out);
  Annotations errors("error"), warnings("warning");
  const auto annotations_for = [&](CheckOutcome standing) -> Annotations* {
    if (standing == CheckOutcome::failed) return &errors;
    return standing == CheckOutcome::undecided || standing == CheckOutcome::warned ? &warnings
                                                                                   : nullptr;
  };
  const auto standing_of = [&](const std::string& name) {
    for (const CheckedFigure& figure : report.figures) {
      if (figure.name == name) return figure.standing;
    }
    return CheckOutcome::left_out;
  };
  for (const CheckCause& cause : report.causes) {
    if (Annotations* list = annotations_for(standing_of(cause.figure)))
      list->add(cause_properties(cause, "foretrace: " + cause.figure), cause_sentence(cause));
  }
  for (const CheckedFigure& figure : report.figures) {
    const bool has_cause =
        std::any_of(report.causes.begin(), report.causes.end(),
                    [&](const CheckCause& cause) { return cause.figure == figure.name; });
    Annotations* list = annotations_for(figure.standing);
    if (list == nullptr || has_cause) continue;
    list->add("title=" + command_text("foretrace: " + figure.name, true), figure_sentence(figure));
  }
  errors.write(out);
  warnings.write(out);
  out << "::notice title=foretrace::" << command_text(check_headline(report), false) << '\n';
}

const std::vector<CheckForm>& check_forms() {
  static const std::vector<CheckForm> forms = {
      {"junit", "a test for each metric, as XML", write_check_junit},
      {"github", "annotations of source lines", write_check_github},
      {"bencher", "Bencher Metric Format", write_check_bencher},
      {"benchmark", "customSmallerIsBetter of github-action-benchmark", write_check_benchmark}};
  return forms;
}

}  // namespace foretrace
