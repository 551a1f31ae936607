#include "export/torch_memory/pickle_writer.h"

#include <bit>

#include "foretrace/error.h"

namespace foretrace {

namespace {

constexpr std::size_t kFrame = 64 * 1024;
constexpr std::size_t kMaxAtOnce = 1000;
constexpr std::uint64_t kMaxBytes = 1'000'000'000;

}  // namespace

PickleWriter::PickleWriter(std::string path) : path_(std::move(path)), file_(path_) {
  file_.write("\x80\x04");
}

void PickleWriter::before_value() {
  if (open_.empty()) return;
  OpenContainer& open = open_.back();
  if (open.count == kMaxAtOnce * open.per) {
    bytes_ += open.add;
    open.count = 0;
  }
  if (open.count == 0) bytes_ += '(';
  ++open.count;
  if (bytes_.size() > kFrame) flush();
}

void PickleWriter::begin(char make, char add, std::size_t per) {
  write_opcode(make);
  open_.push_back({add, per, 0});
}

void PickleWriter::end() {
  CHECK(!open_.empty());
  const OpenContainer open = open_.back();
  CHECK(open.count % open.per == 0);
  open_.pop_back();
  if (open.count > 0) bytes_ += open.add;
}

void PickleWriter::pair() {
  CHECK(!open_.empty() && open_.back().count >= 2);
  bytes_ += '\x86';
  --open_.back().count;
}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    write_opcode('K');
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    write_opcode('M');
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    write_opcode('J');
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    write_opcode('\x8a');
    bytes_ += '\x08';
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::address(std::uint64_t value) {
  if (value <= INT64_MAX) return integer(static_cast<std::int64_t>(value));
  // One byte more, so that it is not read as a negative number.
  write_opcode('\x8a');
  bytes_ += '\x09';
  little_endian(value, 8);
  bytes_ += '\0';
}

void PickleWriter::real(double value) {
  write_opcode('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i));
}

void PickleWriter::text(std::string_view text) {
  const auto [found, is_new] = texts_.try_emplace(std::string(text), memoized_);
  if (!is_new) return repeat(found->second);
  if (text.size() < 256) {
    write_opcode('\x8c');
    little_endian(text.size(), 1);
  } else {
    write_opcode('X');
    little_endian(text.size(), 4);
  }
  bytes_ += text;
  memoize();
}

std::uint32_t PickleWriter::memoize() {
  bytes_ += '\x94';
  return memoized_++;
}

void PickleWriter::repeat(std::uint32_t number) {
  const bool is_short = number < 256;
  write_opcode(is_short ? 'h' : 'j');
  little_endian(number, is_short ? 1 : 4);
}

/// Writes the buffered bytes as one frame.
void PickleWriter::flush() {
  char head[9] = {'\x95'};
  for (int i = 0; i < 8; ++i)
    head[1 + i] = static_cast<char>(std::uint64_t{bytes_.size()} >> (8 * i));
  written_ += sizeof head + bytes_.size();
  if (written_ > kMaxBytes) {
    throw Error(path_ +
                ": must be smaller than 1 GB for PyTorch's viewer to load it; give a part of "
                "the trace");
  }
  file_.write({head, sizeof head});
  file_.write(bytes_);
  bytes_.clear();
}

void PickleWriter::finish() {
  CHECK(open_.empty());
  bytes_ += '.';
  flush();
  file_.commit();
}

}  // namespace foretrace
