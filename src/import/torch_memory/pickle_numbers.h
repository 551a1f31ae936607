#pragma once

// How pickles write numbers and texts: little-endian, as decimal text, or escaped.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretrace {

/// Up to eight bytes, little-endian.
std::uint64_t little_endian(std::string_view bytes);

/// Two's complement of any length, modulo 2^64; nothing if the number needs more than 64 bits.
std::optional<std::int64_t> twos_complement(std::string_view bytes);
/// The same as a number that need not be exact.
double rough_number(std::string_view twos_complement);

/// A double of eight bytes, big-endian.
double big_endian_real(std::string_view bytes);

/// "12", "-3L"; empty if it is not an integer or needs more than 64 bits.
std::optional<std::int64_t> decimal_integer(std::string_view text);
std::optional<double> decimal_real(std::string_view text);

/// Text as protocol 0 of Python 2 writes it: 'a\x00b', with its quotes. Empty if it is malformed.
std::optional<std::string> unquoted(std::string_view text);
/// Undoes \uXXXX and \UXXXXXXXX; other bytes are read as Latin-1. Empty if it is malformed.
std::optional<std::string> raw_unicode(std::string_view text);

}  // namespace foretrace
