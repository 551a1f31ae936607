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
// Each column shows the highest level in its interval of time. If most of the memory is always in
// use, the scale does not begin at 0. If nearly all events would fall into a few columns, because
// the host runs far ahead of the device, the horizontal axis counts events instead of time.

#include <string>

#include "foretrace/answer/memory.h"

namespace foretrace {

constexpr std::size_t kPictureColumns = 64;

/// Draws the step with the peak, or the whole window if the peak is in no step. Returns an empty
/// text if the window is empty.
std::string level_picture(const MemoryReport& report, std::size_t columns = kPictureColumns,
                          std::size_t rows = 8);

/// Whether the picture counts events, because nearly all of them happen in a small part of its
/// time.
bool is_crowded(const MemoryReport& report);

/// Describes the time that the picture covers.
std::string pictured_range_text(const MemoryReport& report);

}  // namespace foretrace
