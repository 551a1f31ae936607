#include "ask/plan/resumable_search.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "ask/many/answer_file.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/shown.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/version.h"
#include "plan/search.h"

namespace foretrace {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr AnswerKind kPlanAnswers = {"foretrace.plan.bounds/2", "plan"};

std::string line_of(const Ordered& json) { return shown_answer(json_line(json)) + '\n'; }

/// Settings that all layouts share, without those that are searched.
nlohmann::json shared_settings(const PlanSpace& space) {
  Layout layout = space.step.layout;
  nlohmann::json settings = write_json(layout);
  for (const std::string& name : searched_settings()) {
    if (!space.fixed.contains(name)) settings.erase(name);
  }
  settings.erase("embedding_is_layer");  // Follows from the number of stages.
  return settings;
}

/// Everything that bounds depend on. Files are identified by their contents, not by their paths.
Ordered question_json(const PlanQuestion& question, const PlanSpace& space) {
  Ordered json = {{"model", write_json(*find_workload(question.model))},
                  {"machine", hash_digits(json_line(cluster_json(question.machine)))},
                  {"settings", shared_settings(space)},
                  {"gpus", space.gpus},
                  {"fixed", space.fixed},
                  {"memory_bytes", space.limit().count}};
  if (!question.calibrate.empty())
    json["calibrate"] = {{"sha256", sha256_of_file(question.calibrate)},
                         {"rows", question.calibrate_rows},
                         {"only", question.only}};
  return json;
}

std::string header_line(const Ordered& question, std::uint64_t blocks, const Shard& shard) {
  Ordered line = {{"schema", kPlanAnswers.schema}, {"tool", {{"version", kVersion}}}};
  line["points"] = blocks;
  const std::string identity = hash_digits(json_line(line) + json_line(question));
  line["plan"] = identity;
  if (shard.count > 1) line["shard"] = {{"number", shard.number}, {"of", shard.count}};
  line["question"] = question;
  return line_of(line);
}

/// The reason why a file with this first line belongs to another question than ours; empty if it
/// belongs to ours.
std::string difference_of_plans(const std::string& our_header, const std::string& file_header) {
  const Ordered ours = parse_json<Ordered>(our_header);
  const Ordered other = try_parse_json<Ordered>(file_header);
  if (!other.is_object()) return "its first line is not JSON";
  if (other.value("plan", Ordered()) == ours["plan"]) return {};
  if (other.value("tool", Ordered()) != ours["tool"])
    return "it was written by another version of this program";
  const Ordered question = other.value("question", Ordered(Ordered::object()));
  constexpr std::pair<const char*, const char*> kDifferences[] = {
      {"model", "it is about another model"},
      {"machine", "it is about another machine"},
      {"gpus", "it was asked with other --gpus"},
      {"fixed", "it was asked with another --fix"},
      {"settings", "it was asked with another --global-batch, --layout or --fix"},
      {"memory_bytes", "it was asked with another --memory"}};
  for (const auto& [key, difference] : kDifferences) {
    if (question.is_object() && question.value(key, Ordered()) != ours["question"][key])
      return difference;
  }
  return "it was asked with another --calibrate";
}

Ordered bound_json(const LayoutBound& bound) {
  if (!bound.is_served) return {};
  if (!bound.fits) return Ordered::array({bound.reserved});
  const PriceParts& parts = bound.parts;
  return Ordered::array({bound.reserved, bound.us, parts.bubble, parts.network, parts.kernels});
}

std::string block_line(std::size_t block, const std::vector<LayoutBound>& bounds) {
  Ordered line = {{"point", block}, {"bounds", Ordered::array()}};
  for (const LayoutBound& bound : bounds) line["bounds"].push_back(bound_json(bound));
  line["sum"] = hash_digits(json_line(line));
  return line_of(line);
}

LayoutBound read_bound(const Ordered& json) {
  LayoutBound bound;
  bound.is_served = !json.is_null();
  if (!bound.is_served) return bound;
  if (!json.is_array() || !json.at(0).is_number_integer()) throw Error("is not a bound");
  bound.reserved = json.at(0).get<std::int64_t>();
  bound.fits = json.size() > 1;
  if (!bound.fits) return bound;
  bound.us = json.at(1), bound.parts = {json.at(2), json.at(3), json.at(4)};
  return bound;
}

std::vector<LayoutBound> read_block(std::uint64_t block, std::size_t layouts,
                                    std::string_view line) {
  try {
    auto json = try_parse_json<Ordered>(line);
    const Ordered sum = json.at("sum");
    json.erase("sum");
    // A digit of a bound that a disk changed would still be a number.
    if (sum != hash_digits(json_line(json))) throw Error("is damaged: its sum does not match");
    std::vector<LayoutBound> bounds;
    if (json.at("point") != block) throw Error("is another block");
    for (const Ordered& bound : json.at("bounds")) bounds.push_back(read_bound(bound));
    if (bounds.size() != layouts) throw Error("has other layouts");
    return bounds;
  } catch (const nlohmann::json::exception&) {
    throw Error("is not a block of bounds");
  }
}

}  // namespace

std::optional<PlanOutcome> resumable_search(const PlanQuestion& question, const PlanSpace& space,
                                            const StepCalibration& calibration,
                                            const PlanFileOptions& file_options,
                                            const PlanEvents& events,
                                            const std::atomic<bool>& stop) {
  const Shard& shard = file_options.shard;
  PlanSearch search(space, calibration);
  if (search.blocks() < shard.count)
    throw Error(fmt::format(
        "--shard: must be one of at most {}, because there are no more blocks of layouts",
        search.blocks()));
  const std::string header = header_line(question_json(question, space), search.blocks(), shard);
  AnswerFile file(
      path_of_shard(file_options.path, shard),
      {.kind = kPlanAnswers,
       .header = header,
       .difference = [&](const std::string& line) { return difference_of_plans(header, line); },
       .on_known_line =
           [&](std::uint64_t block, std::string_view line) {
             search.set(block, read_block(block, search.layouts(block), line));
           },
       .option = "--keep"},
      file_options.fresh);
  const auto [first, end] = file.points();
  events.begin(file.next() - first, end - file.next());
  search.find(
      file.next(), end,
      [&](std::size_t block, const std::vector<LayoutBound>& bounds) {
        file.add(block_line(block, bounds));
        file.flush();
        events.take();
      },
      stop);
  if (stop || shard.count > 1) return std::nullopt;
  return search.outcome();
}

void merge_plans(const std::vector<std::string>& files, const std::string& output) {
  merge_answers(files, output, kPlanAnswers, false);
}

}  // namespace foretrace
