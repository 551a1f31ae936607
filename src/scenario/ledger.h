#pragma once

#include <string_view>
#include <vector>

namespace foretrace {

/// One line of ledger.def.
struct LedgerEntry {
  std::string_view transform;
  double error = 0;         ///< Share of the step time.
  std::string_view source;  ///< Empty for edits that model nothing.
};

const std::vector<LedgerEntry>& ledger();

/// nullptr for a what-if that was never compared with an outcome. `use` may have settings behind a
/// colon.
const LedgerEntry* ledger_entry(std::string_view use);

}  // namespace foretrace
