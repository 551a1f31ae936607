#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/check.h"
#include "foretrace/scenario.h"

namespace foretrace {
namespace {

CheckedFigure step_time(CheckOutcome standing) {
  CheckedFigure figure;
  figure.name = "step_time", figure.says = "a training step", figure.unit = FigureUnit::time;
  figure.before = 150'000'000, figure.after = 188'000'000;
  figure.lower = 37'000'000, figure.upper = 39'000'000;
  figure.limit = "5%", figure.standing = standing;
  return figure;
}

CheckCause new_syncs() {
  CheckCause cause;
  cause.what = "12 new cudaStreamSynchronize", cause.where = "train.py:88 in main";
  cause.file = "src/a,b:c.py", cause.line = 88, cause.kind = "sync", cause.figure = "step_time";
  cause.effect = 38ms;
  return cause;
}

CheckReport regression() {
  CheckReport report;
  report.scenario = "as recorded", report.baseline = "baseline.json";
  report.figures = {step_time(CheckOutcome::failed)};
  report.causes = {new_syncs()};
  return report;
}

template <class Write>
std::string written(Write write, const CheckReport& report) {
  std::ostringstream out;
  write(report, out);
  return out.str();
}

void document_text(const CheckReport& report, std::ostream& out) {
  write_text(document_of(report), out);
}
void document_markdown(const CheckReport& report, std::ostream& out) {
  write_markdown(document_of(report), out);
}

TEST(CheckReport, BeginsWithTheVerdict) {
  EXPECT_EQ(check_headline(regression()),
            "REGRESSION: step_time 150 ms -> 188 ms (+25.3 %), limit 5%; 1 of 1 metric beyond the "
            "limit");
  EXPECT_EQ(cause_sentence(new_syncs()),
            "+38 ms: 12 new cudaStreamSynchronize from train.py:88 in main");
}

TEST(CheckReport, SaysWhatIsLeft) {
  CheckReport report = regression();
  EXPECT_EQ(left_sentence(report), "");
  report.left = 2ms;
  EXPECT_EQ(left_sentence(report), "+2 ms: left, which no cause accounts for");
  EXPECT_NE(written(document_text, report).find(left_sentence(report)), std::string::npos);
  EXPECT_NE(written(document_markdown, report).find(left_sentence(report)), std::string::npos);
  EXPECT_EQ(to_json(report)["left_ns"], 2000000);
  report.left = -2ms;
  EXPECT_EQ(left_sentence(report), "-2 ms: left, work elsewhere that takes less");
}

TEST(CheckReport, ThatComparesNothingDoesNotPass) {
  CheckReport report = regression();
  EXPECT_EQ(report.standing(), CheckOutcome::failed);
  report.figures = {step_time(CheckOutcome::left_out)};
  EXPECT_EQ(report.standing(), CheckOutcome::left_out);
  EXPECT_EQ(check_headline(report),
            "NOTHING COMPARED: no metric is in both the baseline and the trace");
}

TEST(CheckReport, AnnotationsNameTheLineAndEscapeTheRest) {
  CheckReport report = regression();
  report.causes[0].what = "100 % more\nsyncs";
  EXPECT_EQ(written(write_check_github, report),
            "::error file=src/a%2Cb%3Ac.py,line=88,title=foretrace%3A step_time::+38 ms: 100 %25 "
            "more\\nsyncs from train.py:88 in main\n"
            "::notice title=foretrace::REGRESSION: step_time 150 ms -> 188 ms (+25.3 %25), limit "
            "5%25; 1 of 1 metric beyond the limit\n");
}

TEST(CheckReport, UndecidedIsAnnotatedAsAWarning) {
  CheckReport report = regression();
  report.figures[0].standing = CheckOutcome::undecided;
  EXPECT_TRUE(written(write_check_github, report)
                  .starts_with("::warning file=src/a%2Cb%3Ac.py,line=88,title=foretrace%3A "
                               "step_time::+38 ms: 12 new cudaStreamSynchronize"));
}

TEST(CheckReport, FilesForgeNoCommands) {
  CheckReport report = regression();
  report.causes[0].file = "a\n::error::b\r.py";
  EXPECT_TRUE(written(write_check_github, report)
                  .starts_with("::error file=a%0A%3A%3Aerror%3A%3Ab%0D.py,line=88,"));
}

TEST(CheckReport, AtMostTenAnnotationsOfAKind) {
  CheckReport report = regression();
  report.causes.assign(14, new_syncs());
  const std::string text = written(write_check_github, report);
  std::size_t errors = 0;
  for (std::size_t at = text.find("::error "); at != std::string::npos;
       at = text.find("::error ", at + 1))
    ++errors;
  EXPECT_EQ(errors, 10u);
  EXPECT_NE(text.find("::error title=foretrace::5 more in the summary\n"), std::string::npos);
}

TEST(CheckReport, TheBodyOfAFailedTestHasTheNumbers) {
  CheckReport report = regression();
  report.causes[0].what = "<new> & \"old\" \x01";
  const std::string text = written(write_check_junit, report);
  EXPECT_NE(text.find("<testsuites name=\"foretrace\" tests=\"1\" failures=\"1\" errors=\"0\""),
            std::string::npos);
  EXPECT_NE(text.find("time=\"0.188000000\" file=\"src/a,b:c.py\" line=\"88\">"), std::string::npos)
      << text;
  EXPECT_NE(text.find("step_time 150 ms -&gt; 188 ms (+25.3 %), limit 5%\na training step\n  +38 "
                      "ms: &lt;new&gt; &amp; &quot;old&quot; \\u0001 from train.py:88 in main\n"
                      "</failure>"),
            std::string::npos)
      << text;
}

TEST(CheckReport, UndecidedIsAnErrorAndLeftOutIsSkipped) {
  CheckReport report = regression();
  report.figures = {step_time(CheckOutcome::undecided), step_time(CheckOutcome::left_out)};
  report.figures[1].why = "times are not compared";
  const std::string text = written(write_check_junit, report);
  EXPECT_NE(text.find("errors=\"1\" skipped=\"1\""), std::string::npos);
  EXPECT_NE(text.find("<error type=\"undecided\""), std::string::npos);
  EXPECT_NE(text.find("<skipped message=\"times are not compared\"/>"), std::string::npos);
}

TEST(CheckReport, TrackersGetValuesAndIntervals) {
  const auto bencher = nlohmann::json::parse(written(write_check_bencher, regression()));
  EXPECT_EQ(bencher["step_time"]["latency"]["value"], 188'000'000);
  EXPECT_EQ(bencher["step_time"]["latency"]["lower_value"], 187'000'000);
  EXPECT_EQ(bencher["step_time"]["latency"]["upper_value"], 189'000'000);
  const auto benchmark = nlohmann::json::parse(written(write_check_benchmark, regression()));
  EXPECT_EQ(benchmark[0]["name"], "step_time");
  EXPECT_EQ(benchmark[0]["unit"], "ns");
  EXPECT_EQ(benchmark[0]["range"], "1 ms");
}

TEST(CheckReport, NamesOfAnyBytesMakeNoBrokenAnswer) {
  CheckReport report = regression();
  report.causes[0].what = "\xff\xfe kernel | table";
  for (const CheckForm& form : check_forms()) EXPECT_FALSE(written(form.write, report).empty());
}

TEST(CheckReport, XmlHoldsNothingThatItForbids) {
  CheckReport report = regression();
  report.scenario = report.causes[0].what = report.causes[0].file = "\x01\x1f\ufffe\uffff\xff";
  const std::string text = written(write_check_junit, report);
  EXPECT_EQ(text.find_first_of("\x01\x1f\xff"), std::string::npos);
  for (const char* forbidden : {"\ufffe", "\uffff"}) EXPECT_EQ(text.find(forbidden), text.npos);
}

TEST(CheckReport, NamesForgeNoMarkdownAndNoLines) {
  CheckReport report = regression();
  report.causes[0].what = "<img src=x>|\n# a @b";
  report.causes[0].where = "[x](javascript:y)";
  report.scenario = "\n- s";
  report.notes.add(Severity::warning, "n", "*a*\n::error::b");
  const std::string markdown = written(document_markdown, report);
  EXPECT_EQ(markdown.substr(0, markdown.find("**Structure:**")),
            "### Foretrace: REGRESSION: step_time 150 ms -> 188 ms (+25.3 %), limit 5%; 1 of 1 "
            "metric beyond the limit\n\n"
            "#### Causes\n\n"
            "- +38 ms: &lt;img src=x>\\|\\\\n# a @<!-- -->b from \\[x\\](javascript:y)\n\n"
            "#### What was compared\n\n"
            "**Scenario:** \\\\n- s\n\n");
  EXPECT_NE(written(document_text, report).find("  - warning: n (*a*\\n::error::b)\n"),
            std::string::npos);
}

}  // namespace
}  // namespace foretrace
