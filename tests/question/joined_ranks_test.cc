// Recorded jobs of several ranks, replayed together.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/check.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/verification.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "foretrace/question/check.h"
#include "foretrace/question/diff.h"
#include "foretrace/question/examine.h"
#include "foretrace/question/predict.h"
#include "foretrace/question/verify.h"
#include "job/apply.h"
#include "job/job.h"
#include "question/predict/baseline.h"
#include "support/corpus.h"
#include "support/folder.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// The empty string without a corpus.
std::string corpus_path(const std::string& name) {
  const char* folder = std::getenv("FORETRACE_CORPUS");
  return folder == nullptr ? "" : (fs::path(folder) / name).string();
}

/// Puts the files of a corpus folder whose names begin with `begin` into a folder of their own.
std::string folder_of(const Folder& folder, const std::string& name, const std::string& begin) {
  const fs::path to = fs::path(folder.path()) / begin;
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(corpus_path(name))) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(begin)) fs::copy_file(entry.path(), to / file);
  }
  return to.string();
}

JobRanks joined_job(const std::string& path) {
  return read_job(path, {.joining = Joining::required});
}

Scenario with(const std::string& use) {
  Scenario scenario;
  scenario.transforms.push_back(read_transform_text(use));
  scenario.uses.push_back(use);
  return scenario;
}

/// Expects that each rank replays within a hundredth, that every collective has a partner except at
/// the edges of the window, and that hardly any time is unexplained.
void check_replay(const JobRanks& job) {
  const JointReplay replayed = replay(job, graphs_of(job), {.memory = false});
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Inference& rank = job.ranks[i].inference;
    const Nanoseconds measured = step_times(rank.graph, rank.recorded).step_time;
    const Nanoseconds step = step_times(rank.graph, replayed.of(i)).step_time;
    EXPECT_LT(std::abs(ratio(step - measured, measured)), 0.01) << job.path << ", rank " << i;
    const Unexplained& open = rank.graph.unexplained();
    EXPECT_LT(ratio(open.lag + open.peers, open.window), 0.02) << job.path << ", rank " << i;
    EXPECT_LE(job.join.ranks[i].unmatched, 8U) << job.path << ", rank " << i;
  }
}

TEST(JoinedRanks, CorpusReplaysTogether) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  for (const char* name : {"megatron-tp2", "dlrm-8rank/dlrm_kineto.tar.gz", "nanogpt-8rank",
                           "torchrec-forward-straggler", "torchrec-nostraggler-repeat"})
    check_replay(joined_job(corpus_path(name)));
  const Folder folder;
  check_replay(joined_job(folder_of(folder, "torchrec-straggler", "straggler")));
  check_replay(joined_job(folder_of(folder, "torchrec-straggler", "nosleep")));
}

TEST(JoinedRanks, CorpusSplitsTheWaitForAStragglerFromTheTransfer) {
  const std::string path = corpus_path("torchrec-forward-straggler");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const JobRanks job = joined_job(path);
  std::size_t long_ones = 0;
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& member : collective.members) {
      if (member.recorded < 1014ms || member.recorded > 1016ms) continue;
      ++long_ones;
      EXPECT_NE(member.rank, 2U);
      EXPECT_NEAR(ratio(member.skew, 1s), 1.003, 0.002);
      EXPECT_NEAR(ratio(member.recorded - member.skew, 1s), 0.0122, 0.0005);
    }
  }
  EXPECT_GE(long_ones, 3U);
}

TEST(JoinedRanks, CorpusClocksAreFoundThoughOffsetsAndDriftArePlanted) {
  const std::string path = corpus_path("torchrec-nostraggler-repeat");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const JobRanks job = read_job(path);
  const auto joined_with = [&](Nanoseconds ahead, double drift) {
    std::vector<Inference> ranks;
    for (const Rank& rank : job.ranks) ranks.push_back(clone(rank.inference));
    Inference& one = ranks[1];
    one.rank.origin += ahead;
    for (auto* side : {&one.recorded.start, &one.recorded.finish}) {
      for (Nanoseconds& time : *side) time += scaled(time, drift);
    }
    std::vector<const Inference*> all;
    std::vector<std::string> labels;
    for (const Inference& rank : ranks) all.push_back(&rank), labels.emplace_back("rank");
    return join_ranks(all, labels).clocks[1];
  };
  const RankClock plain = joined_with(0ns, 0);
  for (const Nanoseconds ahead : {10ms, -10ms}) {
    for (const double drift : {0.0, 50e-6}) {
      const RankClock clock = joined_with(ahead, drift);
      for (const Nanoseconds time : {0ms, 250ms, 500ms}) {
        const Nanoseconds planted = time + scaled(time, drift);
        const Nanoseconds off = clock.common_time(planted) - plain.common_time(time);
        EXPECT_LT(std::abs(off.count()), 5000) << to_text(ahead) << " at " << to_text(time);
      }
    }
  }
}

TEST(JoinedRanks, CorpusPredictsTheJobWithoutItsStraggler) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  const JobRanks before = joined_job(folder_of(folder, "torchrec-straggler", "straggler"));
  const JobRanks after = read_job(folder_of(folder, "torchrec-straggler", "nosleep"));
  EditedJob edited = edited_by(before, with("straggler:rank=2,remove=true"), {});
  std::vector<double> errors;
  for (std::size_t i = 0; i < after.ranks.size(); ++i) {
    const Inference& rank = after.ranks[i].inference;
    const std::vector<Nanoseconds> measured = step_times(rank.graph, rank.recorded).each;
    const std::vector<Nanoseconds>& predicted = edited.of(i).times.each;
    ASSERT_EQ(predicted.size(), measured.size());
    for (std::size_t step = 0; step < measured.size(); ++step)
      errors.push_back(std::abs(ratio(predicted[step] - measured[step], measured[step])));
  }
  EXPECT_LE(median(errors), 0.08);
}

TEST(JoinedRanks, CorpusDoctorNamesTheRankThatTheOthersWaitFor) {
  const std::string path = corpus_path("torchrec-forward-straggler");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  for (const Diagnosis& rank : diagnose(path)) {
    const bool is_late = std::any_of(
        rank.findings.begin(), rank.findings.end(),
        [](const Finding& one) { return one.what.starts_with("the other ranks wait 3.03"); });
    EXPECT_EQ(is_late, rank.rank == 2) << rank.rank;
  }
}

TEST(JoinedRanks, CorpusInfoTellsWhatARankIsAmongTheOthers) {
  const std::string path = corpus_path("torchrec-forward-straggler");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const std::vector<ExaminedTrace> all = examine_traces(path);
  ASSERT_EQ(all.size(), 4U);
  for (const ExaminedTrace& one : all) {
    ASSERT_TRUE(one.among && one.steps);
    EXPECT_EQ(one.among->number, one.trace.rank);
    EXPECT_EQ(one.among->keeps_waiting > 3s, one.trace.rank == 2) << one.trace.rank;
    EXPECT_EQ(one.among->waits > 3s, one.trace.rank != 2) << one.trace.rank;
  }
  const std::vector<ExaminedTrace> alone = examine_traces(path + "/rank2.json.gz");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_FALSE(alone.front().among);
}

TEST(JoinedRanks, CorpusAdviseAndPredictGiveTheSameTimes) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  for (const char* name : {"nanogpt-8rank", "torchrec-forward-straggler"}) {
    SCOPED_TRACE(name);
    const std::string path = corpus_path(name);
    const Advice advice = advise(Job(path), {.only = {"fused_optimizer", "amp", "prefetch"}});
    EXPECT_EQ(advice.step_time, predict(Job(path), {}).baseline.step_time);
    ASSERT_FALSE(advice.suggestions.empty());
    for (const Suggestion& one : advice.suggestions)
      EXPECT_EQ(one.step_time, predict(Job(path), with(one.use)).predicted.step_time) << one.use;
    for (const SpeedUp& one : advice.speed_ups) {
      if (one.name != "kernels") continue;
      const Prediction without = predict(Job(path), with("scale:where.kind=kernel,factor=0"));
      EXPECT_EQ(one.at_best, std::min(advice.step_time, without.predicted.step_time));
    }
    const AdviceQuestion setting{.until = "step_time <= 10s", .vary = "batch_size.factor=2"};
    EXPECT_EQ(advise(Job(path), setting).curve->points.at(0).step_time,
              predict(Job(path), with("batch_size:factor=2")).predicted.step_time);
  }
}

TEST(JoinedRanks, CorpusVerifyRepeatsTheirPrediction) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  const std::string before = folder_of(folder, "torchrec-straggler", "straggler");
  const std::string after = folder_of(folder, "torchrec-straggler", "nosleep");
  const Prediction prediction = predict(Job(before), with("straggler:remove=true"));
  const std::string written = folder.write("p.json", to_json(prediction).dump());
  const Verification found = verify(written, after, {.trace = before});
  EXPECT_EQ(found.repeated, prediction.predicted.step_time);
  EXPECT_EQ(found.notes.count("the prediction differs when it is repeated; causes are those of the "
                              "repetition"),
            0);
  EXPECT_TRUE(found.residual);
}

TEST(JoinedRanks, CorpusDiffSaysWhomTheOthersWaitFor) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  const DiffReport report = diff(folder_of(folder, "torchrec-straggler", "straggler"),
                                 folder_of(folder, "torchrec-straggler", "nosleep"));
  ASSERT_EQ(report.ranks.size(), 4U);
  for (const Diff& rank : report.ranks) {
    ASSERT_TRUE(rank.among_before && rank.among_after);
    if (rank.rank == 2)
      EXPECT_GT(rank.among_before->keeps_waiting, 5 * rank.among_after->keeps_waiting);
    else
      EXPECT_GT(rank.among_before->waits, 5 * rank.among_after->waits);
  }
  const Diff& decisive = decisive_rank(report);
  EXPECT_EQ(decisive.rank, 2);
  EXPECT_NE(diff_verdict(decisive).find("host work of # running sparse arch takes less"),
            std::string::npos)
      << diff_verdict(decisive);
  const std::vector<Note>& notes = report.notes.all();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const Note& note) {
    return note.text.starts_with("A: the other ranks wait ") &&
           note.text.find(" for rank 2, which enters ") != std::string::npos;
  }));
}

TEST(JoinedRanks, CorpusCheckNamesTheRankThatTheOthersWaitForAsTheCause) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  const std::string late = folder_of(folder, "torchrec-straggler", "straggler");
  const std::string even = folder_of(folder, "torchrec-straggler", "nosleep");
  const CheckReport report = check(late, {}, bless(even, {}, {}), {});
  ASSERT_FALSE(report.causes.empty());
  EXPECT_TRUE(report.causes[0].what.starts_with("the other ranks wait for rank 2: it works "))
      << report.causes[0].what;
  EXPECT_GT(report.causes[0].effect.value_or(0ns), 900ms);
  for (const CheckCause& cause : report.causes)
    EXPECT_EQ(cause.what.find("SendRecv slower"), std::string::npos) << cause.what;
}

// Measured: each of three steps of four ranks of the job that ran without its straggler.
TEST(JoinedRanks, CorpusIntervalsHoldWhatWasMeasuredWithoutTheStraggler) {
  if (corpus_path("").empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  const JobRanks measured = read_job(folder_of(folder, "torchrec-straggler", "nosleep"));
  const Prediction predicted = predict(Job(folder_of(folder, "torchrec-straggler", "straggler")),
                                       with("straggler:rank=2,remove=true"));
  // Without a rank named, the tasks of the slowest rank hardly change.
  const Prediction any = predict(Job(folder.path() + "/straggler"), with("straggler:remove=true"));
  EXPECT_NEAR(ratio(any.predicted.step_time, predicted.predicted.step_time), 1, 0.01);
  ASSERT_EQ(any.steps.size(), 1U);
  EXPECT_FALSE(any.steps[0].changed_nothing);
  EXPECT_TRUE(any.steps[0].summary.starts_with("rank 2: 2.9")) << any.steps[0].summary;
  EXPECT_EQ(any.notes.count(kChangedNothing), 0);
  std::size_t inside = 0, all = 0;
  for (const PredictedRank& rank : predicted.ranks) {
    const Inference& truth = measured.ranks[static_cast<std::size_t>(rank.number)].inference;
    const std::vector<Nanoseconds> each = step_times(truth.graph, truth.recorded).each;
    ASSERT_EQ(each.size(), rank.predicted_steps.size());
    for (std::size_t step = 0; step < each.size(); ++step, ++all) {
      const double point = ratio(rank.predicted_steps[step], predicted.predicted.step_time);
      inside += each[step] >= scaled(predicted.lower, point) &&
                        each[step] <= scaled(predicted.upper, point)
                    ? 1
                    : 0;
    }
  }
  EXPECT_EQ(all, 12U);
  EXPECT_GE(inside, 9U);
}

TEST(JoinedRanks, CorpusTimelinesOfAllRanksReadBackAsTheJob) {
  const std::string path = corpus_path("torchrec-nostraggler-repeat");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  PredictOptions options;
  options.perfetto_path = folder.path() + "/ranks/";
  const Prediction before = predict(Job(path, {.keeps_traces = true}),
                                    with("scale:where.kind=kernel,factor=0.5"), options);
  const Prediction again = predict(Job(options.perfetto_path), {});
  EXPECT_EQ(again.ranks.size(), before.ranks.size());
  EXPECT_LT(std::abs(ratio(again.predicted.step_time - before.predicted.step_time,
                           before.predicted.step_time)),
            0.01);
  EXPECT_THROW(predict(Job(path, {.keeps_traces = true}),
                       with("scale:where.kind=kernel,factor=0.5"), options),
               Error);
}

TEST(JoinedRanks, CorpusPicturesOfAllRanksAreNotTakenForRecordings) {
  const std::string path = corpus_path("torchrec-nostraggler-repeat");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const Folder folder;
  PredictOptions options;
  for (const char* name : {"/all.json.gz", "/all.pftrace"}) {
    options.perfetto_path = folder.path() + name;
    predict(Job(path, {.keeps_traces = true}), {}, options);
    EXPECT_THROW(predict(Job(options.perfetto_path), {}), TraceError) << name;
  }
  for (const char* name : {"/all.ftrace", "/all.sqlite"}) {
    options.perfetto_path = folder.path() + name;
    EXPECT_THROW(predict(Job(path, {.keeps_traces = true}), {}, options), Error) << name;
    EXPECT_FALSE(fs::exists(options.perfetto_path)) << name;
  }
}

TEST(JoinedRanks, TwoCopiesOfOneRecordingAreOneClass) {
  const std::string path = corpus_path("megatron-tp2");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  std::vector<Inference> ranks;
  const JobRanks job = read_job(path);
  for (std::int32_t i = 0; i < 2; ++i) {
    ranks.push_back(clone(job.ranks[0].inference));
    ranks.back().rank.number = i;
  }
  const JobRanks twice = job_of(std::move(ranks));
  const JointReplay replayed = replay(twice, graphs_of(twice), {});
  EXPECT_EQ(replayed.first_alike[1], 0U);
  const Inference& rank = twice.ranks[1].inference;
  EXPECT_EQ(rank.graph.unexplained().peers, 0ns);
  EXPECT_EQ(step_times(rank.graph, replayed.of(1)).step_time,
            step_times(rank.graph, rank.recorded).step_time);
}

TEST(JoinedRanks, ManyRanksFoldToTheRecordedOnes) {
  const std::string path = corpus_path("megatron-tp2");
  if (path.empty()) GTEST_SKIP() << kNoCorpus;
  const Prediction two = predict(Job(path), {}, {});
  const Prediction many = predict(Job(path, {.world_size = 1024}), {});
  EXPECT_EQ(many.predicted.step_time, two.predicted.step_time);
  ASSERT_EQ(many.ranks.size(), 2U);
  EXPECT_EQ(many.ranks[0].alike, 511U);
  const auto late_on_a_slow_link = [] {
    Scenario scenario = with("straggler:rank=7,pause=20ms");
    add_steps("network:from.machine=dgx-a100,machine=dgx-a100,slow_link=0.01,where.rank=6",
              scenario);
    return scenario;
  };
  const Prediction late = predict(Job(path, {.world_size = 64}), late_on_a_slow_link());
  const Prediction exact =
      predict(Job(path, {.world_size = 64}), late_on_a_slow_link(), {.exact = true});
  EXPECT_EQ(late.predicted.step_time, exact.predicted.step_time);
  EXPECT_GT(late.predicted.step_time, many.predicted.step_time);
  EXPECT_EQ(late.ranks.size(), 4U);  // The straggler, the rank that waits for it, and the others.
  try {
    predict(Job(path, {.world_size = 1}), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("was recorded, got 1"), std::string::npos);
  }
  EXPECT_EQ(exact.ranks.size(), 64U);
}

}  // namespace
}  // namespace foretrace
