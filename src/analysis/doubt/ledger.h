#pragma once

// The known errors of each kind of what-if. Errors of a kind are assumed to be normal, around 0,
// with a scale estimated from its outcomes; the pooled error of all kinds counts as two more:
//
//     scale^2 = (2 x pooled^2 + sum of squared errors) / outcomes,   outcomes = 2 + known ones
//
// An error drawn with such a scale has Student's distribution. So a kind that was never compared
// has the error of all kinds, with a wide distribution; a kind that was often right has a narrow
// one. An outcome in the user's own ledger counts three times, because it comes from the user's
// machine and jobs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/ledger.h"

namespace foretrace {

/// One line of ledger.def, or of memory_ledger.def.
struct LedgerEntry {
  std::string_view transform;
  double error = 0;         ///< Typical (root of the mean square), as a share of the step time.
  int outcomes = 0;         ///< Number of outcomes behind it; 0 for an edit that models nothing.
  std::string_view source;  ///< Empty for edits that model nothing, and for memory.
};

/// Returns nullptr if the kind is not listed.
const LedgerEntry* entry_of(std::span<const LedgerEntry> entries, std::string_view kind);

/// Known errors of one kind, with the pooled error of all kinds as two more.
struct KnownErrors {
  double squares = 0;  ///< Sum of the squared errors.
  int outcomes = 0;    ///< 0 if the kind is an edit that models nothing.
};
KnownErrors known_errors(std::span<const LedgerEntry> entries, const LedgerEntry* entry);

const std::vector<LedgerEntry>& ledger();

/// Returns nullptr for a what-if that was never compared with an outcome. `use` may have settings
/// after a colon.
const LedgerEntry* ledger_entry(std::string_view use);

/// Typical error of all kinds that were compared.
double pooled_error();

struct ErrorScale {
  double scale = 0;  ///< 0 means exact.
  int outcomes = 0;  ///< Number of outcomes behind the scale.
  std::string text;  ///< "amp was typically off by 8.0 % (5 outcomes: the same factors on ...)".
};
/// The error of the kind of what-if in `use`. An outcome of several transforms counts in equal
/// parts for each.
ErrorScale error_scale(std::string_view use, std::span<const KnownOutcome> user_outcomes);

/// Number of known outcomes of a kind, including the user's own.
int known_outcomes(std::string_view use, std::span<const KnownOutcome> user_outcomes);

/// The outcomes in the user's own ledger; none if `path` is empty. Throws Error as read_ledger().
std::vector<KnownOutcome> read_user_outcomes(const std::string& path);

}  // namespace foretrace
