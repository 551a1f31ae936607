#include "foretrace/import.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "foretrace/error.h"
#include "import/common/rank_name.h"
#include "import/files.h"

namespace foretrace {
namespace {

std::string kineto(const std::string& name, const std::string& more = "") {
  return R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": ")" + name +
         R"(", "pid": 0, "tid": 7, "ts": 1, "dur": 2}])" + more + "}";
}

std::string ranked(int rank) {
  return kineto(
      "k", R"(, "distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 12})");
}

std::string first_name(const Trace& trace) {
  return std::string(trace.names[trace.devices.at(0).name]);
}

TEST(Import, ReadsEveryCompression) {
  const Folder folder;
  for (const auto& [name, bytes] :
       {std::pair<const char*, std::string>{"a.json", kineto("gemm")},
        {"a.json.gz", gzip(kineto("gemm"))},
        {"a.json.zst", zstd(kineto("gemm"))},
        {"a.tgz", gzip(tar({{"._a.json", "\1\2"}, {"a.json", kineto("gemm")}}))},
        {"a.tar", tar({{"notes.txt", "hello"}, {"a.json", kineto("gemm")}})}}) {
    EXPECT_EQ(first_name(import_trace(folder.write(name, bytes))), "gemm") << name;
  }
}

TEST(Import, AFileThatEndsEarlyIsReadUpToThere) {
  const Folder folder;
  std::string json = "{\"traceEvents\": [";
  for (int i = 0; i < 2000; ++i) {
    json += R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 1, "ts": )" +
            std::to_string(i * i * 7 % 10007) + "},\n";
  }
  const std::string packed = gzip(json + "{}]}");
  const Trace trace = import_trace(folder.write("a.json.gz", packed.substr(0, packed.size() / 2)));
  EXPECT_GT(trace.devices.size(), 100U);
  EXPECT_LT(trace.devices.size(), 2000U);
  ASSERT_EQ(trace.notes.all().size(), 1U);
  EXPECT_EQ(trace.notes.all()[0].text,
            "the trace is cut off in the middle of an event: the gzip data ends in the middle; "
            "everything before that was read");
}

// CUPTI and ROCm record mangled names; a name that only looks so stays.
TEST(Import, MangledNamesOfKernelsBecomeReadable) {
  const Folder folder;
  for (const auto& [name, shown] :
       {std::pair<const char*, const char*>{"_ZN2at6native4copyIfEEvPT_",
                                            "void at::native::copy<float>(float*)"},
        {"_Z4sgdKPf.kd", "sgdK(float*)"},
        {"_ZN5cudnn3fwdEv.kd", "cudnn::fwd()"},
        {"_Zhang_kernel", "_Zhang_kernel"}}) {
    EXPECT_EQ(first_name(import_trace(folder.write("a.json", kineto(name)))), shown);
  }
}

TEST(Import, AnArchiveOfSeveralTracesIsNotOneTrace) {
  const Folder folder;
  const std::string archive =
      folder.write("x.tar.gz", gzip(tar({{"a.json", kineto("a")}, {"b.json", kineto("b")}})));
  EXPECT_EQ(
      failure([&] { import_trace(archive); }),
      archive + ": must contain one trace, but contains 2, such as \"" + archive + ":a.json\"");
  EXPECT_EQ(first_name(import_trace(archive + ":b.json")), "b");
  EXPECT_EQ(import_all(archive).size(), 2U);
}

TEST(Import, AnArchiveIsReadOnTheWayOverItsMembers) {
  const Folder folder;
  const std::string pickle = "\x80\x04}.";  // Looks like a snapshot until it is read.
  const std::string two =
      folder.write("two.tar", tar({{"a.pickle", pickle}, {"b.json", kineto("b")}}));
  EXPECT_EQ(failure([&] { import_trace(two); }),
            two + ": must contain one trace, but contains 2, such as \"" + two + ":a.pickle\"");
  const std::string one = folder.write("one.tar", tar({{"a.pickle", pickle}, {"b.txt", "b"}}));
  EXPECT_EQ(failure([&] { import_trace(one); }), failure([&] { import_trace(one + ":a.pickle"); }));
}

TEST(Import, TheNameOfAFileGivesTheRankThatTheRecordingDoesNotSay) {
  const Folder folder;
  const Trace named = import_trace(folder.write("rank3.json", kineto("k")));
  EXPECT_EQ(named.rank, 3);
  EXPECT_FALSE(named.rank_is_known);
  const Trace known = import_trace(folder.write("known_rank3.json", ranked(0)));
  EXPECT_EQ(known.rank, 0);
  EXPECT_TRUE(known.rank_is_known);
  write_ftrace(known, folder / "kept_rank3.ftrace");
  EXPECT_TRUE(import_trace(folder / "kept_rank3.ftrace").rank_is_known);
}

TEST(Import, AFolderIsReadInTheOrderOfRanks) {
  const Folder folder;
  folder.write("a.json", ranked(10));
  folder.write("b.json.gz", gzip(ranked(2)));
  folder.write("readme.txt", "no trace");
  folder.write(".hidden.json", ranked(5));
  folder.write("c.json", "{\"traceEvents\": [{\"ph\"");
  const std::vector<Trace> traces = import_all(folder.path());
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].rank, 2);
  EXPECT_EQ(traces[1].rank, 10);
  EXPECT_EQ(traces[1].world_size, 12);
  EXPECT_EQ(traces[0].notes.count("files next to the traces that are not traces"), 1);
  EXPECT_EQ(traces[0].notes.count("traces that could not be read"), 1);
}

TEST(Import, TracesAreHandedOverByThemselves) {
  const Folder folder;
  folder.write("a.json", ranked(10));
  folder.write("b.json", ranked(2));
  folder.write("c.json", ranked(7));
  folder.write("readme.txt", "no trace");
  std::mutex mutex;
  std::map<std::size_t, std::int32_t> ranks;
  const ImportedFolder found =
      import_each(folder.path(), {}, [&](std::size_t number, const Trace& trace) {
        const std::lock_guard lock(mutex);
        ranks.emplace(number, trace.rank);
      });
  ASSERT_EQ(found.order.size(), 3U);
  EXPECT_EQ(ranks.at(found.order[0]), 2);
  EXPECT_EQ(ranks.at(found.order[1]), 7);
  EXPECT_EQ(ranks.at(found.order[2]), 10);
  EXPECT_EQ(found.notes.count("files next to the traces that are not traces"), 1);
  const auto fails = [](std::size_t, const Trace&) { throw TraceError("enough"); };
  EXPECT_THROW(import_each(folder.path(), {}, fails), TraceError);
}

TEST(Import, RecordingsOfTwoRunsInAFolderAreNoted) {
  const Folder folder;
  folder.write("a.json", ranked(0));
  folder.write("b.json", ranked(0));
  EXPECT_EQ(import_all(folder.path())[0].notes.count(kRepeatedRank), 1);
}

TEST(Import, RanksComeFromTheNamesOfFilesWhereNothingElseTellsThem) {
  const Folder folder;
  for (const int rank : {10, 0, 9})
    folder.write("rank" + std::to_string(rank) + ".json", kineto("k"));
  const std::vector<Trace> traces = import_all(folder.path());
  ASSERT_EQ(traces.size(), 3U);
  EXPECT_EQ(traces[1].rank, 9);
  EXPECT_EQ(traces[0].world_size, 11);
}

TEST(Import, TracesInFoldersOfAFolderAreFound) {
  const Folder folder;
  folder.write("0/trace.json", ranked(0));
  folder.write("1/trace.json", ranked(1));
  EXPECT_EQ(import_all(folder.path()).size(), 2U);
}

TEST(Import, RankInName) {
  const std::pair<const char*, int> cases[] = {
      {"rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0},
      {"/x/host_rank3_0.json", 3},
      {"worker5_step_12.json", 5},
      {"/rank7/trace.json", -1},
      {"x_Rank=12.json", 12},
      {"franking.json", -1},
      {"rank_nothing.json", -1},
  };
  for (const auto& [name, rank] : cases) EXPECT_EQ(rank_in_name(name).value_or(-1), rank) << name;
}

TEST(Import, SaysWhatIsWrong) {
  const Folder folder;
  std::filesystem::create_directory(folder / "empty");
  folder.write("text/a.txt", "hello");
  const std::string sqlite("SQLite format 3\0xxxx", 20);
  const std::string half = gzip(kineto("k")).substr(0, 12);
  const std::pair<std::string, std::string> cases[] = {
      {folder / "missing.json", "cannot be opened: No such file or directory"},
      {folder / "empty", "must be one trace, but is a folder"},
      {folder.write("empty.json", ""), "must be a trace, but is empty"},
      {folder.write("blank.json", "\n\n"), "must be a trace, but is blank"},
      {folder.write("noise.bin", "\xde\xad\xbe\xef"),
       "must be a trace, but is of an unknown format (it starts with the bytes de ad be ef)"},
      {folder.write("x.sqlite", sqlite),
       "must be a trace, but is a SQLite database that cannot be read: the table sqlite_schema "
       "cannot be read: file is not a database"},
      {folder.write("mark.json", std::string("\xff\xfe{\0\"\0", 6)),
       "must be a trace, but is text in UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t "
       "UTF-8 "
       "FILE > NEW"},
      {folder.write("no_mark.json", std::string("\0[\0{", 4)),
       "must be a trace, but is text in UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t "
       "UTF-8 "
       "FILE > NEW"},
      {folder.write("run.nsys-rep", "\xde\xad\xbe\xef"),
       "must be a trace, but is an Nsight Systems report; export it first: nsys export --type "
       "sqlite " +
           (folder / "run.nsys-rep")},
      {folder.write("k.ncu-rep", "\xde\xad\xbe\xef"),
       "must be a trace, but is an Nsight Compute report, which has no timeline; record with nsys "
       "profile"},
      {folder.write("x.pickle", "\x80\x04\x95"),
       "the pickle is cut off: it needs 8 more bytes and has 0, at byte 2"},
      {folder.write("et.json", R"({"schema": "1.0.1", "pid": 1, "nodes": []})"),
       "must contain nodes, but its list of nodes is empty"},
      {folder.write("chakra.json", R"({"version": "0.0.4"}{"id": "1", "durationMicros": "5"})"),
       "must be a trace, but is a Chakra execution trace as JSON; give the .et file that it was "
       "made from"},
      {folder.write("comm.json", R"({"communicators": []})"),
       "must be a trace, but is a list of communicators"},
      {folder.write("half.json.gz", half),
       "must contain events, but ends before the first one: the gzip data ends in the middle"},
      {folder.write("none.tar", tar({{"a.txt", "hello"}})),
       "must contain a trace, but a.txt is of an unknown format (it starts with the bytes 68 65 6c "
       "6c)"},
      {folder.write("lfs.json.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
       "must be a trace, but is a Git LFS pointer to one; \"git lfs pull\" fetches the file "
       "itself"},
      {folder.write("cut.ftrace", std::string("\x89"
                                              "FTRC\r\n\x1a\1\0\0\0\0\0\0\0",
                                              16)),
       "must be a whole .ftrace file, but is cut off"},
  };
  for (const auto& [path, message] : cases) {
    EXPECT_EQ(failure([&path = path] { import_trace(path); }), path + ": " + message);
  }
  EXPECT_EQ(failure([&] { import_all(folder / "empty"); }),
            (folder / "empty") + ": must contain a trace, but none of its 0 files is one");
  EXPECT_EQ(
      failure([&] { import_all(folder / "text"); }),
      (folder / "text") + ": must contain a trace, but none of its 1 file is one (" +
          (folder / "text/a.txt") +
          ": must be a trace, but is of an unknown format (it starts with the bytes 68 65 6c 6c))");
}

TEST(Import, EveryImporterHasASummary) {
  EXPECT_FALSE(importers().empty());
  for (const ImporterEntry& importer : importers())
    EXPECT_FALSE(importer.summary.empty()) << importer.name;
}

TEST(Sha256, AgreesWithTheStandard) {
  const Folder folder;
  EXPECT_EQ(sha256_of_file(folder.write("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_file(folder.write("empty", "")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of_file(folder.write("a", std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace foretrace
