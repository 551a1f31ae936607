#include "import/spool/spool_index.h"

#include <algorithm>
#include <fmt/core.h>

#include "import/common/cuda_words.h"
#include "import/scan/json_scan.h"
#include "import/spool/spool_rows.h"

namespace foretrace {

namespace {

/// Two numbers, and the bytes that follow them.
struct PrefixedBytes {
  std::uint32_t first = 0, second = 0;
  std::string_view rest;
};

bool split(std::string_view body, PrefixedBytes& prefixed) {
  if (body.size() < 8) return false;
  std::memcpy(&prefixed.first, body.data(), 4);
  std::memcpy(&prefixed.second, body.data() + 4, 4);
  prefixed.rest = body.substr(8);
  return true;
}

std::uint64_t key_of_stream(std::uint32_t context, std::uint32_t stream) {
  return (std::uint64_t{context} << 32U) | stream;
}

std::string_view after_padded(std::string_view body, std::size_t bytes) {
  return body.substr(std::min(body.size(), (bytes + 7) / 8 * 8));
}

/// Limit on the numbers of texts, for each byte of the file. Texts are numbered consecutively and
/// take at least 8 bytes each, so a file exceeds this only if it lost fifteen of sixteen texts.
constexpr std::size_t kTextsForAByte = 2;

}  // namespace

SpoolIndex::SpoolIndex(const SpoolFile& file, Trace& trace)
    : header_(file.header()),
      trace_(trace),
      most_texts_(kTextsForAByte * file.size()),
      intern_(trace.names),
      lanes_(trace) {
  damage = file.each_chunk([&](const SpoolFile::Chunk& chunk) { learn(chunk); });
}

void SpoolIndex::learn(const SpoolFile::Chunk& chunk) {
  switch (chunk.kind) {
    case spool::ChunkKind::texts:
      return learn_texts(chunk.body, chunk.count);
    case spool::ChunkKind::facts:
      return learn_facts(chunk.body, chunk.count);
    case spool::ChunkKind::rows:
      rows += chunk.count;
      return learn_rows(chunk.body);
  }
}

void SpoolIndex::learn_texts(std::string_view body, std::uint32_t count) {
  PrefixedBytes text;
  for (; count > 0 && split(body, text); --count) {
    if (text.second > text.rest.size() || text.first >= most_texts_) return;
    if (text.first >= texts_.size())
      texts_.resize(std::min<std::size_t>(text.first + text.first / 2 + 1024, most_texts_));
    texts_[text.first] = valid(text.rest.substr(0, text.second));
    body = after_padded(body, 8 + std::size_t{text.second});
  }
}

/// Returns the text itself if it is ASCII, otherwise a copy in which U+FFFD replaces invalid UTF-8.
std::string_view SpoolIndex::valid(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (plain) return text;
  repaired_.push_back(valid_text(text, invalid_texts));
  return repaired_.back();
}

void SpoolIndex::learn_facts(std::string_view body, std::uint32_t count) {
  PrefixedBytes fact;
  for (; count > 0 && split(body, fact); --count) {
    const std::size_t size = std::size_t{fact.first} + fact.second;
    if (size > fact.rest.size()) return;
    const std::string key(fact.rest.substr(0, fact.first));
    const std::string value(fact.rest.substr(fact.first, fact.second));
    if (key == "problem") {
      problems.push_back(value);
    } else if (key.starts_with("not_recorded.")) {
      not_recorded.push_back(fmt::format("kind {}: {}", key.substr(key.find('.') + 1), value));
    } else {
      facts[key] = value;
    }
    body = after_padded(body, 8 + size);
  }
}

void SpoolIndex::learn_rows(std::string_view body) {
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
        events.push_back(row_as<spool::Event>(row));
        break;
      default:
        break;
    }
  });
}

NameId SpoolIndex::name(std::uint32_t text) {
  if (text == 0) return {};
  if (text >= texts_.size() || texts_[text].data() == nullptr) {
    ++lost_names;
    return intern_.intern("(name lost)");
  }
  if (names_.size() < texts_.size()) names_.resize(texts_.size());
  NameId& known = names_[text];
  if (known == NameId{}) known = intern_.intern(texts_[text]);
  return known;
}

NameId SpoolIndex::call_name(std::uint16_t domain, std::uint32_t callback) {
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

/// Streams are numbered within their context. If two contexts of a device use the same number, the
/// stream of the second context gets a different one.
std::uint16_t SpoolIndex::stream(std::uint32_t device, std::uint32_t context,
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

std::uint16_t SpoolIndex::stream(std::uint32_t context, std::uint32_t number) {
  const auto device = device_of_context_.find(context);
  return stream(device == device_of_context_.end() ? 0 : device->second, context, number);
}

std::uint16_t SpoolIndex::thread(std::uint32_t id) {
  if (id == last_thread_id_) return last_thread_;
  const auto [known, added] = thread_numbers_.try_emplace(id, std::uint16_t{0});
  if (added) known->second = lanes_.thread(static_cast<std::int64_t>(header_.process), id);
  last_thread_id_ = id;
  return last_thread_ = known->second;
}

void SpoolIndex::name_thread(const spool::ThreadName& row) {
  if (row.is_given == 0 && named_by_program_.contains(row.thread)) return;
  if (row.is_given != 0) named_by_program_.insert(row.thread);
  if (row.name < texts_.size())
    lanes_.name_thread(static_cast<std::int64_t>(header_.process), row.thread, texts_[row.name]);
}

std::int64_t sound_time(std::uint64_t time) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62U;
  return static_cast<std::int64_t>(std::min(time, kMax));
}

std::int64_t SpoolIndex::on_device_clock(std::uint64_t monotonic) const {
  if (header_.device_clock == spool::Clock::monotonic || clocks_.empty())
    return sound_time(monotonic);
  // The realtime clock may be set during the recording, so the last reading before the time is
  // used.
  const auto next = std::upper_bound(
      clocks_.begin(), clocks_.end(), monotonic,
      [](std::uint64_t t, const spool::Clocks& read) { return t < read.monotonic; });
  const spool::Clocks& read = next == clocks_.begin() ? clocks_.front() : *std::prev(next);
  return sound_time(monotonic + (read.realtime - read.monotonic));
}

std::int64_t SpoolIndex::base_ns() const {
  if (header_.device_clock != spool::Clock::monotonic || clocks_.empty()) return 0;
  // Converts to the time of day, so that recordings of several machines can be compared.
  const spool::Clocks& read = clocks_.front();
  return static_cast<std::int64_t>(read.realtime - read.monotonic);
}

void SpoolIndex::finish() {
  lanes_.finish();
  std::vector<StreamFlag> flags(trace_.streams.size(), StreamFlag::unknown);
  for (const auto& [key, stream] : streams_) {
    const auto known = flags_.find(key);
    if (known != flags_.end() && stream < flags.size()) flags[stream] = known->second;
  }
  keep_stream_flags(trace_, flags);
}

}  // namespace foretrace
