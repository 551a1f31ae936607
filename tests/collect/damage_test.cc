// A spool that was cut off or changed: intact parts are read, the rest is counted, and nothing else
// happens.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "collect/recording.h"
#include "foretrace/error.h"
#include "foretrace/import.h"

namespace foretrace {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The offsets at which chunks begin, and the end of the file.
std::vector<std::size_t> chunks_of(const std::string& spool) {
  std::vector<std::size_t> places;
  std::size_t at = spool::kHeaderBytes;
  while (at + sizeof(spool::ChunkHeader) <= spool.size()) {
    places.push_back(at);
    spool::ChunkHeader head;
    std::memcpy(static_cast<void*>(&head), spool.data() + at, sizeof head);
    EXPECT_EQ(head.magic, spool::kChunkMagic);
    at += sizeof head + head.bytes;
  }
  EXPECT_EQ(at, spool.size());
  places.push_back(at);
  return places;
}

class Damage : public testing::Test {
 protected:
  Damage()
      : recording_(
            {.program = {"normal", "40"}, .environment = {{"FORETRACE_BUFFER_BYTES", "8192"}}}) {
    if (recording_.spools.empty()) {
      ADD_FAILURE() << "nothing was recorded: " << recording_.ended.err;
      return;
    }
    spool_ = contents_of(recording_.spools[0]);
    whole_ = import_trace(recording_.spools[0]).record_count();
  }

  /// The trace of a changed spool; nullopt if it is refused with a TraceError.
  std::optional<Trace> read(const std::string& changed) const {
    const std::string path = recording_.path("changed.spool");
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    try {
      return import_trace(path);
    } catch (const TraceError& error) {
      EXPECT_NE(std::string(error.what()).find("changed.spool"), std::string::npos);
      return std::nullopt;
    }
  }

  Recording recording_;
  std::string spool_;
  std::size_t whole_ = 0;
};

TEST_F(Damage, ASpoolCutAnywhereGivesItsWholeChunks) {
  const std::vector<std::size_t> chunks = chunks_of(spool_);
  ASSERT_GT(chunks.size(), 10U);
  std::mt19937 random(1);
  std::vector<std::size_t> cuts = {
      0, 7, 8, 100, 4095, 4096, 4097, spool_.size() - 1, spool_.size()};
  for (int i = 0; i < 150; ++i) cuts.push_back(random() % spool_.size());
  std::size_t before = 0;
  std::sort(cuts.begin(), cuts.end());
  for (const std::size_t cut : cuts) {
    const auto trace = read(spool_.substr(0, cut));
    if (cut < sizeof(spool::Header)) {
      EXPECT_FALSE(trace.has_value()) << cut;
      continue;
    }
    ASSERT_TRUE(trace.has_value()) << cut;
    // A longer part of the file never gives fewer records.
    EXPECT_GE(trace->record_count(), before) << cut;
    before = trace->record_count();
  }
  EXPECT_EQ(before, whole_);
}

TEST_F(Damage, AFlippedByteCostsNoMoreThanItsChunk) {
  const std::vector<std::size_t> chunks = chunks_of(spool_);
  std::mt19937 random(2);
  for (int i = 0; i < 400; ++i) {
    const std::size_t place =
        spool::kHeaderBytes + random() % (spool_.size() - spool::kHeaderBytes);
    std::string changed = spool_;
    changed[place] = static_cast<char>(changed[place] ^ (1 << (random() % 8)));
    const auto chunk = std::prev(std::upper_bound(chunks.begin(), chunks.end(), place));
    spool::ChunkHeader head;
    std::memcpy(static_cast<void*>(&head), spool_.data() + *chunk, sizeof head);
    const auto trace = read(changed);
    ASSERT_TRUE(trace.has_value()) << place;
    const bool rows = head.kind == spool::ChunkKind::rows;
    EXPECT_GE(trace->record_count() + (rows ? head.count : 0), whole_) << place;
    EXPECT_EQ(notes_of(*trace)["damaged parts of the spool, left out"], 1) << place;
  }
}

TEST_F(Damage, AFlippedByteOfTheHeaderIsAnAnswerOrAnError) {
  for (std::size_t place = 0; place < sizeof(spool::Header); ++place) {
    std::string changed = spool_;
    changed[place] = static_cast<char>(changed[place] ^ 0x55);
    const auto trace = read(changed);
    if (place >= 16) {
      EXPECT_TRUE(trace.has_value() && trace->record_count() == whole_) << place;
    }
  }
}

TEST_F(Damage, ChunksTornOutOfTheMiddleLeaveTheRest) {
  const std::vector<std::size_t> chunks = chunks_of(spool_);
  for (std::size_t i = 0; i + 1 < chunks.size(); i += 3) {
    spool::ChunkHeader head;
    std::memcpy(static_cast<void*>(&head), spool_.data() + chunks[i], sizeof head);
    // Removes bytes from the middle of a chunk, so that everything after it moves, but by a
    // multiple of 8.
    const std::size_t from = chunks[i] + 4;
    const std::size_t size = (chunks[i + 1] - chunks[i]) / 8 * 8 - 8;
    const auto trace = read(spool_.substr(0, from) + spool_.substr(from + size));
    ASSERT_TRUE(trace.has_value());
    if (head.kind == spool::ChunkKind::rows) {
      EXPECT_GE(trace->record_count() + head.count, whole_);
    }
  }
}

}  // namespace
}  // namespace foretrace
