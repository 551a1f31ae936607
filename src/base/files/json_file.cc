#include "base/files/json_file.h"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongest = 16'000'000;

/// Returns line and column of the character at `offset`, counted from 1.
std::string line_and_column(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') ++line, column = 1;
    // A character of several bytes counts once.
    else if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U)
      ++column;
  }
  return fmt::format("line {}, column {}", line, column);
}

/// The library's message without its own numbering: "unexpected end of input; expected ']'".
std::string reason_of(const Json::parse_error& error) {
  std::string text = error.what();
  const std::size_t dash = text.find(" - ");
  if (dash != std::string::npos) return text.substr(dash + 3);
  const std::size_t colon = text.rfind(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace

Json parse_json_text(std::string_view text) {
  // The parser treats a zero byte as the end, and would ignore the rest.
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw Error(line_and_column(text, zero) + ": must be JSON, got a byte that is 0");
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<std::size_t>(std::max(depth, 0));
    if (level > kDeepest) throw Error("must be at most 64 levels deep");
    if (event == Json::parse_event_t::object_start) {
      if (keys.size() <= level + 1) keys.resize(level + 2);
      keys[level + 1].clear();
    }
    if (event == Json::parse_event_t::key &&
        !keys[level].insert(parsed.get<std::string>()).second) {
      throw Error(fmt::format("\"{}\" is given twice in one object", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: must be JSON, got {}",
                            line_and_column(text, error.byte > 0 ? error.byte - 1 : 0),
                            reason_of(error)));
  } catch (const Json::out_of_range&) {
    throw Error("must have numbers that fit 64 bits");
  }
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot be read");
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLongest) throw Error("must be at most 16 MB long");
  }
  if (file.bad() || (text.empty() && !file.eof())) throw Error("cannot be read");
  return text;
}

Json read_json_file(const std::string& path) {
  return within(path, [&] {
    const std::string text = read_text_file(path);
    if (text.empty()) throw Error("must be JSON, but is empty");
    if (text.starts_with("\x1f\x8b")) throw Error("must be JSON, but is packed with gzip");
    return parse_json_text(text);
  });
}

}  // namespace foretrace
