#include "document/page/packed_numbers.h"

#include <string_view>

namespace foretrace {

std::string base64_of(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t at) {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const unsigned three = byte(at) << 16U | byte(at + 1) << 8U | byte(at + 2);
    text += kDigits[three >> 18U];
    text += kDigits[three >> 12U & 63U];
    text += at + 1 < bytes.size() ? kDigits[three >> 6U & 63U] : '=';
    text += at + 2 < bytes.size() ? kDigits[three & 63U] : '=';
  }
  return text;
}

}  // namespace foretrace
