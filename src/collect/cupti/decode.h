#pragma once

// Converts a record of CUPTI to a row of the spool. It reads nothing but the record, so that tests
// can use records made by hand.

#include <cstddef>
#include <cstdint>

#include "collect/cupti/cupti_abi.h"
#include "collect/spool/texts.h"

namespace foretrace::collect {

constexpr std::size_t kMaxRowBytes = 72;

struct Decoded {
  std::uint32_t bytes = 0;        ///< Size of the row; 0 if the record makes none.
  bool is_untimed = false;        ///< A kernel, copy or fill without times; it makes no row.
  bool is_unknown = false;        ///< A kind of record that was not requested; it makes no row.
  void* owned_details = nullptr;  ///< The caller must free this.
};

/// Converts `record`, which has `size` bytes, and writes its row to `row`.
Decoded decode(const cupti::Activity& record, std::size_t size, Texts& texts,
               char row[kMaxRowBytes]);

}  // namespace foretrace::collect
