// Answers of a sweep as files: resumed, cut into shards and merged, by the program and in process.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "cli/command_line.h"
#include "foretrace/error.h"
#include "question/sweep/shard.h"
#include "question/sweep/sweep_file.h"

namespace foretrace {
namespace {

constexpr auto kTrace = "traces/gpt-a100-gpu-bound.pt.trace.json.gz";
constexpr auto kSweep = R"({"version": 1,
    "transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
    "matrix": {"variant": [{"name": "as, it \"is\""}, {"name": "amp", "transforms": [{"use": "amp"}]}]},
    "assert": [{"step_time": "<= 100ms"}],
    "sweep": {"transforms[0].factor": "0.5..1.4/9"}})";

std::string shard_text(const std::string& asked, std::map<std::string, std::string> variables) {
  try {
    const Shard shard = read_shard(asked, [&](const char* name) { return variables[name]; });
    return std::to_string(shard.number) + " of " + std::to_string(shard.count);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Shard, IsSaidOrToldByLaunchers) {
  EXPECT_EQ(shard_text("3/8", {}), "3 of 8");
  EXPECT_EQ(shard_text("auto", {{"SLURM_ARRAY_TASK_ID", "5"},
                                {"SLURM_ARRAY_TASK_COUNT", "8"},
                                {"SLURM_ARRAY_TASK_MIN", "1"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_NTASKS", "1"}}),
            "5 of 8");
  EXPECT_EQ(shard_text("auto", {{"SLURM_ARRAY_TASK_ID", "6"},
                                {"SLURM_ARRAY_TASK_COUNT", "4"},
                                {"SLURM_ARRAY_TASK_MIN", "0"},
                                {"SLURM_ARRAY_TASK_STEP", "2"}}),
            "4 of 4");
  EXPECT_EQ(shard_text("auto", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "1 of 2");
  EXPECT_EQ(shard_text("auto", {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), "4 of 4");
  EXPECT_EQ(shard_text("auto", {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}}), "2 of 3");
}

TEST(Shard, OfAnImpossibleNumberIsRefused) {
  for (const char* text : {"0/8", "9/8", "1", "1/", "/2", "a/2", "1/0", "-1/2", "1/2/3", ""}) {
    EXPECT_EQ(shard_text(text, {}),
              "--shard: must be I/N such as 1/8 or 8/8, or auto, got '" + std::string(text) + "'");
  }
  EXPECT_EQ(shard_text("auto", {}).substr(0, 26), "--shard auto: found none o");
  EXPECT_EQ(shard_text("auto", {{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).substr(0, 42),
            "--shard auto: PMI_RANK is 4 and PMI_SIZE i");
  EXPECT_EQ(shard_text("auto", {{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}),
            "--shard auto: PMI_RANK must be a whole number, got 'x'");
}

TEST(Shard, HasAFileOfItsOwn) {
  EXPECT_EQ(path_of_shard("a/results.jsonl", {2, 8}), "a/results.shard-2-of-8.jsonl");
  EXPECT_EQ(path_of_shard("results", {2, 8}), "results.shard-2-of-8");
  EXPECT_EQ(path_of_shard("results.csv", {1, 1}), "results.csv");
}

SweepHeader header_of_five() {
  SweepHeader header;
  header.scenario_json = R"({"version":1})";
  header.inputs = {{"t.json", "kineto", "0123"}};
  header.settings = {"variant", "scale.factor"};
  header.asserts = {"step_time <= 1ms"};
  header.points = 5;
  return header;
}

SweepPoint point_of(std::uint64_t number) {
  SweepPoint point;
  point.number = number;
  point.values = {number % 2 == 0 ? R"("a, \"b\"")" : R"("c")", "0.5"};
  if (number == 3) {
    point.refused = "where: \"nothing\", matches";
    return point;
  }
  point.step_time = Nanoseconds(1000 + static_cast<std::int64_t>(number));
  point.speedup = 1.0 / 3;
  point.peak_allocated = Bytes{77};
  point.fits = number != 1;
  point.figures = {{"loader.disk_bytes", "12"}, {"loader.share", "0.25"}};
  point.verdicts = {"holds"};
  return point;
}

void write_points(const std::string& path, SweepForm form) {
  const SweepHeader header = header_of_five();
  SweepFile file(path, header, form, false);
  for (std::uint64_t i = file.answered().size(); i < header.points; ++i) file.add(point_of(i));
  file.flush();
}

TEST(SweepFile, CutAtAnyByteIsGoneOnWith) {
  for (const SweepForm form : {SweepForm::jsonl, SweepForm::csv}) {
    const Folder folder;
    const std::string path = folder / "results";
    write_points(path, form);
    const std::string whole = contents_of(path);
    const std::size_t last_lines = whole.rfind('\n', whole.size() - 160);
    for (std::size_t size = 0; size <= whole.size(); size += size < last_lines ? 13 : 1) {
      folder.write("results", whole.substr(0, size));
      write_points(path, form);
      ASSERT_EQ(contents_of(path), whole) << "cut at " << size;
    }
  }
}

TEST(SweepFile, ReadsBackWhatItHolds) {
  for (const SweepForm form : {SweepForm::jsonl, SweepForm::csv}) {
    const Folder folder;
    write_points(folder / "results", form);
    const SweepHeader header = header_of_five();
    SweepFile file(folder / "results", header, form, false);
    ASSERT_EQ(file.answered().size(), 5U);
    for (const SweepPoint& point : file.answered()) {
      EXPECT_EQ(sweep_point_line(header, point, form),
                sweep_point_line(header, point_of(point.number), form));
    }
  }
}

TEST(SweepFile, AsksAgainFromALineThatACrashLeftBroken) {
  const Folder folder;
  const std::string path = folder / "results";
  write_points(path, SweepForm::jsonl);
  const std::string whole = contents_of(path);
  std::string broken = whole;
  broken.replace(whole.find("\"point\":2") + 4, 6, std::string(6, '\0'));
  folder.write("results", broken);
  write_points(path, SweepForm::jsonl);
  EXPECT_EQ(contents_of(path), whole);
}

TEST(SweepFile, OfAnotherSweepIsRefused) {
  const Folder folder;
  const std::string path = folder / "results";
  write_points(path, SweepForm::jsonl);
  const auto why = [&](const auto& change) -> std::string {
    SweepHeader other = header_of_five();
    change(other);
    try {
      const SweepFile file(path, other, SweepForm::jsonl, false);
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.size());
    }
    return "none";
  };
  const std::string advice = "; give another --output, or --fresh to start over";
  EXPECT_EQ(why([](SweepHeader& header) { header.scenario_json = "{}"; }),
            ": contains the answers of another sweep: it is about another scenario" + advice);
  EXPECT_EQ(why([](SweepHeader& header) { header.inputs[0].sha256 = "9"; }),
            ": contains the answers of another sweep: it is about another trace" + advice);
  EXPECT_EQ(why([](SweepHeader& header) { header.intervals = true; }),
            ": contains the answers of another sweep: it was asked without intervals" + advice);
  EXPECT_EQ(why([](SweepHeader& header) { header.shards = 2; }),
            ": contains shard 1 of 1, not 1 of 2");
  EXPECT_EQ(why([](SweepHeader& header) { header.inputs[0].path = "moved.json"; }), "none");
  for (const char* text : {"something else\n", "{}\n", "{\"schema\": 1}\n", "[1"}) {
    folder.write("results", text);
    EXPECT_TRUE(why([](SweepHeader&) {}).starts_with(": is not a file of sweep answers")) << text;
    EXPECT_THROW(SweepFile(path, header_of_five(), SweepForm::jsonl, true), Error) << text;
    EXPECT_EQ(contents_of(path), text);
  }
}

TEST(SweepFile, IsWrittenByOneProcessAtATime) {
  const Folder folder;
  const SweepHeader header = header_of_five();
  const SweepFile first(folder / "results", header, SweepForm::jsonl, false);
  EXPECT_THROW(SweepFile(folder / "results", header, SweepForm::jsonl, false), Error);
}

std::string merged(const std::vector<std::string>& files, const std::string& output) {
  try {
    merge_shards(files, output, SweepForm::jsonl);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

void write_shard(const std::string& path, std::uint64_t shard, std::uint64_t shards,
                 std::uint64_t most = 5, const char* scenario = R"({"version":1})") {
  SweepHeader header = header_of_five();
  header.scenario_json = scenario;
  header.shard = shard, header.shards = shards;
  SweepFile file(path, header, SweepForm::jsonl, true);
  auto [number, end] = points_of_shard(header.points, shard, shards);
  for (; number < std::min(end, most); ++number) file.add(point_of(number));
  file.flush();
}

TEST(Shards, PutTogetherAreTheFileOfOneProcess) {
  const Folder folder;
  write_points(folder / "whole", SweepForm::jsonl);
  for (const std::uint64_t shards : {1U, 2U, 3U, 5U}) {
    std::vector<std::string> files;
    for (std::uint64_t i = shards; i >= 1; --i) {
      files.push_back(folder / ("shard" + std::to_string(i)));
      write_shard(files.back(), i, shards);
    }
    EXPECT_EQ(merged(files, folder / "merged"), "none");
    EXPECT_EQ(contents_of(folder / "merged"), contents_of(folder / "whole"));
  }
}

TEST(Shards, MissingDoubleForeignOrUnfinishedAreNamed) {
  const Folder folder;
  const std::string a = folder / "a", b = folder / "b", c = folder / "c", out = folder / "out";
  write_shard(a, 1, 3);
  write_shard(b, 2, 3);
  write_shard(c, 3, 3);
  EXPECT_EQ(merged({a, c}, out), "sweep merge: of 3 shards these are missing: 2");
  EXPECT_EQ(merged({a, b, c, b}, out), b + ": is shard 2, as '" + b + "' is");
  write_shard(c, 3, 3, 5, R"({"version":1,"machine":"V100"})");
  EXPECT_EQ(merged({a, b, c}, out), c + ": is from another sweep than '" + b + "'");
  write_shard(c, 2, 2);
  EXPECT_EQ(merged({a, b, c}, out), c + ": is one of 2 shards, but '" + b + "' is one of 3");
  write_shard(c, 3, 3, 4);
  EXPECT_EQ(merged({a, b, c}, out),
            c + ": ends before point 4 of 4; run its shard again to complete it");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Shards, OfMoreThanThereCanBeAreRefused) {
  const Folder folder;
  const auto of = [&](const std::string& shard, const std::string& points) {
    return folder.write("a", R"({"schema":"foretrace.sweep/1","sweep":"x","points":)" + points +
                                 R"(,"shard":)" + shard + "}\n");
  };
  const std::string out = folder / "out";
  const std::string huge = of(R"({"number":1,"of":9223372036854775808})", "10");
  EXPECT_EQ(merged({huge}, out), huge + ": its header names an impossible shard");
  const std::string beyond = of(R"({"number":1,"of":8e33})", "10");
  EXPECT_EQ(merged({beyond}, out), beyond + ": has a number that is not a whole number");
  const std::string many = of(R"({"number":1,"of":1})", "18446744073709551615");
  EXPECT_EQ(merged({many}, out), many + ": its header names more points than there are");
  const std::string first = of(R"({"number":1,"of":100})", "100");
  EXPECT_EQ(merged({first}, out).substr(0, 60),
            "sweep merge: of 100 shards these are missing: 2, 3, 4, 5, 6,");
  EXPECT_TRUE(merged({first}, out).ends_with(", 33 and 67 more"));
}

/// The first answer of a file, as another program may have written it.
TEST(SweepLine, OfAnotherKindIsNoAnswer) {
  const SweepHeader header = header_of_five();
  const auto is_refused = [&](const std::string& line, SweepForm form) {
    try {
      read_point_line(header, line, form);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const auto jsonl = [](const std::string& value, const std::string& time) {
    return R"({"point":0,"settings":{"variant":)" + value + R"(,"scale.factor":1},)" + time +
           R"("speedup":1.0,"trust":"good"})";
  };
  EXPECT_FALSE(is_refused(jsonl("1", R"("step_time_ns":5,)"), SweepForm::jsonl));
  for (const char* time : {"", R"("step_time_ns":-5,)", R"("step_time_ns":1e300,)",
                           R"("step_time_ns":9223372036854775807,)", R"("step_time_ns":"5",)"}) {
    EXPECT_TRUE(is_refused(jsonl("1", time), SweepForm::jsonl)) << time;
  }
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  EXPECT_TRUE(is_refused(jsonl(deep, R"("step_time_ns":5,)"), SweepForm::jsonl));
  EXPECT_FALSE(is_refused("0,a,1,5,1.5,,,,good,,x=2,", SweepForm::csv));
  for (const char* row :
       {"0,a,1,5,nan,,,,good,,,", "0,a,1,5,inf,,,,good,,,", "0,a,1,-5,1.5,,,,good,,,",
        "0,a,1,5,1.5,,,,good,,x=y,", "0,a,1,5,1.5,,,,good,,x=,", "0,a,1,5,1.5,-1,,,good,,,",
        "0,a,1,5,1.5,,,,best,,x=2,", "8e33,a,1,5,1.5,,,,good,,,", "-1,a,1,5,1.5,,,,good,,,"}) {
    EXPECT_TRUE(is_refused(row, SweepForm::csv)) << row;
  }
}

TEST(SweepLine, OfAHeaderWithOtherTypesIsAnotherSweep) {
  for (const char* inputs : {"5", "[5]", R"([{"sha256":5}])", "null"}) {
    const std::string line =
        R"({"schema":"foretrace.sweep/1","sweep":5,"inputs":)" + std::string(inputs) + "}";
    EXPECT_FALSE(difference_of_sweeps(header_of_five(), line).empty()) << line;
  }
  EXPECT_EQ(difference_of_sweeps(header_of_five(), "[]"), "its first line is not JSON");
}

TEST(SweepCommand, AnswersResumesAndMerges) {
  const Folder folder;
  const std::string scenario = folder.write("sweep.json", kSweep);
  const std::string ask = "sweep " + scenario + " --trace " + kTrace + " --quiet --output ";
  for (const std::string ending : {".jsonl", ".csv"}) {
    const std::string whole = folder / ("whole" + ending);
    const Outcome first = foretrace_run(ask + whole + " --no-memory --jobs 1");
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out.substr(0, 26), "20 questions: 20 answered,") << first.out;
    const std::string text = contents_of(whole);
    const std::string again = folder.write("again" + ending, text.substr(0, text.size() / 2));
    if (ending == ".csv") folder.write("again.csv.sweep.json", contents_of(whole + ".sweep.json"));
    EXPECT_EQ(foretrace_run(ask + again + " --no-memory --jobs 3").out, first.out);
    EXPECT_EQ(contents_of(again), text);
    std::string shards;
    for (const char* shard : {"1/3", "2/3", "3/3"})
      foretrace_run(ask + (folder / ("part" + ending)) + " --no-memory --shard " + shard);
    for (const char* shard : {"3", "1", "2"})
      shards += " " + (folder / ("part.shard-" + std::string(shard) + "-of-3" + ending));
    const Outcome merge =
        foretrace_run("sweep merge" + shards + " --output " + (folder / ("merged" + ending)));
    EXPECT_EQ(merge.exit_code, 0) << merge.err;
    EXPECT_EQ(contents_of(folder / ("merged" + ending)), text);
  }
  const Outcome other = foretrace_run(ask + (folder / "whole.jsonl"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("it was asked without memory"), std::string::npos) << other.err;
  EXPECT_EQ(foretrace_run(ask + (folder / "whole.jsonl") + " --fresh --html " + (folder / "p.html"))
                .exit_code,
            0);
  EXPECT_NE(contents_of(folder / "p.html").find("parallel"), std::string::npos);
}

TEST(SweepCommand, SaysWhatIsWrong) {
  const Folder folder;
  const std::string sweep = folder.write("sweep.json", kSweep);
  const std::string one = folder.write("one.json", R"({"transforms": [{"use": "amp"}]})");
  const std::string never = folder.write(
      "never.json", R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": [1, 2]},
                        "assert": [{"step_time": "<= 1ns"}]})");
  const std::string trace = std::string(" --trace ") + kTrace;
  const std::pair<std::string, std::string> mistakes[] = {
      {"sweep", "sweep: SCENARIO is required; see `foretrace help sweep`"},
      {"sweep " + sweep, "sweep: which TRACE? Give it with --trace, or in the scenario"},
      {"sweep " + one + trace, one + ": asks one question, which"},
      {"sweep " + sweep + trace + " --shard 1/2", "--shard: needs --output"},
      {"sweep " + sweep + trace + " --shard 1/21 -o x.jsonl", "--shard: must be one of at most 20"},
      {"sweep " + sweep + trace + " --format jsnol", "--format: must be one of jsonl, csv, got"},
      {"sweep " + sweep + trace + " --summary txt", "--summary: must be one of text, brief"},
      {"sweep merge " + sweep + " -o x.jsonl", sweep + ": is not a file of sweep answers"},
  };
  for (const auto& [arguments, message] : mistakes) {
    const Outcome outcome = foretrace_run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.err.substr(0, 11 + message.size()), "foretrace: " + message) << outcome.err;
  }
  EXPECT_EQ(foretrace_run("sweep " + never + trace + " --quiet").exit_code, 1);
}

}  // namespace
}  // namespace foretrace
