#include "scenario/ledger.h"

#include <algorithm>

namespace foretrace {

const std::vector<LedgerEntry>& ledger() {
  static const std::vector<LedgerEntry> entries = {
#define LEDGER(transform, error, source) {#transform, error, source},
#include "scenario/ledger.def"
#undef LEDGER
  };
  return entries;
}

const LedgerEntry* ledger_entry(std::string_view use) {
  const std::string_view name = use.substr(0, use.find(':'));
  const auto found = std::find_if(ledger().begin(), ledger().end(), [&](const LedgerEntry& entry) {
    return entry.transform == name;
  });
  return found == ledger().end() ? nullptr : &*found;
}

}  // namespace foretrace
