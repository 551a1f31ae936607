#pragma once

// Pickles for tests, written opcode by opcode.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace foretrace::pickled {

inline std::string bytes(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string number(std::int64_t value) {
  return "\x8a\x08" + bytes(static_cast<std::uint64_t>(value), 8);
}

inline std::string text(const std::string& value) { return "X" + bytes(value.size(), 4) + value; }

using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string dict(const Members& members) {
  std::string out = "}(";
  for (const auto& [key, value] : members) out += text(key) + value;
  return out + "u";
}

inline std::string list(const std::vector<std::string>& elements) {
  std::string out = "](";
  for (const std::string& element : elements) out += element;
  return out + "e";
}

inline std::string file(const std::string& value) { return "\x80\x04" + value + "."; }

inline std::string frame(const std::string& file_name, std::int64_t line, const std::string& name) {
  return dict({{"filename", text(file_name)}, {"line", number(line)}, {"name", text(name)}});
}

struct Event {
  std::string action;
  std::int64_t address, size, time;
};

inline std::string event(const Event& from, const std::string& frames = "]") {
  return dict({{"action", text(from.action)},
               {"addr", number(from.address)},
               {"size", number(from.size)},
               {"stream", number(0)},
               {"time_us", number(from.time)},
               {"frames", frames}});
}

inline std::string events(const std::vector<Event>& all) {
  std::vector<std::string> out;
  for (const Event& one : all) out.push_back(event(one));
  return list(out);
}

struct Block {
  std::int64_t address, size, requested;
  std::string state;
};

inline std::string segment(std::int64_t address, std::int64_t size, const std::string& type,
                           const std::vector<Block>& blocks, const Members& more = {}) {
  std::vector<std::string> all;
  for (const Block& block : blocks) {
    all.push_back(dict({{"address", number(block.address)},
                        {"size", number(block.size)},
                        {"requested_size", number(block.requested)},
                        {"state", text(block.state)},
                        {"frames", "]"}}));
  }
  Members members = {
      {"device", number(0)}, {"address", number(address)}, {"total_size", number(size)},
      {"stream", number(0)}, {"segment_type", text(type)}, {"is_expandable", "\x89"},
      {"frames", "]"},       {"blocks", list(all)}};
  members.insert(members.end(), more.begin(), more.end());
  return dict(members);
}

inline std::string snapshot(const std::vector<std::string>& segments,
                            const std::vector<std::string>& histories, const Members& more = {}) {
  Members members = {{"segments", list(segments)}, {"device_traces", list(histories)}};
  members.insert(members.end(), more.begin(), more.end());
  return file(dict(members));
}

}  // namespace foretrace::pickled
