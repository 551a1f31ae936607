#include "scenario/interval/ledger.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace foretrace {
namespace {

constexpr int kPooledOutcomes = 2;
/// For how many of others an outcome in the user's own ledger counts.
constexpr int kOwnWeight = 3;

std::string_view kind_of(std::string_view use) { return use.substr(0, use.find(':')); }

/// What the user's ledger says of one kind.
struct OwnOutcomes {
  int count = 0;
  double squares = 0;
};

OwnOutcomes own_of_kind(std::string_view kind, std::span<const KnownOutcome> own) {
  OwnOutcomes found;
  for (const KnownOutcome& outcome : own) {
    std::set<std::string_view> kinds;
    for (const std::string& use : outcome.transforms) kinds.insert(kind_of(use));
    if (!kinds.contains(kind)) continue;
    ++found.count;
    found.squares += outcome.error * outcome.error / static_cast<double>(kinds.size());
  }
  return found;
}

std::string off_by(double error) { return to_fixed(100 * error, 1) + " %"; }

std::string outcomes_text(int count) {
  return std::to_string(count) + (count == 1 ? " outcome" : " outcomes");
}

std::string known_text(std::string_view kind, const LedgerEntry* entry, const OwnOutcomes& own) {
  std::string text(kind);
  const bool listed = entry != nullptr && entry->outcomes > 0;
  if (listed) {
    text += " was typically off by " + off_by(entry->error) + " (" +
            outcomes_text(entry->outcomes) + ": " + std::string(entry->source) + ")";
  } else if (own.count == 0) {
    text += " was never compared with an outcome: it is taken to be off by " +
            off_by(pooled_error()) + " typically, as all kinds of what-if are";
  }
  if (own.count > 0) {
    text += std::string(listed ? ", and" : " was typically off") + " by " +
            off_by(std::sqrt(own.squares / own.count)) + " in " + outcomes_text(own.count) +
            " of the ledger given";
  }
  return text;
}

}  // namespace

const std::vector<LedgerEntry>& ledger() {
  static const std::vector<LedgerEntry> entries = {
#define LEDGER(transform, error, outcomes, source) {#transform, error, outcomes, source},
#include "scenario/interval/ledger.def"
#undef LEDGER
  };
  return entries;
}

const LedgerEntry* ledger_entry(std::string_view use) {
  const std::string_view name = kind_of(use);
  const auto found = std::find_if(ledger().begin(), ledger().end(), [&](const LedgerEntry& entry) {
    return entry.transform == name;
  });
  return found == ledger().end() ? nullptr : &*found;
}

double pooled_error() {
  double squares = 0;
  int outcomes = 0;
  for (const LedgerEntry& entry : ledger()) {
    squares += entry.outcomes * entry.error * entry.error;
    outcomes += entry.outcomes;
  }
  return std::sqrt(squares / outcomes);
}

ErrorScale error_scale(std::string_view use, std::span<const KnownOutcome> own) {
  const std::string_view kind = kind_of(use);
  const LedgerEntry* const entry = ledger_entry(kind);
  const OwnOutcomes mine = own_of_kind(kind, own);
  ErrorScale found;
  const bool exact = entry != nullptr && entry->outcomes == 0;
  if (exact && mine.count == 0) return found;
  double squares = kOwnWeight * mine.squares;
  found.outcomes = kOwnWeight * mine.count;
  if (!exact) {
    squares += kPooledOutcomes * pooled_error() * pooled_error();
    found.outcomes += kPooledOutcomes;
    if (entry != nullptr) {
      squares += entry->outcomes * entry->error * entry->error;
      found.outcomes += entry->outcomes;
    }
  }
  found.scale = std::sqrt(squares / found.outcomes);
  found.text = known_text(kind, entry, mine);
  return found;
}

int known_outcomes(std::string_view use, std::span<const KnownOutcome> own) {
  const LedgerEntry* const entry = ledger_entry(use);
  return (entry == nullptr ? 0 : entry->outcomes) + own_of_kind(kind_of(use), own).count;
}

std::vector<KnownOutcome> own_outcomes(const std::string& path) {
  return path.empty() ? std::vector<KnownOutcome>{} : read_ledger(path);
}

}  // namespace foretrace
