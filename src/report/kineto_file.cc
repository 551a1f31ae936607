#include "report/kineto_file.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/version.h"

namespace foretrace {
namespace {

constexpr std::size_t kFlushAt = std::size_t{1} << 20;

}  // namespace

/// Either of the two is open.
struct KinetoFile::Sink {
  std::FILE* plain = nullptr;
  gzFile packed = nullptr;

  explicit Sink(const std::string& path) {
    // Level 3: twice as fast as the default, and 10 % larger.
    if (path.ends_with(".gz")) {
      packed = gzopen(path.c_str(), "wb3");
    } else {
      plain = std::fopen(path.c_str(), "wb");
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() { close(); }

  bool is_open() const { return plain != nullptr || packed != nullptr; }

  bool write(std::string_view text) {
    if (packed != nullptr) {
      return text.empty() || gzwrite(packed, text.data(), static_cast<unsigned>(text.size())) > 0;
    }
    return std::fwrite(text.data(), 1, text.size(), plain) == text.size();
  }

  bool close() {
    bool good = true;
    if (packed != nullptr) good = gzclose(packed) == Z_OK;
    if (plain != nullptr) good = std::fclose(plain) == 0;
    packed = nullptr;
    plain = nullptr;
    return good;
  }
};

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

KinetoFile::KinetoFile(const std::string& path, std::int32_t rank, std::int32_t world_size,
                       const std::vector<std::string>& devices)
    : sink_(std::make_unique<Sink>(path)), path_(path) {
  if (!sink_->is_open()) throw Error("cannot write '" + path + "': " + std::strerror(errno));
  add("{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": "
      "0,\n\"traceName\": ");
  add(json_string(path));
  add(",\n\"producer\": \"foretrace ");
  add(kVersion);
  add("\",\n\"deviceProperties\": [");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    add(i == 0 ? "{\"id\": " : ", {\"id\": ");
    add(static_cast<std::int64_t>(i));
    add(", \"name\": ");
    add(json_string(devices[i]));
    add("}");
  }
  add("],\n\"distributedInfo\": {\"rank\": ");
  add(rank);
  add(", \"world_size\": ");
  add(world_size);
  add("},\n\"traceEvents\": [\n");
}

KinetoFile::~KinetoFile() {
  if (whole_) return;
  sink_->close();
  std::error_code ignored;  // Half a timeline is of no use. A device, such as /dev/full, stays.
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
}

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

void KinetoFile::arrow(bool is_end, std::int64_t id, Track track, Nanoseconds time) {
  begin_event();
  add(is_end ? "{\"ph\": \"f\", \"bp\": \"e\", \"id\": " : "{\"ph\": \"s\", \"id\": ");
  add(id);
  add(", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
  add_place(track);
  add(", \"ts\": ");
  add_time(time);
  add("}");
}

void KinetoFile::name_process(std::int64_t process, std::string_view name, std::int64_t position) {
  const Track track{process, 0};
  begin_event();
  add("{\"ph\": \"M\", \"name\": \"process_name\"");
  add_place(track);
  add(", \"ts\": 0, \"args\": {\"name\": ");
  add(json_string(name));
  add("}}");
  begin_event();
  add("{\"ph\": \"M\", \"name\": \"process_sort_index\"");
  add_place(track);
  add(", \"ts\": 0, \"args\": {\"sort_index\": ");
  add(position);
  add("}}");
}

void KinetoFile::name_thread(Track track, std::string_view name, std::int64_t position) {
  begin_event();
  add("{\"ph\": \"M\", \"name\": \"thread_name\"");
  add_place(track);
  add(", \"ts\": 0, \"args\": {\"name\": ");
  add(json_string(name));
  add("}}");
  begin_event();
  add("{\"ph\": \"M\", \"name\": \"thread_sort_index\"");
  add_place(track);
  add(", \"ts\": 0, \"args\": {\"sort_index\": ");
  add(position);
  add("}}");
}

void KinetoFile::close() {
  add("\n]\n}\n");
  flush();
  if (!sink_->close()) throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  whole_ = true;
}

void KinetoFile::begin_event() {
  if (!first_) add(",\n");
  first_ = false;
}

void KinetoFile::add(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kFlushAt) flush();
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

void KinetoFile::flush() {
  if (!sink_->write(buffer_)) throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  buffer_.clear();
}

}  // namespace foretrace
