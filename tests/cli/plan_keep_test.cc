// Searches over layouts that are kept in a file can be resumed, cut into shards and merged, by the
// program and in process.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "foretrace/answer/plan.h"
#include "foretrace/error.h"
#include "foretrace/version.h"
#include "question/plan/resumable_plan.h"
#include "support/wait.h"

namespace foretrace {
namespace {

/// A question with some thousand layouts.
PlanQuestion question_of() {
  PlanQuestion question{.model = "mpt-1b", .machine = "dgx-h100"};
  question.gpus = {4}, question.global_batch = 64, question.top = 3;
  question.all_schedules = true;
  return question;
}

constexpr std::uint64_t kAll = 1000;

/// Stops the search after this many blocks.
std::optional<PlanReport> keep(const PlanQuestion& question, const PlanFileOptions& keeping,
                               std::uint64_t most = kAll) {
  std::atomic<bool> stop = false;
  std::uint64_t found = 0;
  return resumable_plan(question, keeping, {.take = [&] { stop = ++found >= most; }}, stop);
}

std::string text_of(const PlanReport& report) { return to_json(report).dump(); }

std::string refusal_of(const PlanQuestion& question, const PlanFileOptions& keeping) {
  try {
    keep(question, keeping);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(KeptPlan, IsThePlanThatIsNotKept) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl";
  const std::string expected = text_of(plan(question_of()));
  const auto first = keep(question_of(), {.path = path});
  ASSERT_TRUE(first);
  EXPECT_EQ(text_of(*first), expected);
  const std::string whole = contents_of(path);
  std::uint64_t known = 0, left = kAll;
  const PlanEvents events{
      .begin = [&](std::uint64_t had, std::uint64_t more) { known = had, left = more; }};
  const auto again = resumable_plan(question_of(), {.path = path}, events, false);
  EXPECT_GT(known, 8U);
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(text_of(*again), expected);
  EXPECT_EQ(contents_of(path), whole);
}

TEST(KeptPlan, GoesOnWhereItWasCutOrStopped) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl";
  const std::string expected = text_of(*keep(question_of(), {.path = path}));
  const std::string whole = contents_of(path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{9}, whole.find('\n'),
                                 whole.find('\n') + 1, whole.size() / 2, whole.size() - 1}) {
    folder.write("plans.jsonl", whole.substr(0, size));
    EXPECT_EQ(text_of(*keep(question_of(), {.path = path})), expected) << "cut at " << size;
    EXPECT_EQ(contents_of(path), whole) << "cut at " << size;
  }
  std::string damaged = whole;
  damaged.replace(whole.find("{\"point\":3,") + 4, 6, std::string(6, '\0'));
  folder.write("plans.jsonl", damaged);
  EXPECT_EQ(text_of(*keep(question_of(), {.path = path})), expected);
  EXPECT_EQ(contents_of(path), whole);
  std::string digit = whole;
  char& changed = digit[digit.find("{\"point\":3,") + 24];
  changed = changed == '1' ? '2' : '1';
  folder.write("plans.jsonl", digit);
  EXPECT_EQ(text_of(*keep(question_of(), {.path = path})), expected);
  EXPECT_EQ(contents_of(path), whole);
  std::string gap = whole;
  const std::size_t third = gap.find("{\"point\":3,");
  gap.erase(third, gap.find("{\"point\":4,") - third);
  folder.write("plans.jsonl", gap);
  EXPECT_EQ(text_of(*keep(question_of(), {.path = path})), expected);
  EXPECT_EQ(contents_of(path), whole);
  for (const std::uint64_t blocks : {1U, 4U}) {
    EXPECT_FALSE(keep(question_of(), {.path = path, .fresh = true}, blocks));
    const std::string part = contents_of(path);
    EXPECT_LT(part.size(), whole.size());
    EXPECT_TRUE(whole.starts_with(part));
    EXPECT_EQ(text_of(*keep(question_of(), {.path = path})), expected);
    EXPECT_EQ(contents_of(path), whole);
  }
}

TEST(KeptPlan, OfShardsIsThatOfOneProcess) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl", merged = folder / "merged.jsonl";
  const std::string expected = text_of(*keep(question_of(), {.path = path}));
  for (const std::uint64_t shards : {1U, 2U, 8U}) {
    std::vector<std::string> files;
    for (std::uint64_t i = shards; i >= 1; --i) {
      const PlanFileOptions one{.path = path, .shard = {i, shards}};
      EXPECT_EQ(keep(question_of(), one).has_value(), shards == 1);
      files.push_back(path_of_shard(path, one.shard));
    }
    merge_plans(files, merged);
    EXPECT_EQ(contents_of(merged), contents_of(path));
    EXPECT_EQ(text_of(*keep(question_of(), {.path = merged})), expected);
  }
}

TEST(KeptPlan, OfAnotherQuestionIsRefused) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl";
  const std::string prices = folder.write("prices.json", R"({"prices": {"h100": "3 EUR/h"}})");
  keep(question_of(), {.path = path});
  const std::string whole = contents_of(path);
  const auto why = [&](const auto& change) {
    PlanQuestion question = question_of();
    change(question);
    const std::string refusal = refusal_of(question, {.path = path});
    EXPECT_EQ(contents_of(path), whole);
    return refusal;
  };
  const auto another = [&](const std::string& what) {
    return path + ": contains the answers of another plan: " + what +
           "; give another --keep, or --fresh to start over";
  };
  EXPECT_EQ(why([](PlanQuestion& q) { q.model = "mpt-3b"; }), another("it is about another model"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.machine = "dgx-a100"; }),
            another("it is about another machine"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.gpus = {8}; }), another("it was asked with other --gpus"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.fix = "tp=2"; }),
            another("it was asked with another --fix"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.global_batch = 32; }),
            another("it was asked with another --global-batch, --layout or --fix"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.layout = "precision=fp8,dp=8,global_batch=64"; }),
            another("it was asked with another --global-batch, --layout or --fix"));
  EXPECT_EQ(why([](PlanQuestion& q) { q.memory = Bytes{40'000'000'000}; }),
            another("it was asked with another --memory-limit"));
  EXPECT_EQ(why([&](PlanQuestion& q) {
              q.calibrate = folder.write(
                  "runs.csv",
                  "gpus,tp,pp,micro_batch,global_batch,iteration_ms\n8,1,1,1,64,1000\n");
            }),
            another("it was asked with another --calibrate"));
  // The kept bounds do not depend on these settings.
  EXPECT_EQ(why([](PlanQuestion& q) { q.top = 5; }), "none");
  EXPECT_EQ(why([](PlanQuestion& q) { q.layout = "tp=8,global_batch=64"; }), "none");
  EXPECT_EQ(why([&](PlanQuestion& q) { q.training.prices = prices; }), "none");
  EXPECT_EQ(why([](PlanQuestion& q) { q.strategy = "dapple"; }),
            "--keep: is for the exhaustive search, got --strategy dapple");
  EXPECT_EQ(refusal_of(question_of(), {.path = path, .shard = {1, 2}}), "none");
  EXPECT_EQ(refusal_of(question_of(), {.path = path_of_shard(path, {1, 2})}),
            path_of_shard(path, {1, 2}) + ": contains shard 1 of 2, not 1 of 1");
  std::string older = whole;
  older.replace(whole.find(kVersion), kVersion.size(), "0");
  older.replace(whole.find("\"plan\":\"") + 8, 4, "----");
  folder.write("plans.jsonl", older);
  EXPECT_EQ(refusal_of(question_of(), {.path = path}),
            another("it was written by another version of this program"));
}

/// Runs the program, and sends it a signal when `path` has this many bytes, or never if it ends
/// before.
Outcome signalled(const std::string& arguments, int signal, const std::string& path,
                  std::size_t bytes) {
  const Folder folder;
  const std::string command = "exec '" + tested_program(FORETRACE_BINARY) + "' " + arguments +
                              " >'" + (folder / "out") + "' 2>'" + (folder / "err") + "'";
  const pid_t process = ::fork();
  if (process == 0) {
    std::signal(signal, SIG_DFL);  // The shell that runs the tests may ignore it.
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  const auto has_ended = [&] {
    siginfo_t ended = {};
    ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT);
    return ended.si_pid == process;
  };
  std::error_code missing;
  const auto size = [&] { return std::filesystem::file_size(path, missing); };
  wait_until([&] { return bytes == 0 || (size() >= bytes && !missing) || has_ended(); });
  ::kill(process, signal);
  int status = 0;
  ::waitpid(process, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents_of(folder / "out"),
          contents_of(folder / "err")};
}

TEST(PlanCommand, KilledAtAnyTimeEndsWithTheSameBytes) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl";
  const std::string ask =
      "plan llama3-8b --machine dgx-h100 --gpus 16 --global-batch 128 --quiet --keep ";
  const Outcome expected = foretrace_run(ask + (folder / "whole.jsonl"));
  ASSERT_EQ(expected.exit_code, 0) << expected.err;
  const std::string whole = contents_of(folder / "whole.jsonl");
  for (std::size_t fifth = 0; fifth < 5; ++fifth) {
    signalled(ask + path, SIGKILL, path, whole.size() * fifth / 5);
    if (!std::filesystem::exists(path)) continue;
    const std::string part = contents_of(path);
    EXPECT_TRUE(whole.starts_with(part.substr(0, part.rfind('\n') + 1)));
  }
  const Outcome last = foretrace_run(ask + path);
  EXPECT_EQ(last.out, expected.out);
  EXPECT_EQ(contents_of(path), whole);
}

TEST(PlanCommand, StopsWhenAsked) {
  const Folder folder;
  const std::string path = folder / "plans.jsonl";
  const std::string ask =
      "plan gpt3-175b --machine dgx-a100 --gpus 512,1024 --global-batch 1536 "
      "--quiet --keep " +
      path;
  const Outcome stopped = signalled(ask, SIGTERM, path, 1);
  EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
  EXPECT_TRUE(stopped.err.starts_with("foretrace: stopped after ")) << stopped.err;
  EXPECT_EQ(stopped.out, "");
  EXPECT_TRUE(contents_of(path).ends_with('\n'));
}

TEST(PlanCommand, RefusesWhatIsNotKept) {
  const Folder folder;
  const std::string ask = "plan mpt-1b --machine dgx-h100 --gpus 8 --global-batch 64 ";
  const std::string path = folder / "plans.jsonl";
  const std::pair<std::string, std::string> mistakes[] = {
      {"--shard 1/2", "--shard: needs --keep"},
      {"--fresh", "--fresh: needs --keep"},
      {"--keep " + path + " --shard 2/1", "--shard: must be I/N such as 1/8 or 8/8, or auto"},
      {"--keep " + path + " --shard 1/1000", "--shard: must be one of at most "},
      {"--keep " + path + " --shard 1/2 --html x.html", "--shard: has no answer to write"},
      {"--keep " + folder.write("other.jsonl", "{}\n"),
       (folder / "other.jsonl") + ": is not a file of plan answers"}};
  for (const auto& [options, message] : mistakes) {
    const Outcome outcome = foretrace_run(ask + options);
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_TRUE(outcome.err.starts_with("foretrace: " + message)) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const Outcome trace = foretrace_run(
      "plan traces/gpt-a100-gpu-bound.pt.trace.json.gz --machine "
      "dgx-a100 --gpus 2 --keep " +
      path);
  EXPECT_TRUE(trace.err.starts_with("foretrace: --keep: is for described models, and "))
      << trace.err;
}

}  // namespace
}  // namespace foretrace
