#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files/json_file.h"
#include "base/files/new_file.h"
#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/ledger.h"
#include "foretrace/transform.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kLedgerSchema = "foretrace.ledger/1";
/// A greater error, of a prediction more than a hundred times too high, is taken for a mistake in
/// the file.
constexpr double kMaxLedgerError = 99;

/// The fields of an entry in the file.
struct EntryFields : Described {
  std::vector<std::string> transforms;
  std::optional<double> error;
  std::int64_t predicted = 0, measured = 0;
  std::string note;

  void describe(Fields& fields) override {
    fields.texts("transforms", transforms, "Names of the transforms applied; settings may follow");
    fields.optional_number("error", error,
                           "predicted / measured - 1; by default computed from the times", -1);
    fields.integer("predicted_ns", predicted, "Step time that was predicted", 0);
    fields.integer("measured_ns", measured, "Step time that was measured", 0);
    fields.text("note", note, "Which job and machine");
  }
};

void check_transforms(const std::vector<std::string>& uses) {
  if (uses.empty()) throw Error("transforms: must name at least one");
  std::vector<std::string_view> known;
  for (const TransformEntry& entry : transforms()) known.push_back(entry.name);
  for (const std::string& use : uses) {
    const std::string name(kind_of(use));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error(
        fmt::format("transforms: there is no transform \"{}\"{}", name, did_you_mean(name, known)));
  }
}

KnownOutcome read_entry(const Json& object) {
  EntryFields fields;
  read_json(object, fields);
  check_transforms(fields.transforms);  // Names are checked first, because times may be missing.
  KnownOutcome outcome{.transforms = std::move(fields.transforms),
                       .error = 0,
                       .predicted = Nanoseconds(fields.predicted),
                       .measured = Nanoseconds(fields.measured),
                       .note = std::move(fields.note)};
  if (fields.error) {
    outcome.error = *fields.error;
  } else {
    outcome.error = outcome_of(outcome.transforms, outcome.predicted, outcome.measured).error;
  }
  check_outcome(outcome);
  return outcome;
}

std::vector<KnownOutcome> read_entries(const Json& file) {
  if (!file.is_object()) throw Error("must be an object with \"schema\" and \"entries\"");
  for (const auto& [key, value] : file.items()) {
    if (key == "schema" || key == "entries" || key == "$comment") continue;
    const std::vector<std::string_view> known = {"schema", "entries", "$comment"};
    throw Error(fmt::format("there is no \"{}\" in a ledger; there are schema, entries{}", key,
                            did_you_mean(key, known)));
  }
  if (!file.contains("schema") || file["schema"] != kLedgerSchema)
    throw Error(fmt::format("schema: must be \"{}\"", kLedgerSchema));
  if (!file.contains("entries") || !file["entries"].is_array())
    throw Error("entries: must be a list");
  std::vector<KnownOutcome> all;
  for (const Json& entry : file["entries"]) {
    all.push_back(
        within(fmt::format("entries[{}]", all.size()), [&] { return read_entry(entry); }));
  }
  return all;
}

}  // namespace

KnownOutcome outcome_of(std::vector<std::string> transforms, Nanoseconds predicted,
                        Nanoseconds measured, std::string note) {
  if (predicted <= 0ns || measured <= 0ns)
    throw Error("predicted_ns and measured_ns: both must be above 0 where no error is given");
  const double error =
      static_cast<double>(predicted.count()) / static_cast<double>(measured.count()) - 1;
  return {std::move(transforms), error, predicted, measured, std::move(note)};
}

void check_outcome(const KnownOutcome& outcome) {
  check_transforms(outcome.transforms);
  if (outcome.error > -1 && outcome.error <= kMaxLedgerError) return;
  throw Error(
      fmt::format("error: must be above -1 and at most 99, as predicted / measured - 1; got {}",
                  to_fixed(outcome.error, 3)));
}

std::vector<KnownOutcome> read_ledger(const std::string& path) {
  const Json file = read_json_file(path);
  return within(path, [&] { return read_entries(file); });
}

Json ledger_json(const std::vector<KnownOutcome>& outcomes) {
  Json entries = Json::array();
  for (const KnownOutcome& outcome : outcomes) {
    entries.push_back({{"transforms", outcome.transforms},
                       {"error", outcome.error},
                       {"predicted_ns", outcome.predicted.count()},
                       {"measured_ns", outcome.measured.count()},
                       {"note", outcome.note}});
  }
  return {{"schema", kLedgerSchema}, {"entries", std::move(entries)}};
}

void write_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes) {
  const std::string text = indented_json(ledger_json(outcomes)) + "\n";
  write_new_file(path, text);
}

void append_to_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes) {
  // An entry that cannot be read back would make the whole file unreadable.
  for (const KnownOutcome& outcome : outcomes) within(path, [&] { check_outcome(outcome); });
  std::vector<KnownOutcome> all;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) all = read_ledger(path);
  all.insert(all.end(), outcomes.begin(), outcomes.end());
  write_ledger(path, all);
}

}  // namespace foretrace
