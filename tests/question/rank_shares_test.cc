#include "question/info/rank_shares.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "foretrace/answer/device_shares.h"
#include "infer/recording.h"

namespace foretrace {
namespace {

//     host    |step 0             step 1             (step 2)
//     stream 0|   cccccc   mm          cccccc                |c, m: computes, a copy
//     stream 1|      nnnnnnnn                 nnnnnnnn       |n: a collective
Recording two_whole_steps() {
  Recording job;
  for (const int step : {0, 1}) {
    const int start = 100 * step;
    const auto correlation = static_cast<std::uint32_t>(10 * step);
    job.step(step, start, 100);
    job.call(0, "cudaLaunchKernel", start + 1, 1, correlation + 1);
    job.call(0, "cudaLaunchKernel", start + 3, 1, correlation + 2);
    job.call(0, "cudaMemcpyAsync", start + 5, 1, correlation + 3);
    job.kernel(0, "gemm", start + 10, 20, correlation + 1);
    job.kernel(1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 20, 30, correlation + 2);
    job.copy(0, CopyDirection::in, "Memcpy HtoD", start + 60, 10, correlation + 3);
  }
  return job;
}

std::string shares_text(const DeviceShares& shares) {
  std::ostringstream text;
  text << shares.kernel_time / 1us << " = " << shares.compute / 1us << " + "
       << shares.non_compute / 1us << " + " << shares.idle / 1us << ", overlap "
       << shares.overlap / 1us << " of " << shares.communication / 1us;
  return text.str();
}

TEST(DeviceShares, DividesTheTimeFromTheFirstStartToTheLastEnd) {
  EXPECT_EQ(shares_text(device_shares(Recording().trace())), "0 = 0 + 0 + 0, overlap 0 of 0");
  Recording job = two_whole_steps();
  job.step(2, 200, 100);
  EXPECT_EQ(shares_text(device_shares(job.trace())), "160 = 40 + 60 + 60, overlap 20 of 60");
}

TEST(DeviceShares, LeavesOutTheLastStepOfSeveral) {
  Recording job = two_whole_steps();
  EXPECT_EQ(shares_text(device_shares(job.trace())), "60 = 20 + 30 + 10, overlap 10 of 30");
  Recording one;
  one.step(1, 0, 100).call(0, "cudaLaunchKernel", 1, 1, 1).kernel(0, "gemm", 5, 20, 1);
  EXPECT_EQ(shares_text(device_shares(one.trace())), "20 = 20 + 0 + 0, overlap 0 of 0");
}

TEST(RankShares, WritesARowForEachRankWithAndWithoutDeviceWork) {
  Recording job = two_whole_steps(), none;
  none.trace().rank = 1;
  std::ostringstream out;
  write_rank_shares_csv({{.trace = &job.trace()}, {.trace = &none.trace()}}, out);
  EXPECT_EQ(out.str(),
            "rank,idle_time(us),compute_time(us),non_compute_time(us),kernel_time(us),"
            "idle_time_pctg,compute_time_pctg,non_compute_time_pctg,comp_comm_overlap_pctg,"
            "step_time_ns,compute_ns,communication_ns,copies_ns,input_ns,host_ns,idle_ns,"
            "unknown_ns,communication_time_ns,hidden_communication\n"
            "0,10.000,20.000,30.000,60.000,16.67,33.33,50.00,33.33,,,,,,,,,,\n"
            "1,,,,,,,,,,,,,,,,,,\n");
}

}  // namespace
}  // namespace foretrace
