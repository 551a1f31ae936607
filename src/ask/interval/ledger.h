#pragma once

// The known errors of each kind of what-if. Errors of a kind are taken as normal, around 0, with a
// scale estimated from its outcomes; the pooled error of all kinds counts as two more:
//
//     scale^2 = (2 x pooled^2 + sum of squared errors) / outcomes,   outcomes = 2 + those known
//
// and an error drawn from that has Student's distribution. So a kind that was never compared has
// the error of all kinds, with a wide distribution; one that was often right gets narrow. An
// outcome in the user's own ledger counts three times: it comes from the user's machine and jobs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/ask/ledger.h"

namespace foretrace {

/// One line of ledger.def, or of memory_ledger.def.
struct LedgerEntry {
  std::string_view transform;
  double error = 0;         ///< Typical (root of the mean square), as a share of the step time.
  int outcomes = 0;         ///< How many it comes from; 0: an edit that models nothing.
  std::string_view source;  ///< Empty for edits that model nothing, and for memory.
};

/// nullptr if the kind is not listed.
const LedgerEntry* entry_of(std::span<const LedgerEntry> entries, std::string_view kind);

/// Known errors of one kind, with the pooled error of all kinds as two more.
struct KnownErrors {
  double squares = 0;  ///< Their sum.
  int outcomes = 0;    ///< 0: the kind is an edit that models nothing.
};
KnownErrors known_errors(std::span<const LedgerEntry> entries, const LedgerEntry* entry);

const std::vector<LedgerEntry>& ledger();

/// nullptr for a what-if that was never compared with an outcome. `use` may have settings after a
/// colon.
const LedgerEntry* ledger_entry(std::string_view use);

/// The typical error of all kinds that were compared.
double pooled_error();

struct ErrorScale {
  double scale = 0;  ///< 0: exact.
  int outcomes = 0;  ///< Number of outcomes behind the scale.
  std::string text;  ///< "amp was typically off by 8.0 % (5 outcomes: the same factors on ...)".
};
/// For one kind of what-if. An outcome of several transforms counts in equal parts for each.
ErrorScale error_scale(std::string_view use, std::span<const KnownOutcome> own);

/// How many outcomes of a kind are known, the user's own included.
int known_outcomes(std::string_view use, std::span<const KnownOutcome> own);

/// The outcomes in the user's own ledger; none without a path. Throws Error as read_ledger().
std::vector<KnownOutcome> own_outcomes(const std::string& path);

}  // namespace foretrace
