#include "analysis/doubt/ledger.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <set>

#include "base/wording.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

/// The pooled error of all kinds counts as this many outcomes of each kind.
constexpr int kPooledOutcomes = 2;
/// An outcome in the user's own ledger counts as much as this many others.
constexpr int kUserWeight = 3;

/// Outcomes of one kind in the user's ledger.
struct UserOutcomes {
  int count = 0;
  double squares = 0;
};

UserOutcomes user_outcomes_of_kind(std::string_view kind,
                                   std::span<const KnownOutcome> user_outcomes) {
  UserOutcomes found;
  for (const KnownOutcome& outcome : user_outcomes) {
    std::set<std::string_view> kinds;
    for (const std::string& use : outcome.transforms) kinds.insert(kind_of(use));
    if (!kinds.contains(kind)) continue;
    ++found.count;
    found.squares += outcome.error * outcome.error / static_cast<double>(kinds.size());
  }
  return found;
}

std::string outcomes_text(int count) {
  return fmt::format("{} {}", count, noun_for(count, "outcome"));
}

std::string known_text(std::string_view kind, const LedgerEntry* entry, const UserOutcomes& user) {
  const bool listed = entry != nullptr && entry->outcomes > 0;
  if (!listed && user.count == 0)
    return fmt::format(
        "{} was never compared with an outcome: its typical error is assumed to be {}, that of all "
        "kinds of what-if together",
        kind, to_share(pooled_error()));
  std::string in_user_ledger;
  if (user.count > 0)
    in_user_ledger =
        fmt::format("by {} in {} of the ledger given",
                    to_share(std::sqrt(user.squares / user.count)), outcomes_text(user.count));
  if (!listed) return fmt::format("{} was typically off {}", kind, in_user_ledger);
  return fmt::format("{} was typically off by {} ({}: {}){}{}", kind, to_share(entry->error),
                     outcomes_text(entry->outcomes), entry->source,
                     in_user_ledger.empty() ? "" : ", and ", in_user_ledger);
}

/// Mean square of the errors of all kinds that were compared.
double pooled_square(std::span<const LedgerEntry> entries) {
  double squares = 0;
  int outcomes = 0;
  for (const LedgerEntry& entry : entries) {
    squares += entry.outcomes * entry.error * entry.error;
    outcomes += entry.outcomes;
  }
  return squares / outcomes;
}

}  // namespace

const LedgerEntry* entry_of(std::span<const LedgerEntry> entries, std::string_view kind) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const LedgerEntry& entry) {
    return entry.transform == kind;
  });
  return found == entries.end() ? nullptr : &*found;
}

const std::vector<LedgerEntry>& ledger() {
  static const std::vector<LedgerEntry> entries = {
#define LEDGER(transform, error, outcomes, source) {#transform, error, outcomes, source},
#include "analysis/doubt/ledger.def"
#undef LEDGER
  };
  return entries;
}

const LedgerEntry* ledger_entry(std::string_view use) { return entry_of(ledger(), kind_of(use)); }

double pooled_error() { return std::sqrt(pooled_square(ledger())); }

KnownErrors known_errors(std::span<const LedgerEntry> entries, const LedgerEntry* entry) {
  if (entry != nullptr && entry->outcomes == 0) return {};
  KnownErrors found{.squares = kPooledOutcomes * pooled_square(entries),
                    .outcomes = kPooledOutcomes};
  if (entry == nullptr) return found;
  found.squares += entry->outcomes * entry->error * entry->error;
  found.outcomes += entry->outcomes;
  return found;
}

ErrorScale error_scale(std::string_view use, std::span<const KnownOutcome> user_outcomes) {
  const std::string_view kind = kind_of(use);
  const LedgerEntry* const entry = ledger_entry(kind);
  const UserOutcomes user = user_outcomes_of_kind(kind, user_outcomes);
  KnownErrors known = known_errors(ledger(), entry);
  known.squares += kUserWeight * user.squares;
  known.outcomes += kUserWeight * user.count;
  if (known.outcomes == 0) return {};
  return {.scale = std::sqrt(known.squares / known.outcomes),
          .outcomes = known.outcomes,
          .text = known_text(kind, entry, user)};
}

int known_outcomes(std::string_view use, std::span<const KnownOutcome> user_outcomes) {
  const LedgerEntry* const entry = ledger_entry(use);
  return (entry == nullptr ? 0 : entry->outcomes) +
         user_outcomes_of_kind(kind_of(use), user_outcomes).count;
}

std::vector<KnownOutcome> read_user_outcomes(const std::string& path) {
  return path.empty() ? std::vector<KnownOutcome>{} : read_ledger(path);
}

}  // namespace foretrace
