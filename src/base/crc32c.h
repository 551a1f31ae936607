#pragma once

// CRC-32C (Castagnoli, as in iSCSI), computed by the processor's own instruction if it has one.

#include <cstddef>
#include <cstdint>

namespace foretrace {

/// Checksum of `size` bytes at `data`, continued from `crc`, the result for the bytes before.
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0);

}  // namespace foretrace
