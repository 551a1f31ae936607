#pragma once

// The answers to the many questions of a sweep: the lines that keep them while it runs, and their
// summary when it is over.
//
//     {"schema": "foretrace.sweep/1", ..., "points": 10000, "settings": ["loader.workers"]}
//     {"point": 0, "settings": {"loader.workers": 0}, "step_time_ns": 31415926, ...}
//     {"point": 1, ...
//
// The first line identifies the sweep: two files whose first lines have the same "sweep" contain
// answers to the same questions about the same trace by the same program.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/prediction.h"

namespace foretrace {

struct SweepFigure {
  std::string name;   ///< With its transform and unit: "loader.disk_bytes".
  std::string value;  ///< A number as JSON.
};

struct SweepPoint {
  std::uint64_t number = 0;         ///< Number of the point in the sweep, from 0.
  std::vector<std::string> values;  ///< Values of the settings in their order, each as JSON.
  Nanoseconds step_time{0};
  double speedup = 1;  ///< Relative to the job as it was recorded.
  std::optional<Nanoseconds> lower, upper;
  Grade trust = Grade::good;
  std::optional<bool> on_front;  ///< No other point is both faster and smaller; see SweepHeader.
  std::optional<Bytes> peak_allocated, peak_reserved;  ///< Peaks of the fullest device.
  std::optional<bool> fits;  ///< No request was refused; empty if memory is not known.
  std::vector<SweepFigure> figures;
  /// For each assertion: holds, fails, undecided; empty if there are none.
  std::vector<std::string> verdicts;
  std::string refused;  ///< The reason why there is no answer; empty if there is one.
};

/// The first line of a file of answers.
struct SweepHeader {
  std::string scenario_json;      ///< The scenario with its defaults, as JSON.
  std::vector<InputFile> inputs;  ///< Traces, and other files that answers depend on.
  std::vector<std::string> settings;
  std::vector<std::string> asserts;
  std::uint64_t points = 0;  ///< Points in the whole sweep.
  bool intervals = false, memory = true;
  bool front = false;  ///< Points have on_front, because all of them are known.
  Trust trust;         ///< In the recording; empty if the question has several traces.
  std::optional<Nanoseconds> baseline_step_time;  ///< Empty if the question has several traces.
  std::optional<Bytes> baseline_allocated, baseline_reserved;
  bool has_steps = true, has_times = true;
  std::uint64_t shard = 1, shards = 1;
};

/// 16 hex digits that identify everything the answers depend on; paths and the shard are left out.
std::string sweep_identity(const SweepHeader& header);

/// The format of a file of answers. jsonl: as above. csv: rows of a spreadsheet under a heading;
/// the first line of the other form goes into a file next to it.
enum class SweepForm : std::uint8_t { jsonl, csv };

/// Each line ends in a line break.
std::string sweep_header_line(const SweepHeader& header);
std::string sweep_csv_heading(const SweepHeader& header);
std::string sweep_point_line(const SweepHeader& header, const SweepPoint& point, SweepForm form);
/// Throws Error if the text is not such a line of this sweep.
SweepPoint read_point_line(const SweepHeader& header, std::string_view line, SweepForm form);

/// The kind of question that a file's answers belong to. Searches for plans are kept like sweeps.
struct AnswerKind {
  std::string_view schema;
  std::string_view question;  ///< Its name in words, and that of its identity in the first line.
};
inline constexpr AnswerKind kSweepAnswers = {"foretrace.sweep/1", "sweep"};

/// The facts that readers need from the first line of a file.
struct SweepFileHeader {
  std::string identity;
  std::uint64_t points = 0, shard = 1, shards = 1;
  std::string whole_line;  ///< This line, for the whole sweep instead of a shard.
};
/// Throws Error if the line is not a header of this kind.
SweepFileHeader read_header_line(std::string_view line, const AnswerKind& kind = kSweepAnswers);

/// The reason, in words, why the file with this first line is not of the same sweep; empty if it
/// is.
std::string difference_of_sweeps(const SweepHeader& header, std::string_view line);

/// The first point of a shard, and the point after its last one. Shards count from 1, points from
/// 0.
std::pair<std::uint64_t, std::uint64_t> points_of_shard(std::uint64_t points, std::uint64_t shard,
                                                        std::uint64_t shards);

/// A sweep with its answers.
struct SweepReport {
  SweepHeader header;
  std::vector<SweepPoint> points;
};

/// The answer to one setting asked about with several values; points are in order of the values.
struct Curve : SweepReport {
  std::vector<std::string> uses;      ///< The what-if with its other settings.
  std::optional<std::size_t> answer;  ///< The furthest value that satisfies the assertion.
  std::string answer_text;            ///< In words.
  Trust trust;                        ///< Trust of the least reliable point.
  Notes notes;

  const std::string& setting() const { return header.settings.front(); }  ///< "recompute.share"
  /// "peak_reserved <= 16GB", or empty.
  std::string until() const { return header.asserts.empty() ? "" : header.asserts.front(); }
  /// Whether the point satisfies the assertion; true if there is none.
  bool satisfies(const SweepPoint& point) const;
};

/// A value of a setting without the quotes of JSON: 0.5, 8GB.
std::string plain_value(const std::string& value);

/// How much of the step time one setting decides by itself.
struct SweepEffect {
  std::string setting;
  Nanoseconds moves{0};  ///< From its best to its worst value, on average over all others.
  double share = 0;      ///< Share of the variance of step time.
  std::string best;      ///< Its value with the least average step time, as JSON.
};

struct SweepRefusal {
  std::string why;
  std::uint64_t count = 0;
  std::uint64_t first = 0;  ///< Number of the first such point.
};

struct SweepSummary {
  std::uint64_t answered = 0, refused = 0, unfit = 0, failed = 0;
  /// Index of the fastest point that fits and satisfies all assertions.
  std::optional<std::size_t> best;
  std::vector<std::size_t> front;    ///< Pareto front of time and memory, by time.
  bool by_reserved = false;          ///< Whether its memory is reserved, not allocated, memory.
  std::vector<SweepEffect> effects;  ///< Greatest share first.
  std::vector<SweepRefusal> refusals;
};
SweepSummary summarize(const SweepReport& report);

class Document;
/// For people, in every form.
Document document_of(const SweepReport& report);
/// The object with schema "foretrace.sweep_summary/1".
nlohmann::json to_json(const SweepReport& report);

/// For people, in every form.
Document document_of(const Curve& curve);
/// The object with schema "foretrace.curve/1".
nlohmann::json to_json(const Curve& curve);
/// One row for each point.
void write_csv(const Curve& curve, std::ostream& out);

void write_sweep_page(const SweepReport& report, std::ostream& out);

}  // namespace foretrace
