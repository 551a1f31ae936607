// Decompresses gzip, including several members in a row, with ISA-L if it is installed and zlib
// otherwise.

#include <cstdint>
#include <cstring>
#include <vector>

#include "foretrace/error.h"
#include "import/files/source.h"

#ifdef FORETRACE_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

namespace foretrace {

namespace {

constexpr std::size_t kGzipChunk = 1 << 16;
constexpr const char* kCut = "the gzip data ends in the middle";
constexpr const char* kDamaged = "the gzip data is damaged";

/// The common interface of ISA-L and zlib.
class Inflater {
 public:
  enum class Result { going_on, member_done, damaged };

  Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  void restart();
  /// Takes from `in` and puts into `out`; both shrink by what was used.
  Result run(const std::uint8_t*& in, std::size_t& in_size, char*& out, std::size_t& room);

 private:
#ifdef FORETRACE_HAVE_ISAL
  inflate_state state_;
  /// Kept across calls, because isal_inflate() forgets a header that is split between two inputs.
  isal_gzip_header header_;
  bool in_header_ = true;
#else
  z_stream state_{};
#endif
};

#ifdef FORETRACE_HAVE_ISAL

Inflater::Inflater() {
  isal_inflate_init(&state_);
  restart();
}

Inflater::~Inflater() = default;

void Inflater::restart() {
  isal_inflate_reset(&state_);
  state_.crc_flag = ISAL_GZIP_NO_HDR_VER;
  isal_gzip_header_init(&header_);
  in_header_ = true;
}

Inflater::Result Inflater::run(const std::uint8_t*& in, std::size_t& in_size, char*& out,
                               std::size_t& room) {
  state_.next_in = const_cast<std::uint8_t*>(in);  // ISA-L only reads it.
  state_.avail_in = static_cast<std::uint32_t>(in_size);
  state_.next_out = reinterpret_cast<std::uint8_t*>(out);
  state_.avail_out = static_cast<std::uint32_t>(room);
  int code = in_header_ ? isal_read_gzip_header(&state_, &header_) : ISAL_DECOMP_OK;
  in_header_ = in_header_ && code != ISAL_DECOMP_OK;
  if (code == ISAL_DECOMP_OK) code = isal_inflate(&state_);
  in = state_.next_in;
  in_size = state_.avail_in;
  out = reinterpret_cast<char*>(state_.next_out);
  room = state_.avail_out;
  if (code < 0 || code == ISAL_NEED_DICT) return Result::damaged;
  return state_.block_state == ISAL_BLOCK_FINISH ? Result::member_done : Result::going_on;
}

#else

Inflater::Inflater() {
  if (inflateInit2(&state_, 15 + 16) != Z_OK) throw TraceError("zlib cannot start");
}

Inflater::~Inflater() { inflateEnd(&state_); }

void Inflater::restart() { inflateReset(&state_); }

Inflater::Result Inflater::run(const std::uint8_t*& in, std::size_t& in_size, char*& out,
                               std::size_t& room) {
  state_.next_in = const_cast<std::uint8_t*>(in);
  state_.avail_in = static_cast<uInt>(in_size);
  state_.next_out = reinterpret_cast<std::uint8_t*>(out);
  state_.avail_out = static_cast<uInt>(room);
  const int code = inflate(&state_, Z_NO_FLUSH);
  in = state_.next_in;
  in_size = state_.avail_in;
  out = reinterpret_cast<char*>(state_.next_out);
  room = state_.avail_out;
  if (code == Z_STREAM_END) return Result::member_done;
  return code == Z_OK || code == Z_BUF_ERROR ? Result::going_on : Result::damaged;
}

#endif

class Gzip : public Source {
 public:
  explicit Gzip(std::unique_ptr<Source> compressed)
      : compressed_(std::move(compressed)), chunk_(kGzipChunk) {}

  std::size_t read(char* to, std::size_t room) override {
    char* out = to;
    std::size_t left = std::min(room, std::size_t{1} << 30);
    while (left > 0 && !done_) {
      if (between_members_ && !next_member()) break;
      if (in_size_ == 0) refill();
      const std::size_t in_before = in_size_;
      const std::size_t left_before = left;
      switch (inflater_.run(in_, in_size_, out, left)) {
        case Inflater::Result::member_done:
          between_members_ = true;
          break;
        case Inflater::Result::damaged:
          finish(kDamaged);
          break;
        case Inflater::Result::going_on:
          if (at_end_ && in_before == in_size_ && left_before == left) finish(kCut);
          break;
      }
    }
    return static_cast<std::size_t>(out - to);
  }

  std::string damage() const override { return damage_.empty() ? compressed_->damage() : damage_; }

 private:
  void refill() {
    in_ = chunk_.data();
    in_size_ = compressed_->read(reinterpret_cast<char*>(chunk_.data()), chunk_.size());
    at_end_ = in_size_ == 0;
  }

  /// Starts the next member. Returns false if there is none: at the end, or at padding, which every
  /// gzip ignores.
  bool next_member() {
    if (in_size_ == 1) {
      const std::uint8_t first = *in_;
      chunk_[0] = first;
      const std::size_t got =
          compressed_->read(reinterpret_cast<char*>(chunk_.data()) + 1, chunk_.size() - 1);
      in_ = chunk_.data();
      in_size_ = got + 1;
    } else if (in_size_ == 0) {
      refill();
      if (in_size_ == 1) return next_member();
    }
    if (in_size_ < 2 || in_[0] != 0x1f || in_[1] != 0x8b) {
      done_ = true;
      return false;
    }
    inflater_.restart();
    between_members_ = false;
    return true;
  }

  void finish(const char* damage) {
    done_ = true;
    damage_ = damage;
  }

  std::unique_ptr<Source> compressed_;
  std::vector<std::uint8_t> chunk_;
  Inflater inflater_;
  const std::uint8_t* in_ = nullptr;
  std::size_t in_size_ = 0;
  bool at_end_ = false;
  bool between_members_ = false;
  bool done_ = false;
  std::string damage_;
};

}  // namespace

std::unique_ptr<Source> inflate_gzip(std::unique_ptr<Source> compressed) {
  return std::make_unique<Gzip>(std::move(compressed));
}

}  // namespace foretrace
