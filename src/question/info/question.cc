#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/wording.h"
#include "foretrace/answer/census.h"
#include "foretrace/question/examine.h"
#include "question/common/forms.h"
#include "question/common/reading.h"
#include "question/info/rank_shares.h"
#include "question/info/serving_kinds.h"

namespace foretrace {
namespace {

struct Examined {
  std::vector<ExaminedTrace> recordings;
  std::size_t top = 0;  ///< How many kinds of work are listed.
};

RankShares shares_of(const ExaminedTrace& one) {
  return {.trace = &one.trace,
          .steps = one.steps ? &*one.steps : nullptr,
          .breakdown = one.breakdown,
          .communication = one.communication,
          .among = one.among ? &*one.among : nullptr};
}

std::vector<RankShares> shares_of(const Examined& all) {
  std::vector<RankShares> ranks;
  for (const ExaminedTrace& one : all.recordings) ranks.push_back(shares_of(one));
  return ranks;
}

/// Several ranks: a row for each, and what was noted. One rank's own file says the rest.
Document document_of_ranks(const Examined& all) {
  const std::vector<RankShares> ranks = shares_of(all);
  Document document("Recording", "What was recorded");
  const Trace& first = all.recordings.front().trace;
  std::string head =
      fmt::format("{} recorded, of a job of {}", counted(ranks.size(), "rank"), first.world_size);
  if (!first.properties.empty() && !first.properties.front().name.empty())
    head += ", on " + first.properties.front().name;
  document.say(head);
  document.titled("Where the time of a step goes", rank_shares_table(ranks));
  document.section("").say(
      "Communication is what no kernel hides; hidden is the share of its time that kernels hide.");
  document.titled("What was recorded", rank_records_table(ranks));
  document.section("").say(
      "Ask for the file of one rank to see its devices, steps, memory and heaviest kernels; "
      "--format json has them for all ranks.");
  for (const ExaminedTrace& one : all.recordings)
    document.notes(one.trace.notes, fmt::format("Notes of rank {}", one.trace.rank));
  return document;
}

Document document_of(const Examined& all) {
  if (all.recordings.size() > 1) return document_of_ranks(all);
  Document document("Recording", "What was recorded");
  for (const ExaminedTrace& one : all.recordings)
    add_info(one.trace, one.steps ? &*one.steps : nullptr, one.among ? &*one.among : nullptr,
             document, all.top);
  return document;
}

nlohmann::json described(const ExaminedTrace& one, std::size_t top) {
  nlohmann::json object = describe_trace(one.trace, one.steps ? &*one.steps : nullptr,
                                         one.among ? &*one.among : nullptr, top);
  add_rank_shares(shares_of(one), object);
  return object;
}

void complete(Examined& examined) {
  std::vector<ExaminedTrace>& all = examined.recordings;
  if (all.empty() || all.front().trace.has_times)
    all.resize(1);
  else
    all.back().trace.has_times = true;
}

/// Returns one object for one trace, and an array for several.
nlohmann::json to_json(const Examined& examined) {
  const std::vector<ExaminedTrace>& recordings = examined.recordings;
  if (recordings.size() == 1) return described(recordings[0], examined.top);
  nlohmann::json all = nlohmann::json::array();
  for (const ExaminedTrace& one : recordings) all.push_back(described(one, examined.top));
  return all;
}

/// Prints a row for each rank; for an engine that serves, the steps of the first rank, which stands
/// for the others.
void write_csv(const Examined& examined, std::ostream& out) {
  const Trace& first = examined.recordings.front().trace;
  if (serves(first)) return write_steps_csv(first, out);
  write_rank_shares_csv(shares_of(examined), out);
}

class Info final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, trace_);
    fields.integer("top", top_, "How many kernels and copies to list, those that take longest", 1,
                   1'000'000);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<Examined>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    const auto activity = session.begin("reading " + trace_);
    return answer_of(Examined{examine_traces(trace_, reading_.options(session)),
                              static_cast<std::size_t>(top_)});
  }

 private:
  std::string trace_;
  std::int64_t top_ = 10;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_info() { return std::make_unique<Info>(); }

}  // namespace foretrace
