#include "base/files/json_file.h"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files/json_events.h"
#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongest = 16'000'000;

/// Refuses a key that an object has twice.
class KeyCheck final : public JsonEvents {
 public:
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second)
      throw Error(fmt::format("\"{}\" is given twice in one object", key));
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  ///< Of the objects that are open.
};

}  // namespace

nlohmann::json parse_json_text(std::string_view text) {
  nlohmann::json json = parse_json<nlohmann::json>(text);
  KeyCheck check;
  nlohmann::json::sax_parse(text, &check);
  return json;
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
