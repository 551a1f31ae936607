// Nothing is lost without being counted: records without room, without times, without disk.

#include <gtest/gtest.h>

#include "collect/recording.h"

namespace foretrace {
namespace {

TEST(Loss, WhatCuptiDropsForWantOfBuffersIsCountedExactly) {
  Recording recording({.options = {"--record", "kernels,api"},
                       .program = {"flood", "300000"},
                       .environment = {{"FORETRACE_BUFFERS", "2"},
                                       {"FORETRACE_BUFFER_BYTES", "65536"},
                                       {"FORETRACE_STANDIN", "worker_us=2000"}}});
  expect_all_accounted(recording);
  EXPECT_GT(recording.spooled().header.dropped_by_cupti, 0U);
  EXPECT_GT(recording.spooled().rows["kernel"], 0U);
  EXPECT_GT(notes_of(recording.trace())["records that CUPTI dropped for lack of buffers"], 0);
}

TEST(Loss, WhereNoBufferWouldCrashCuptiRecordsAreDiscardedAndCounted) {
  Recording recording({.options = {"--record", "kernels,api"},
                       .program = {"flood", "300000"},
                       .environment = {{"FORETRACE_BUFFERS", "2"},
                                       {"FORETRACE_BUFFER_BYTES", "65536"},
                                       {"FORETRACE_STANDIN", "worker_us=2000"}},
                       .cupti = STANDIN_12});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  expect_all_accounted(recording);
  EXPECT_EQ(recording.spooled().header.dropped_by_cupti, 0U);
  EXPECT_GT(recording.spooled().header.discarded_records, 0U);
}

TEST(Loss, KernelsWithoutTimesAreLeftOutAndCounted) {
  Recording recording(
      {.program = {"normal", "50"}, .environment = {{"FORETRACE_STANDIN", "untimed=7"}}});
  expect_all_accounted(recording);
  EXPECT_EQ(recording.emitted["kernel"].untimed, 14U);
  EXPECT_EQ(recording.spooled().header.untimed, 14U);
  EXPECT_EQ(notes_of(recording.trace())["kernels and copies without times, left out"], 14);
  for (const DeviceRecord& record : recording.trace().devices) EXPECT_GT(record.duration_ns, 0);
}

TEST(Loss, ASlowDiskCostsRecordsNotTheProgramsTime) {
  Recording recording({.options = {"--record", "kernels,api"},
                       .program = {"flood", "200000"},
                       .environment = {{"FORETRACE_BUFFERS", "4"},
                                       {"FORETRACE_BUFFER_BYTES", "65536"},
                                       {"LD_PRELOAD", SLOW_DISK},
                                       {"PLAYED_DISK", "us=3000"}}});
  expect_all_accounted(recording);
  EXPECT_GT(recording.spooled().header.dropped_by_cupti, 0U);
}

TEST(Loss, ShortWritesAreGoneOnWith) {
  Recording recording({.program = {"normal", "50"},
                       .environment = {{"LD_PRELOAD", SLOW_DISK}, {"PLAYED_DISK", "short=1"}}});
  expect_all_there(recording);
}

TEST(Loss, AFullDiskIsCountedAndWhatIsThereIsWhole) {
  for (const char* room : {"room=40000", "room=9000", "room=4096"}) {
    SCOPED_TRACE(room);
    Recording recording(
        {.program = {"normal", "500"},
         .environment = {
             {"FORETRACE_FLUSH_MS", "2"}, {"LD_PRELOAD", SLOW_DISK}, {"PLAYED_DISK", room}}});
    expect_all_accounted(recording);
    const Spooled spooled = recording.spooled();
    EXPECT_GT(spooled.header.lost_on_disk, 0U);
    EXPECT_EQ(spooled.header.disk_error, static_cast<std::uint32_t>(ENOSPC));
    EXPECT_EQ(spooled.damaged_chunks, 0U);
    EXPECT_NE(recording.ended.out.find("lost 0"), std::string::npos);
  }
}

TEST(Loss, ALimitOnTheSizeOfFilesIsNoOtherThanAFullDisk) {
  Recording recording({.program = {"full", "500", "40000"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  expect_all_accounted(recording);
  EXPECT_GT(recording.spooled().header.lost_on_disk, 0U);
  EXPECT_EQ(recording.spooled().header.disk_error, static_cast<std::uint32_t>(EFBIG));
}

TEST(Loss, ARecordThatCuptiCannotReadItselfEndsItsBufferAlone) {
  Recording recording({.program = {"threads", "1", "2000"},
                       .environment = {{"FORETRACE_STANDIN", "bad_record=50"},
                                       {"FORETRACE_BUFFER_BYTES", "16384"}}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const Spooled spooled = recording.spooled();
  // The 49 records before each bad one are there, in many buffers, and a note says that some are
  // missing.
  EXPECT_GT(spooled.rows.at("kernel"), 49U);
  EXPECT_LT(spooled.rows.at("kernel"), 2000U);
  EXPECT_EQ(notes_of(recording.trace())["problems of the recording"], 1);
}

}  // namespace
}  // namespace foretrace
