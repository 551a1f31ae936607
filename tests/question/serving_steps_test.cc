#include "foretrace/answer/serving_steps.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

/// A recording of steps: the range on the host lasts 10 times as long as what the device does.
class ServingRecording {
 public:
  ServingRecording() {
    trace_.threads.push_back({});
    trace_.streams.push_back({});
  }
  /// A step whose attention and product last so long, and the next begins right behind it.
  void step(const std::string& name, std::int64_t attention, std::int64_t product) {
    host(name, HostKind::annotation, now_, 10 * (attention + product), 0);
    const auto call = static_cast<std::uint32_t>(++calls_);
    host("cudaGraphLaunch", HostKind::runtime, now_, 5, call);
    device("flash_attention", device_now_, attention, call);
    device("bf16_gemm", device_now_ + attention, product, call);
    device_now_ += attention + product;
    now_ += 10 * (attention + product) + 1;
  }
  const Trace& trace() const { return trace_; }

 private:
  void host(const std::string& name, HostKind kind, std::int64_t start, std::int64_t duration,
            std::uint32_t correlation) {
    HostRecord record;
    record.start_ns = start, record.duration_ns = duration, record.kind = kind;
    record.name = trace_.names.intern(name), record.correlation = correlation;
    trace_.hosts.push_back(record);
  }
  void device(const std::string& name, std::int64_t start, std::int64_t duration,
              std::uint32_t correlation) {
    DeviceRecord record;
    record.start_ns = start, record.duration_ns = duration;
    record.name = trace_.names.intern(name), record.correlation = correlation;
    trace_.devices.push_back(record);
  }
  Trace trace_;
  std::int64_t now_ = 1000, device_now_ = 1'000'000, calls_ = 0;
};

std::string decode(int sequences) {
  return "execute_context_0(0)_generation_" + std::to_string(sequences) + "(" +
         std::to_string(sequences) + ")";
}

TEST(ServingSteps, AreTimedOnTheDeviceByKind) {
  ServingRecording recording;
  for (int i = 0; i < 3; ++i) recording.step(decode(64), 300, 100 + i);
  recording.step("execute_context_1(500)_generation_64(64)", 1000, 3000);
  recording.step(decode(64), 5, 5);  // The last step, which ends with its own work.
  const ServingSteps found = serving_steps_of(recording.trace());
  ASSERT_EQ(found.kinds.size(), 2U);
  EXPECT_EQ(found.kinds[0].name, "mixed, 500 tokens and decode of 64");
  EXPECT_EQ(found.kinds[0].time, 4000ns);
  EXPECT_EQ(found.kinds[1].name, "decode of 64");
  EXPECT_EQ(found.kinds[1].steps, 4);
  EXPECT_EQ(found.kinds[1].time, 401ns);
  EXPECT_EQ(found.kinds[1].work[static_cast<std::size_t>(ServingWork::attention)], 300ns);
  EXPECT_TRUE(found.law.empty());
}

TEST(ServingSteps, TellALawWhereTheyVary) {
  ServingRecording recording;
  for (int i = 1; i <= 20; ++i) recording.step(decode(8 * i), 1000 + 5 * 8 * i, 100);
  const ServingSteps found = serving_steps_of(recording.trace());
  ASSERT_EQ(found.law.size(), 1U);
  EXPECT_EQ(found.law[0].fixed, 1100ns);
  EXPECT_NEAR(found.law[0].per_sequence, 5, 1e-6);
  EXPECT_EQ(found.law[0].per_prompt_token, 0);
  EXPECT_LT(found.law[0].scatter, 1e-6);
  ServingRecording alike;
  for (int i = 1; i <= 20; ++i) alike.step(decode(8), 1000 + i, 100);
  EXPECT_TRUE(serving_steps_of(alike.trace()).law.empty());
}

TEST(ServingSteps, AreComparedKindByKind) {
  ServingRecording before, after;
  for (int i = 0; i < 3; ++i) before.step(decode(64), 300, 100), after.step(decode(64), 348, 100);
  before.step(decode(8), 100, 100), after.step(decode(16), 100, 100);
  const auto changes =
      changes_of_kinds(serving_steps_of(before.trace()), serving_steps_of(after.trace()));
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].name, "decode of 64");
  EXPECT_EQ(changes[0].before, 400ns);
  EXPECT_EQ(changes[0].after, 448ns);
  EXPECT_EQ(changes[0].where, "attention");
  EXPECT_EQ(changes[1].steps_after, 0);
  EXPECT_EQ(changes[2].steps_before, 0);
}

TEST(ServingSteps, MakeATableForServe) {
  ServingRecording recording;
  for (int i = 0; i < 3; ++i) recording.step(decode(64), 300, 100);
  recording.step("execute_context_1(500)_generation_60(60)", 1000, 3000);
  recording.step("execute_600_context_0(sq0sk0sqsq0sqsk0)_generation_8(sq8sk8000sqsq8sqsk8000)",
                 100, 50);
  recording.step(decode(64), 300, 100);
  const std::vector<StepRow> rows = table_of_steps(recording.trace());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].batch, 8);
  EXPECT_EQ(rows[0].context, 960);  // Rounded down, by less than an eighth.
  EXPECT_EQ(rows[0].time, 150ns);
  EXPECT_EQ(rows[1].batch, 64);
  EXPECT_EQ(rows[1].time, 400ns);
  EXPECT_FALSE(rows[2].decodes);
  EXPECT_EQ(rows[2].context, 500);
  EXPECT_EQ(rows[2].time, 3600ns);  // Less a step that decodes about as many.
}

TEST(ServingSteps, AreNoneInOtherRecordings) {
  ServingRecording recording;
  recording.step("ProfilerStep#1", 10, 10);
  EXPECT_TRUE(serving_steps_of(recording.trace()).kinds.empty());
}

}  // namespace
}  // namespace foretrace
