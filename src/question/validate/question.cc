#include <variant>

#include "foretrace/error.h"
#include "foretrace/question/examine.h"
#include "foretrace/question/pairs.h"
#include "foretrace/question/predict.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

using ValidatedRanks = std::vector<ValidatedRank>;

/// How far predictions from traces can be trusted, or how those of known pairs turned out.
struct ValidationAnswer {
  std::variant<ValidatedRanks, PairsReport> found;
};

Document document_of(const ValidationAnswer& answer) {
  return std::visit([](const auto& one) { return foretrace::document_of(one); }, answer.found);
}
nlohmann::json to_json(const ValidationAnswer& answer) {
  return std::visit([](const auto& one) { return foretrace::to_json(one); }, answer.found);
}

class Validate final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "TRACE", .is_positional = true})
        .texts("trace", traces_,
               "Traces, or folders with the traces of all ranks; without any: check the shipped "
               "pairs");
    fields.as({.value = "TRACE"})
        .text("against", against_, "Take the work from this other recording of the same job");
    fields.path("pairs", pairs_,
                "Compare predictions with the outcomes of these before/after pairs: a list "
                "(foretrace.pairs/1) or traces/ground_truth.json");
    fields.as({.value = "FOLDER"})
        .path("traces", folder_, "Folder with the recordings of the pairs");
    fields.path("ledger", ledger_,
                "Your own ledger of outcomes, which widens or narrows the intervals");
    fields.as({.value = "OUT"})
        .path("write_ledger", written_ledger_,
              "Also write the outcomes of the pairs as a ledger, for predict --ledger");
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<ValidationAnswer>(); }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (traces_.empty()) return ask_pairs(session);
    for (const auto& [name, value] :
         {std::pair("--pairs", pairs_), std::pair("--traces", folder_),
          std::pair("--ledger", ledger_), std::pair("--write-ledger", written_ledger_)}) {
      if (!value.empty())
        throw Error(std::string(name) + ": is about pairs of recordings; leave out the TRACE");
    }
    ValidatedRanks ranks;
    ExitCode code = kAnswered;
    for (const std::string& path : traces_) {
      const auto activity = session.begin("validating " + path);
      for (ValidatedRank& rank : validate_trace(path, against_, reading_.options(session))) {
        if (!rank.broken().empty()) code = kCheckFailed;
        ranks.push_back(std::move(rank));
      }
    }
    return answer_of(ValidationAnswer{std::move(ranks)}, code);
  }

 private:
  std::unique_ptr<Answer> ask_pairs(Session& session) const {
    if (!against_.empty()) throw Error("--against: needs a TRACE to compare with");
    const auto activity = session.begin("comparing pairs");
    PairsReport report = compare_pairs(
        pairs_.empty() ? shipped_pairs(folder_) : std::vector{read_pairs(pairs_, folder_)},
        {.reading = reading_.options(session), .ledger_path = ledger_});
    if (!written_ledger_.empty()) write_ledger(written_ledger_, outcomes_of(report));
    return answer_of(ValidationAnswer{std::move(report)});
  }

  std::vector<std::string> traces_;
  std::string against_, pairs_, folder_, ledger_, written_ledger_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_validate() { return std::make_unique<Validate>(); }

}  // namespace foretrace
