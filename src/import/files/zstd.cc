#include <zstd.h>

#include <string>
#include <vector>

#include "foretrace/error.h"
#include "import/files/source.h"

namespace foretrace {

namespace {

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

/// Reads consecutive frames, as `zstd` and `pzstd` write them.
class Zstd : public Source {
 public:
  explicit Zstd(std::unique_ptr<Source> compressed)
      : compressed_(std::move(compressed)),
        chunk_(ZSTD_DStreamInSize()),
        stream_(ZSTD_createDStream()) {
    if (!stream_) throw TraceError("zstd cannot start");
  }

  std::size_t read(char* to, std::size_t room) override {
    ZSTD_outBuffer out{to, room, 0};
    while (out.pos < out.size && !done_) {
      if (in_.pos == in_.size) {
        in_ = {chunk_.data(), compressed_->read(chunk_.data(), chunk_.size()), 0};
      }
      const bool at_end = in_.size == 0;
      const std::size_t had = out.pos;
      if (at_end && wanted_ == 0) {
        done_ = true;
        break;
      }
      wanted_ = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(wanted_) != 0) {
        finish("the zstd data is damaged");
      } else if (at_end && out.pos == had) {
        finish("the zstd data ends in the middle");
      }
    }
    return out.pos;
  }

  std::string damage() const override { return damage_.empty() ? compressed_->damage() : damage_; }

 private:
  void finish(const char* damage) {
    done_ = true;
    damage_ = damage;
  }

  std::unique_ptr<Source> compressed_;
  std::vector<char> chunk_;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::size_t wanted_ = 1;  ///< 0 if a frame has just ended.
  bool done_ = false;
  std::string damage_;
};

}  // namespace

std::unique_ptr<Source> inflate_zstd(std::unique_ptr<Source> compressed) {
  return std::make_unique<Zstd>(std::move(compressed));
}

}  // namespace foretrace
