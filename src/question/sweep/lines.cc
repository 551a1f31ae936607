// The lines of a file of sweep answers. Equal answers are equal bytes, so that files can be merged
// from parts, and cut after the last complete line if they were interrupted.

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/files/csv_rows.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/shown.h"
#include "document/words/facts.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/error.h"
#include "foretrace/version.h"
#include "question/sweep/columns.h"

namespace foretrace {
namespace {

using Ordered = nlohmann::ordered_json;

/// Reads a number of points or shards. Throws Error unless it is a whole number that fits 64 bits.
std::uint64_t read_count(const Ordered& json) {
  if (!json.is_number_unsigned()) throw Error("has a number that is not a whole number");
  return json.get<std::uint64_t>();
}

constexpr std::uint64_t kMaxParts = 1'000'000;  ///< Most shards.
constexpr std::uint64_t kMaxPoints = 10'000'000;

std::string jsonl_line(const SweepHeader& header, const SweepPoint& point) {
  return shown_answer(json_line(point_json(header, point))) + '\n';
}

/// Returns the value of a setting, without quotes if it is a text.
std::string unquoted(const std::string& value) {
  const nlohmann::json json = parse_json<nlohmann::json>(value);
  return json.is_string() ? json.get<std::string>() : value;
}

std::vector<std::string> csv_headings(const SweepHeader& header) {
  std::vector<std::string> headings = {"point"};
  headings.insert(headings.end(), header.settings.begin(), header.settings.end());
  for (const PointColumn* column : columns_of(header)) headings.emplace_back(column->key);
  for (const std::string& text : header.asserts) headings.push_back("assert " + text);
  headings.insert(headings.end(), {"figures", "refused"});
  return headings;
}

std::string csv_row(const SweepHeader& header, const SweepPoint& point) {
  std::vector<std::string> cells = {std::to_string(point.number)};
  for (const std::string& value : point.values) cells.push_back(unquoted(value));
  for (const PointColumn* column : columns_of(header))
    cells.push_back(cell_of(column->value(point)));
  for (std::size_t i = 0; i < header.asserts.size(); ++i)
    cells.push_back(i < point.verdicts.size() ? point.verdicts[i] : "");
  std::string figures;
  for (const SweepFigure& figure : point.figures)
    figures += (figures.empty() ? "" : ";") + figure.name + "=" + figure.value;
  cells.push_back(std::move(figures));
  cells.push_back(point.refused);
  return shown_answer(csv_line(cells));
}

SweepPoint read_jsonl(const SweepHeader& header, std::string_view text) {
  const Ordered line = try_parse_json<Ordered>(text);
  SweepPoint point;
  point.number = read_count(line.at("point"));
  for (const std::string& name : header.settings)
    point.values.push_back(json_line(line.at("settings").at(name)));
  if (line.contains("refused")) {
    point.refused = line["refused"].get<std::string>();
    return point;
  }
  for (const PointColumn* column : columns_of(header))
    within(column->key, [&] { column->read(line.value(column->key, Ordered()), point); });
  if (line.contains("figures")) {
    for (const auto& [name, value] : line["figures"].items())
      point.figures.push_back({name, json_line(value)});
  }
  const Ordered verdicts = line.value("asserts", Ordered(Ordered::object()));
  for (const std::string& assertion : header.asserts)
    point.verdicts.push_back(verdicts.value(assertion, ""));
  return point;
}

/// Returns the cell as JSON: numbers, true and false as they are, everything else as text.
std::string as_json_value(const std::string& cell) {
  const nlohmann::json json = try_parse_json<nlohmann::json>(cell);
  const bool is_text = json.is_discarded() || json.is_string() || json.is_structured();
  return is_text ? json_line(nlohmann::json(cell)) : cell;
}

std::vector<SweepFigure> read_figures(const std::string& cell) {
  std::vector<SweepFigure> figures;
  for (std::size_t at = 0; at < cell.size();) {
    const std::size_t end = std::min(cell.find(';', at), cell.size());
    const std::size_t equals = cell.find('=', at);
    if (equals >= end) throw Error("figures: must be NAME=NUMBER");
    const std::string value = cell.substr(equals + 1, end - equals - 1);
    if (!try_parse_json<nlohmann::json>(value).is_number())
      throw Error("figures: must be NAME=NUMBER");
    figures.push_back({cell.substr(at, equals - at), value});
    at = end + 1;
  }
  return figures;
}

SweepPoint read_csv(const SweepHeader& header, std::string_view row) {
  const std::vector<std::string> cells = csv_cells(row);
  if (cells.size() != csv_headings(header).size()) throw Error("has a different number of columns");
  std::size_t at = 0;
  SweepPoint point;
  point.number = read_count(try_parse_json<Ordered>(cells[at++]));
  for (std::size_t i = 0; i < header.settings.size(); ++i)
    point.values.push_back(as_json_value(cells[at++]));
  point.refused = cells.back();
  if (!point.refused.empty()) return point;
  for (const PointColumn* column : columns_of(header)) {
    const std::string& cell = cells[at++];
    const Ordered value = cell.empty() ? Ordered() : try_parse_json<Ordered>(as_json_value(cell));
    within(column->key, [&] { column->read(value, point); });
  }
  for (std::size_t i = 0; i < header.asserts.size(); ++i) point.verdicts.push_back(cells[at++]);
  point.figures = read_figures(cells[at++]);
  return point;
}

}  // namespace

Ordered point_json(const SweepHeader& header, const SweepPoint& point) {
  Ordered line = {{"point", point.number}, {"settings", Ordered::object()}};
  for (std::size_t i = 0; i < header.settings.size(); ++i)
    line["settings"][header.settings[i]] = parse_json<Ordered>(point.values[i]);
  if (!point.refused.empty()) {
    line["refused"] = point.refused;
    return line;
  }
  for (const PointColumn* column : columns_of(header)) {
    if (Ordered value = column->value(point); !value.is_null())
      line[column->key] = std::move(value);
  }
  for (const SweepFigure& figure : point.figures)
    line["figures"][figure.name] = parse_json<Ordered>(figure.value);
  for (std::size_t i = 0; i < point.verdicts.size(); ++i) {
    if (!point.verdicts[i].empty()) line["asserts"][header.asserts[i]] = point.verdicts[i];
  }
  return line;
}

std::string sweep_identity(const SweepHeader& header) {
  nlohmann::json scenario = parse_json<nlohmann::json>(header.scenario_json);
  scenario.erase("trace");
  nlohmann::json sums = nlohmann::json::array();
  for (const InputFile& input : header.inputs) sums.push_back(input.sha256);
  // A version with other columns must not continue a file: some of its lines would lack them.
  nlohmann::json columns = nlohmann::json::array();
  for (const PointColumn* column : columns_of(header)) columns.push_back(column->key);
  return hash_digits(json_line(nlohmann::json{{"schema", kSweepAnswers.schema},
                                              {"tool", kVersion},
                                              {"scenario", scenario},
                                              {"inputs", sums},
                                              {"settings", header.settings},
                                              {"points", header.points},
                                              {"columns", columns},
                                              {"intervals", header.intervals},
                                              {"memory", header.memory}}));
}

std::string sweep_header_line(const SweepHeader& header) {
  Ordered line = {{"schema", kSweepAnswers.schema},
                  {"tool", {{"version", kVersion}}},
                  {"sweep", sweep_identity(header)},
                  {"points", header.points}};
  if (header.shards > 1) line["shard"] = {{"number", header.shard}, {"of", header.shards}};
  line["settings"] = header.settings;
  line["asserts"] = header.asserts;
  line["intervals"] = header.intervals;
  line["memory"] = header.memory;
  Ordered baseline = Ordered::object();
  if (header.baseline_step_time) baseline["step_time_ns"] = *header.baseline_step_time;
  if (header.baseline_allocated) baseline["peak_allocated_bytes"] = *header.baseline_allocated;
  if (header.baseline_reserved) baseline["peak_reserved_bytes"] = *header.baseline_reserved;
  line["baseline"] = baseline;
  line["trust"] = parse_json<Ordered>(json_line(to_json(header.trust)));
  line["inputs"] = Ordered::array();
  for (const InputFile& input : header.inputs)
    line["inputs"].push_back(
        {{"path", input.path}, {"format", input.format}, {"sha256", input.sha256}});
  line["scenario"] = parse_json<Ordered>(header.scenario_json);
  return shown_answer(json_line(line)) + '\n';
}

std::string sweep_csv_heading(const SweepHeader& header) {
  return shown_answer(csv_line(csv_headings(header)));
}

std::string sweep_point_line(const SweepHeader& header, const SweepPoint& point, SweepForm form) {
  return form == SweepForm::csv ? csv_row(header, point) : jsonl_line(header, point);
}

SweepPoint read_point_line(const SweepHeader& header, std::string_view line, SweepForm form) {
  try {
    return form == SweepForm::csv ? read_csv(header, line) : read_jsonl(header, line);
  } catch (const nlohmann::json::exception&) {
    throw Error("is not an answer of this sweep");
  }
}

SweepFileHeader read_header_line(std::string_view text, const AnswerKind& kind) {
  const auto refuse = [&] {
    throw Error(fmt::format("is not a file of {} answers", kind.question));
  };
  SweepFileHeader found;
  try {
    Ordered line = try_parse_json<Ordered>(text);
    if (line.at("schema") != kind.schema) refuse();
    found.identity = line.at(std::string(kind.question)).get<std::string>();
    found.points = read_count(line.at("points"));
    if (line.contains("shard")) {
      found.shard = read_count(line["shard"].at("number"));
      found.shards = read_count(line["shard"].at("of"));
      line.erase("shard");
    }
    if (found.shard < 1 || found.shard > found.shards || found.shards > kMaxParts)
      throw Error("its header names an impossible shard");
    if (found.points > kMaxPoints) throw Error("its header names more points than there are");
    found.whole_line = shown_answer(json_line(line)) + '\n';
  } catch (const nlohmann::json::exception&) {
    refuse();
  }
  return found;
}

std::string difference_of_sweeps(const SweepHeader& header, std::string_view line) {
  const Ordered theirs = [&] {
    const Ordered json = try_parse_json<Ordered>(line);
    return json.is_object() ? json : Ordered(Ordered::value_t::discarded);
  }();
  const Ordered ours = parse_json<Ordered>(sweep_header_line(header));
  if (theirs.is_discarded()) return "its first line is not JSON";
  if (theirs.value("sweep", Ordered()) == ours["sweep"]) return {};
  const auto differs = [&](const char* key) {
    return theirs.value(key, Ordered()) != ours.value(key, Ordered());
  };
  if (differs("tool")) return "it was written by another version of this program";
  for (const char* flag : {"intervals", "memory"}) {
    if (differs(flag))
      return fmt::format("it was asked {} {}", ours[flag] ? "without" : "with", flag);
  }
  const auto sums = [](const Ordered& from) {
    Ordered all = Ordered::array();
    for (const Ordered& input : from.value("inputs", Ordered(Ordered::array())))
      all.push_back(input.is_object() ? input.value("sha256", Ordered()) : Ordered());
    return all;
  };
  return sums(theirs) != sums(ours) ? "it is about another trace" : "it is about another scenario";
}

std::pair<std::uint64_t, std::uint64_t> points_of_shard(std::uint64_t points, std::uint64_t shard,
                                                        std::uint64_t shards) {
  // This cannot overflow: there are at most ten million points, and fewer shards than 2^32.
  return {points * (shard - 1) / shards, points * shard / shards};
}

}  // namespace foretrace
