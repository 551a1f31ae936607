// Any lines as a file of answers of a sweep: an Error, or answers whose lines are written as they
// were read, with their summary, also as a page.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/error.h"

namespace {

using namespace foretrace;

void require(bool holds) {
  if (!holds) std::abort();
}

SweepHeader some_header(bool intervals) {
  SweepHeader header;
  header.scenario_json = R"({"version":1})";
  header.inputs = {{"t.json", "kineto", "0123"}};
  header.settings = {"variant", "scale.factor"};
  header.asserts = {"step_time <= 1ms"};
  header.points = 5;
  header.intervals = intervals;
  header.baseline_step_time = Nanoseconds(1'000'000);
  return header;
}

/// Expects that a written line reads back as the same answer.
void check_round_trip(const SweepHeader& header, const SweepPoint& point, SweepForm form) {
  const std::string line = sweep_point_line(header, point, form);
  const SweepPoint again =
      read_point_line(header, std::string_view(line).substr(0, line.size() - 1), form);
  require(sweep_point_line(header, again, form) == line);
}

void read_header(const SweepHeader& header, std::string_view line) {
  difference_of_sweeps(header, line);
  const SweepFileHeader found = read_header_line(line);
  const auto [first, end] = points_of_shard(found.points, found.shard, found.shards);
  require(first <= end && end <= found.points);
  require(read_header_line(found.whole_line).whole_line == found.whole_line);
}

void sum_up(const SweepReport& report) {
  if (report.points.empty()) return;
  summarize(report);
  to_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::ostringstream out;
  write_text(document_of(report), out);
  write_markdown(document_of(report), out);
  write_sweep_page(report, out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const SweepForm form = (data[0] & 1) != 0 ? SweepForm::csv : SweepForm::jsonl;
  SweepReport report{.header = some_header((data[0] & 2) != 0), .points = {}};
  std::istringstream in(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  for (std::string line; std::getline(in, line);) {
    try {
      report.points.push_back(read_point_line(report.header, line, form));
      check_round_trip(report.header, report.points.back(), SweepForm::jsonl);
      check_round_trip(report.header, report.points.back(), form);
    } catch (const Error&) {
    }
    try {
      read_header(report.header, line);
    } catch (const Error&) {
    }
  }
  sum_up(report);
  return 0;
}
