#pragma once

// The level of memory over one step, as a picture of text:
//
//      11.2 GB |          ##^#
//              |        #######
//              |     ###########
//       7.1 GB |#################
//              +-----------------
//               FFFFFFFFFFBBBBBUU   0 ns to 150.2 ms
//
// Each column shows the highest level in its stretch of time; the scale does not begin at 0 where
// most of the memory never moves. Where nearly all happens in a few columns, because the host runs
// far ahead of the device, events take the place of time.

#include <string>

#include "foretrace/answer/memory.h"

namespace foretrace {

constexpr std::size_t kPictureColumns = 64;

/// For the step with the peak, or the whole window if that is in no step. Empty for a window of no
/// length.
std::string level_picture(const MemoryReport& report, std::size_t columns = kPictureColumns,
                          std::size_t rows = 8);

/// Whether that picture is of events, as nearly all happens in an instant of the stretch.
bool is_crowded(const MemoryReport& report);

/// The stretch of time that the picture is of, in words.
std::string pictured_stretch(const MemoryReport& report);

}  // namespace foretrace
