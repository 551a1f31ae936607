#include "export/kineto/kineto_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace foretrace {

void KinetoFile::member(std::string_view key, std::string_view json) {
  add(first_member_ ? "{\n" : ",\n");
  first_member_ = false;
  add(json_string(key));
  add(": ");
  add(json);
}

void KinetoFile::begin_events() { member("traceEvents", "[\n"); }

void KinetoFile::complete(std::string_view category, std::string_view name, Track track,
                          Nanoseconds start, Nanoseconds finish, std::string_view arguments) {
  begin_event();
  add("{\"ph\": \"X\", \"cat\": \"");
  add(category);
  add("\", \"name\": ");
  add(name);
  add_place(track);
  add(", \"ts\": ");
  add_time(start);
  add(", \"dur\": ");
  add_time(finish - start);
  if (!arguments.empty()) {
    add(", \"args\": {");
    add(arguments);
    add("}");
  }
  add("}");
}

void KinetoFile::instant(std::string_view category, std::string_view name, Track track,
                         Nanoseconds time, std::string_view arguments) {
  begin_event();
  add("{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"");
  add(category);
  add("\", \"name\": ");
  add(name);
  add_place(track);
  add(", \"ts\": ");
  add_time(time);
  add(", \"args\": {");
  add(arguments);
  add("}}");
}

void KinetoFile::arrow(bool is_end, std::int64_t id, Track track, Nanoseconds time,
                       std::string_view category) {
  begin_event();
  add(is_end ? "{\"ph\": \"f\", \"bp\": \"e\", \"id\": " : "{\"ph\": \"s\", \"id\": ");
  add(id);
  add(", \"cat\": \"");
  add(category);
  add("\", \"name\": \"");
  add(category);
  add("\"");
  add_place(track);
  add(", \"ts\": ");
  add_time(time);
  add("}");
}

void KinetoFile::describe(std::string_view what, Track track, std::string_view key,
                          std::string_view json) {
  begin_event();
  add("{\"ph\": \"M\", \"name\": \"");
  add(what);
  add("\"");
  add_place(track);
  add(", \"ts\": 0, \"args\": {\"");
  add(key);
  add("\": ");
  add(json);
  add("}}");
}

void KinetoFile::name_process(std::int64_t process, std::string_view name, std::int64_t position) {
  describe("process_name", {process, 0}, "name", json_string(name));
  describe("process_sort_index", {process, 0}, "sort_index", std::to_string(position));
}

void KinetoFile::name_thread(Track track, std::string_view name, std::int64_t position) {
  describe("thread_name", track, "name", json_string(name));
  describe("thread_sort_index", track, "sort_index", std::to_string(position));
}

void KinetoFile::close() {
  add("\n]\n}\n");
  file_.close();
}

void KinetoFile::begin_event() {
  if (!first_) add(",\n");
  first_ = false;
}

void KinetoFile::add(std::int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  add({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void KinetoFile::add_time(Nanoseconds time) {
  const std::int64_t count = time.count();
  const auto size =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  if (count < 0) add("-");
  add(static_cast<std::int64_t>(size / 1000));
  const auto rest = static_cast<unsigned>(size % 1000);
  const std::array<char, 4> decimals = {'.', static_cast<char>('0' + rest / 100),
                                        static_cast<char>('0' + rest / 10 % 10),
                                        static_cast<char>('0' + rest % 10)};
  add({decimals.data(), decimals.size()});
}

void KinetoFile::add_place(Track track) {
  add(", \"pid\": ");
  add(track.process);
  add(", \"tid\": ");
  add(track.thread);
}

bool is_json(std::string_view text) {
  return !nests_too_deeply(text) && nlohmann::json::accept(text);
}

std::string kineto_value(std::string_view text) {
  const bool structured = !text.empty() && (text.front() == '[' || text.front() == '{');
  return structured && is_json(text) ? std::string(text) : json_string(text);
}

}  // namespace foretrace
