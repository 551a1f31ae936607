#pragma once

// A record of CUPTI's as a row of the spool. Nothing but the record is looked at, so that it can be
// tested with records made by hand.

#include <cstddef>
#include <cstdint>

#include "collect/cupti/cupti_abi.h"
#include "collect/spool/texts.h"

namespace foretrace::collect {

constexpr std::size_t kMostRowBytes = 64;

struct Decoded {
  std::uint32_t bytes = 0;        ///< The row has this size; 0 if there is none.
  bool is_untimed = false;        ///< A kernel, copy or fill for which CUPTI had no room: no row.
  bool is_unknown = false;        ///< Nobody asked for this kind: no row.
  void* owned_details = nullptr;  ///< The caller has to free this.
};

/// Writes the row of `record`, which has `size` bytes, to `row`.
Decoded decode(const cupti::Activity& record, std::size_t size, Texts& texts,
               char row[kMostRowBytes]);

}  // namespace foretrace::collect
