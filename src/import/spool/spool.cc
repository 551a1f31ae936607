// Names, threads, streams, clocks and facts of a spool. The rows are in spool_rows.cc, their joins
// in spool_joins.cc.

#include "import/spool/spool.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/json_string.h"
#include "foretrace/error.h"
#include "import/common/cuda_words.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/scan/json_scan.h"
#include "import/spool/spool_rows.h"

namespace foretrace {

bool recognizes_spool(const Sniffed& file) {
  return file.head.substr(0, spool::kMagic.size()) ==
         std::string_view(spool::kMagic.data(), spool::kMagic.size());
}

Trace read_spool(const TraceFile& input) {
  return within(input.path(), [&] { return SpoolReader(input).read(); });
}

SpoolReader::SpoolReader(const TraceFile& input)
    : file_(input), intern_(trace_.names), lanes_(trace_) {}

Trace SpoolReader::read() {
  trace_.format = "collect";
  damage_ = file_.each_chunk([&](const SpoolFile::Chunk& chunk) { learn(chunk); });
  make_room();
  file_.each_chunk([&](const SpoolFile::Chunk& chunk) {
    if (chunk.kind == spool::ChunkKind::rows) take(chunk.body);
  });
  close_ranges();
  join_inner_calls();
  drop_records();
  resolve_events();
  clone_edges();
  orient_edges();
  make_relative();
  describe_collectives();
  lanes_.finish();
  write_facts();
  write_stream_flags();
  write_notes();
  return std::move(trace_);
}

/// Tables that grow are copied again and again; these are large.
void SpoolReader::make_room() {
  const auto count = [&](spool::RowKind kind) {
    return row_counts_[static_cast<std::size_t>(kind)];
  };
  trace_.devices.reserve(count(spool::RowKind::kernel) + count(spool::RowKind::transfer));
  trace_.hosts.reserve(count(spool::RowKind::call) + count(spool::RowKind::range_push) +
                       count(spool::RowKind::range_start) + count(spool::RowKind::mark) +
                       count(spool::RowKind::overhead));
  trace_.memory.reserve(count(spool::RowKind::block) + count(spool::RowKind::device_memory));
  trace_.syncs.reserve(count(spool::RowKind::sync));
}

void SpoolReader::learn(const SpoolFile::Chunk& chunk) {
  switch (chunk.kind) {
    case spool::ChunkKind::texts:
      return learn_texts(chunk.body, chunk.count);
    case spool::ChunkKind::facts:
      return learn_facts(chunk.body, chunk.count);
    case spool::ChunkKind::rows:
      rows_ += chunk.count;
      return learn_rows(chunk.body);
  }
}

namespace {

/// Two numbers before a text, and where the next begins.
struct Prefixed {
  std::uint32_t first = 0, second = 0;
  std::string_view rest;
};

bool split(std::string_view body, Prefixed& prefixed) {
  if (body.size() < 8) return false;
  std::memcpy(&prefixed.first, body.data(), 4);
  std::memcpy(&prefixed.second, body.data() + 4, 4);
  prefixed.rest = body.substr(8);
  return true;
}

std::uint64_t key_of_stream(std::uint32_t context, std::uint32_t stream) {
  return (std::uint64_t{context} << 32U) | stream;
}

std::string_view behind(std::string_view body, std::size_t bytes) {
  return body.substr(std::min(body.size(), (bytes + 7) / 8 * 8));
}

}  // namespace

void SpoolReader::learn_texts(std::string_view body, std::uint32_t count) {
  // Numbers are given one after the other, so there cannot be many more than there are bytes.
  constexpr std::uint32_t kMostTexts = 1U << 26;
  Prefixed text;
  for (; count > 0 && split(body, text); --count) {
    if (text.second > text.rest.size() || text.first > kMostTexts) return;
    if (text.first >= texts_.size()) texts_.resize(text.first + text.first / 2 + 1024);
    texts_[text.first] = valid(text.rest.substr(0, text.second));
    body = behind(body, 8 + std::size_t{text.second});
  }
}

/// The same text if it is UTF-8, else its valid part.
std::string_view SpoolReader::valid(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (plain) return text;
  repaired_.push_back(valid_text(text, invalid_texts_));
  return repaired_.back();
}

void SpoolReader::learn_facts(std::string_view body, std::uint32_t count) {
  Prefixed fact;
  for (; count > 0 && split(body, fact); --count) {
    const std::size_t size = std::size_t{fact.first} + fact.second;
    if (size > fact.rest.size()) return;
    const std::string key(fact.rest.substr(0, fact.first));
    const std::string value(fact.rest.substr(fact.first, fact.second));
    if (key == "problem") {
      problems_.push_back(value);
    } else if (key.starts_with("not_recorded.")) {
      not_recorded_.push_back("kind " + key.substr(key.find('.') + 1) + ": " + value);
    } else {
      facts_[key] = value;
    }
    body = behind(body, 8 + size);
  }
}

void SpoolReader::learn_rows(std::string_view body) {
  each_row(body, [&](spool::RowKind kind, const char* row) {
    ++row_counts_[static_cast<std::size_t>(kind)];
    switch (kind) {
      case spool::RowKind::context: {
        const auto context = row_as<spool::Context>(row);
        device_of_context_[context.context] = context.device;
        flags_[key_of_stream(context.context, context.null_stream)] = StreamFlag::null;
        break;
      }
      case spool::RowKind::stream: {
        const auto stream = row_as<spool::Stream>(row);
        flags_.emplace(key_of_stream(stream.context, stream.stream), stream_flag_of(stream.flag));
        break;
      }
      case spool::RowKind::call_name: {
        const auto call = row_as<spool::CallName>(row);
        if (call.domain < std::size(call_names_) && call.callback < 65536) {
          std::vector<std::uint32_t>& names = call_texts_[call.domain];
          if (names.size() <= call.callback) names.resize(call.callback + 1);
          names[call.callback] = call.name;
        }
        break;
      }
      case spool::RowKind::clocks:
        clocks_.push_back(row_as<spool::Clocks>(row));
        break;
      case spool::RowKind::event:
        events_.push_back(row_as<spool::Event>(row));
        break;
      default:
        break;
    }
  });
}

NameId SpoolReader::name(std::uint32_t text) {
  if (text == 0) return {};
  if (text >= texts_.size() || texts_[text].data() == nullptr) {
    ++unexplained_;
    return intern_.intern("(name lost)");
  }
  if (names_.size() < texts_.size()) names_.resize(texts_.size());
  NameId& known = names_[text];
  if (known == NameId{}) known = intern_.intern(texts_[text]);
  return known;
}

NameId SpoolReader::call_name(std::uint16_t domain, std::uint32_t callback) {
  if (domain >= std::size(call_names_) || callback >= 65536) return {};
  std::vector<NameId>& known = call_names_[domain];
  if (known.size() <= callback) known.resize(callback + 1);
  if (known[callback] != NameId{}) return known[callback];
  const std::vector<std::uint32_t>& texts = call_texts_[domain];
  const std::uint32_t text = callback < texts.size() ? texts[callback] : 0;
  if (text != 0 && text < texts_.size() && texts_[text].data() != nullptr) {
    known[callback] = intern_.intern(without_version(texts_[text]));
  } else {
    known[callback] =
        intern_.intern((domain == 2 ? "runtime call " : "driver call ") + std::to_string(callback));
  }
  return known[callback];
}

/// Streams are numbered within their context. Where two contexts of a device use the same number,
/// those of the second get one of their own.
std::uint16_t SpoolReader::stream(std::uint32_t device, std::uint32_t context,
                                  std::uint32_t number) {
  const std::uint64_t key = key_of_stream(context, number);
  if (key == last_stream_key_) return last_stream_;
  const auto [known, added] = streams_.try_emplace(key, std::uint16_t{0});
  if (added) {
    const std::uint64_t shared = (std::uint64_t{device} << 32U) | number;
    const auto [owner, is_first] = owner_of_stream_.try_emplace(shared, context);
    const bool alone = is_first || owner->second == context;
    known->second = lanes_.stream(
        device, alone ? std::int64_t{number} : std::int64_t{context} * 1'000'000 + number);
  }
  last_stream_key_ = key;
  return last_stream_ = known->second;
}

std::uint16_t SpoolReader::thread(std::uint32_t id) {
  if (id == last_thread_id_) return last_thread_;
  const auto [known, added] = thread_numbers_.try_emplace(id, std::uint16_t{0});
  if (added) known->second = lanes_.thread(static_cast<std::int64_t>(file_.header().process), id);
  last_thread_id_ = id;
  return last_thread_ = known->second;
}

std::int64_t SpoolReader::sound_time(std::uint64_t time) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;
  return static_cast<std::int64_t>(std::min(time, kMost));
}

std::int64_t SpoolReader::on_device_clock(std::uint64_t monotonic) const {
  if (file_.header().device_clock == spool::Clock::monotonic || clocks_.empty())
    return sound_time(monotonic);
  // The clock of the day may be set while it runs: the last reading before counts.
  const auto next = std::upper_bound(
      clocks_.begin(), clocks_.end(), monotonic,
      [](std::uint64_t t, const spool::Clocks& read) { return t < read.monotonic; });
  const spool::Clocks& read = next == clocks_.begin() ? clocks_.front() : *std::prev(next);
  return sound_time(monotonic + (read.realtime - read.monotonic));
}

void SpoolReader::make_relative() {
  std::int64_t base_ns = 0;
  if (file_.header().device_clock == spool::Clock::monotonic && !clocks_.empty()) {
    // The time of day, so that recordings of several machines can be laid side by side.
    const spool::Clocks& read = clocks_.front();
    base_ns = static_cast<std::int64_t>(read.realtime - read.monotonic);
  }
  make_times_relative(trace_, base_ns);
}

namespace {

std::int32_t number_of(const std::unordered_map<std::string, std::string>& facts,
                       const std::string& key, std::int32_t otherwise) {
  const auto found = facts.find(key);
  if (found == facts.end()) return otherwise;
  std::int32_t number = otherwise;
  const std::string& text = found->second;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? number : otherwise;
}

}  // namespace

void SpoolReader::write_facts() {
  const std::int32_t rank = number_of(facts_, "rank", -1);
  const std::int32_t world = number_of(facts_, "world_size", -1);
  if (rank >= 0 && world > rank) {
    trace_.rank = rank;
    trace_.world_size = world;
    trace_.rank_is_known = true;
    trace_.metadata["distributedInfo"] =
        "{\"rank\":" + std::to_string(rank) + ",\"world_size\":" + std::to_string(world) + "}";
  }
  for (const auto& [key, value] : facts_) trace_.metadata[key] = json_string(value);
  const spool::Header& header = file_.header();
  trace_.metadata["process"] = std::to_string(header.process);
  trace_.metadata["cupti_version"] = std::to_string(header.cupti_version);
}

void SpoolReader::write_stream_flags() {
  std::vector<StreamFlag> flags(trace_.streams.size(), StreamFlag::unknown);
  for (const auto& [key, stream] : streams_) {
    const auto known = flags_.find(key);
    if (known != flags_.end() && stream < flags.size()) flags[stream] = known->second;
  }
  keep_stream_flags(trace_, flags);
}

void SpoolReader::write_notes() {
  const spool::Header& header = file_.header();
  const auto warn = [&](std::string_view text, std::uint64_t count, const std::string& example) {
    // A damaged header may count anything.
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (count != 0)
      trace_.notes.add(Severity::warning, text, example,
                       static_cast<std::int64_t>(std::min(count, kMost)));
  };
  const auto tell = [&](std::string_view text, std::int64_t count) {
    if (count != 0) trace_.notes.add(Severity::info, text, {}, count);
  };
  for (const std::string& problem : problems_)
    trace_.notes.add(Severity::warning, "problems of the recording", problem);
  for (const std::string& kind : not_recorded_)
    trace_.notes.add(Severity::warning, "kinds of records that CUPTI refused", kind);
  warn("records that CUPTI dropped for want of buffers", header.dropped_by_cupti, {});
  warn("records given back unread for want of memory", header.discarded_records, {});
  warn("records that could not be written", header.lost_on_disk,
       header.disk_error == 0 ? "" : std::strerror(static_cast<int>(header.disk_error)));
  warn("kernels and copies without times, left out", header.untimed, {});
  if (header.unknown_records != 0)
    tell("records of unknown kinds", static_cast<std::int64_t>(header.unknown_records));
  const std::string place =
      damage_.first_at < 0 ? std::string() : "at byte " + std::to_string(damage_.first_at);
  // A recording that was cut off may end anywhere; one that ended properly may not.
  const bool cut = damage_.ends_in_a_chunk && header.state == spool::State::finished;
  const std::int64_t damaged = damage_.chunks + (cut ? 1 : 0);
  warn("damaged parts of the spool, left out", static_cast<std::uint64_t>(damaged),
       place + (damage_.rows == 0 ? "" : ", " + std::to_string(damage_.rows) + " records"));
  // The header is written after the rows that it counts.
  const std::uint64_t found = rows_ + static_cast<std::uint64_t>(damage_.rows);
  warn("records that were written and are gone: the spool is cut off or damaged",
       header.rows > found ? header.rows - found : 0, {});
  if (header.state == spool::State::recording)
    tell("the program did not end the recording properly: up to a second is missing", 1);
  warn("names that were lost", static_cast<std::uint64_t>(unexplained_), {});
  warn("texts that are not valid UTF-8", static_cast<std::uint64_t>(invalid_texts_), {});
  warn("records that end before they start, read as 0 long", static_cast<std::uint64_t>(backwards_),
       {});
  warn("parts of the spool with records of unknown kinds", static_cast<std::uint64_t>(odd_rows_),
       {});
  tell("ranges without an end, ended with the recording", open_ranges_);
  tell("steps without an end, left out", open_steps_);
  tell("ends of ranges that began before the recording", stray_ends_);
}

}  // namespace foretrace
