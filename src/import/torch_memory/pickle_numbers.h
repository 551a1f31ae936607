#pragma once

// Decodes numbers and texts as pickles write them: little-endian, as decimal text, or escaped.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretrace {

/// An unsigned number of up to eight bytes, little-endian.
std::uint64_t little_endian(std::string_view bytes);

/// A number in two's complement of any length, little-endian. Returns nullopt if it needs more than
/// 64 bits.
std::optional<std::int64_t> twos_complement(std::string_view bytes);
/// The approximate value of a number in two's complement of any length.
double rough_number(std::string_view twos_complement);

/// A double of eight bytes, big-endian.
double big_endian_real(std::string_view bytes);

/// An integer such as "12" or "-3L", modulo 2^64. Returns nullopt if the text is not an integer or
/// needs more than 64 bits.
std::optional<std::int64_t> decimal_integer(std::string_view text);
std::optional<double> decimal_real(std::string_view text);

/// Decodes a text as protocol 0 of Python 2 writes it: 'a\x00b', with its quotes. Returns nullopt
/// if it is malformed.
std::optional<std::string> unquoted(std::string_view text);
/// Decodes \uXXXX and \UXXXXXXXX; reads other bytes as Latin-1. Returns nullopt if it is malformed.
std::optional<std::string> raw_unicode(std::string_view text);

}  // namespace foretrace
