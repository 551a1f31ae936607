// Small files that unpack to, or represent, much more than their size; and archives that lie.

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "import/common/huge_sizes.h"
#include "import/files.h"
#include "import/files/archive.h"
#include "import/files/trace_file.h"
#include "import/torch_memory/pickle.h"
#include "import/torch_memory/torch_memory.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

std::string kineto_of(const std::string& kernel) {
  return R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": ")" + kernel +
         R"(", "ts": 1, "dur": 2, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}]})";
}

/// An archive as libarchive writes it. The content of a link is its target.
struct Member {
  std::string name, bytes;
  unsigned type = AE_IFREG;
};
std::string archive_of(const std::vector<Member>& members, int format, const char* filter = "") {
  std::string out(std::size_t{1} << 22, '\0');
  std::size_t used = 0;
  struct archive* const writer = archive_write_new();
  archive_write_set_format(writer, format);
  if (*filter != '\0') archive_write_add_filter_by_name(writer, filter);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const Member& member : members) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_filetype(entry, member.type);
    archive_entry_set_perm(entry, 0644);
    if (member.type == AE_IFLNK) archive_entry_set_symlink(entry, member.bytes.c_str());
    const bool has_bytes = member.type == AE_IFREG;
    archive_entry_set_size(entry, has_bytes ? static_cast<std::int64_t>(member.bytes.size()) : 0);
    archive_write_header(writer, entry);
    if (has_bytes) archive_write_data(writer, member.bytes.data(), member.bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

std::vector<std::string> kernels_in(const std::string& path) {
  std::vector<std::string> names;
  for (const Trace& trace : import_all(path)) {
    for (const DeviceRecord& record : trace.devices) names.emplace_back(trace.names[record.name]);
  }
  return names;
}

TEST(UnpackBudget, RealRatiosAreFarFromTheLimit) {
  UnpackBudget budget;
  budget.add_packed(std::size_t{400} << 20);
  for (int i = 0; i < 15; ++i) budget.add_unpacked(UnpackStage::file, std::size_t{1} << 30);
  SUCCEED();
}

TEST(UnpackBudget, WhatNoRecordingReachesIsRefused) {
  UnpackBudget budget;
  budget.add_packed(std::size_t{1} << 20);
  EXPECT_EQ(failure([&] {
              for (int i = 0; i < 1000; ++i)
                budget.add_unpacked(UnpackStage::file, std::size_t{1} << 20);
            }),
            "unpacks to more than 200 times its size, as no recording does (269.5 MB from 1.049 "
            "MB); if it is a recording, allow it with --max-unpacked 16GiB");
}

TEST(UnpackBudget, AllTheSameNoTraceHasMoreThanIsAllowed) {
  UnpackBudget budget;
  const auto unpack = [&](int gigabytes) {
    for (int i = 0; i < gigabytes; ++i) {
      budget.add_packed(std::size_t{100} << 20);
      budget.add_unpacked(UnpackStage::archive, std::size_t{1} << 30);
    }
  };
  unpack(16);
  budget.begin_trace();
  unpack(16);
  EXPECT_EQ(
      failure([&] { unpack(1); }),
      "unpacks to more than 16GiB, the most that is allowed; --max-unpacked 32GiB allows more");
}

TEST(UnpackBudget, TheUserMayAllowMoreOrLess) {
  UnpackBudget more(std::int64_t{64} << 30);
  for (int i = 0; i < 60; ++i) more.add_unpacked(UnpackStage::file, std::size_t{1} << 30);
  UnpackBudget less(1000);
  less.add_unpacked(UnpackStage::file, 1000);
  EXPECT_EQ(failure([&] { less.add_unpacked(UnpackStage::file, 1); }),
            "unpacks to more than 1kB, the most that is allowed; --max-unpacked 2kB allows more");
}

TEST(Limits, EveryCompressionIsCounted) {
  const Folder folder;
  const std::string text = kineto_of(std::string(100'000, 'k'));
  const std::pair<std::string, std::string> packed[] = {
      {"a.json.gz", gzip(text)},
      {"a.json.zst", zstd(text)},
      {"a.json.xz", archive_of({{"a", text}}, ARCHIVE_FORMAT_RAW, "xz")},
      {"a.json.bz2", archive_of({{"a", text}}, ARCHIVE_FORMAT_RAW, "bzip2")},
      {"a.tar.gz", gzip(tar({{"a.json", text}}))},
      {"b.tar", tar({{"a.json.gz", gzip(text)}})},
      {"a.zip", archive_of({{"a.json", text}}, ARCHIVE_FORMAT_ZIP)},
      {"a.tar.xz", archive_of({{"a.json", text}}, ARCHIVE_FORMAT_TAR_USTAR, "xz")}};
  for (const auto& [name, bytes] : packed) {
    const std::string path = folder.write(name, bytes);
    EXPECT_EQ(kernels_in(path).size(), 1U) << name;
    EXPECT_EQ(import_all(path, {.max_unpacked = 200'000}).size(), 1U) << name;
    const std::string refused = failure([&] { import_all(path, {.max_unpacked = 90'000}); });
    EXPECT_NE(refused.find("unpacks to more than 90kB, the most that is allowed"),
              std::string::npos)
        << name << ": " << refused;
    EXPECT_EQ(refused.find(path), 0U) << refused;
  }
}

TEST(Limits, APlainFileMayHaveAnySize) {
  const Folder folder;
  EXPECT_EQ(import_all(folder.write("a.json", kineto_of("k")), {.max_unpacked = 10}).size(), 1U);
}

TEST(Archive, IsReadInOnePass) {
  const Folder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 300; ++i) members.emplace_back(std::to_string(i) + ".json", kineto_of("k"));
  EXPECT_EQ(kernels_in(folder.write("x.tar.gz", gzip(tar(members)))).size(), 300U);
}

TEST(Archive, NamesAreOnlyNames) {
  const Folder folder;
  const std::string outside = folder / "outside.json";
  const std::vector<Member> members = {{"/etc/passwd.json", kineto_of("absolute")},
                                       {"../../up.json", kineto_of("up")},
                                       {"d/", "", AE_IFDIR},
                                       {"fifo", "", AE_IFIFO},
                                       {"device", "", AE_IFCHR},
                                       {"link", outside, AE_IFLNK},
                                       {"\xc3\xa4.json", kineto_of("umlaut")},
                                       {"bad\xff.json", kineto_of("bytes")}};
  for (const int format :
       {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_GNUTAR}) {
    const std::string path = folder.write("x.tar", archive_of(members, format));
    EXPECT_EQ(kernels_in(path), (std::vector<std::string>{"absolute", "up", "umlaut", "bytes"}))
        << format;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "up.json"));
}

TEST(Archive, OfTwoMembersOfOneNameTheFirstIsRead) {
  const Folder folder;
  const std::string path =
      folder.write("x.tar", tar({{"a.json", kineto_of("first")}, {"a.json", kineto_of("second")}}));
  EXPECT_EQ(kernels_in(path), std::vector<std::string>{"first"});
  const auto notes = import_all(path)[0].notes.all();
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0].example,
            path + ": a.json is a second member of the same name; only the first can be named");
}

TEST(Archive, ACutOneGivesWhatIsThereAndSaysSo) {
  const Folder folder;
  const std::string whole = tar({{"a.json", kineto_of("a")}, {"b.json", kineto_of("b")}});
  const std::string path = folder.write("x.tar", whole.substr(0, 1024 + 600));
  const auto traces = import_all(path);
  ASSERT_EQ(traces.size(), 1U);
  const auto& notes = traces[0].notes.all();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const Note& note) {
    return note.severity == Severity::warning &&
           note.example.find("in the middle") != std::string::npos;
  }));
}

TEST(Archive, AZipIsOneOnlyIfItIsCalledSo) {
  const Folder folder;
  const std::string bytes = archive_of({{"a.json", kineto_of("zipped")}}, ARCHIVE_FORMAT_ZIP);
  EXPECT_EQ(kernels_in(folder.write("x.zip", bytes)), std::vector<std::string>{"zipped"});
  const std::string checkpoint = folder.write("model.pt", bytes);
  EXPECT_EQ(
      failure([&] { import_all(checkpoint); }),
      checkpoint +
          ": must be a trace, but is a zip archive; unpack it first, or rename it to end in .zip");
}

TEST(Limits, APickleOfNothingButEmptyListsIsRefused) {
  std::string bytes = "\x80\x04(" + std::string(30 * kMebibyte, ']') + "l.";
  const std::string refused = failure([&] { read_pickle(std::move(bytes)); });
  EXPECT_NE(refused.find("must be a snapshot, but consists of more and smaller values than any"),
            std::string::npos)
      << refused;
  std::string json = "[[]";
  for (int i = 0; i < 8 * kMebibyte; ++i) json += ",[]";
  EXPECT_NE(failure([&] { read_plain_json(json + "]"); }), "no error");
}

TEST(Limits, HugeSizesAreLeftOutOfEveryTrace) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  Trace trace;
  trace.threads.push_back({});
  const auto event = [&](std::int64_t bytes, std::int64_t total = -1) {
    trace.memory.push_back({.time_ns = std::ssize(trace.memory),
                            .bytes = bytes,
                            .total_allocated = total,
                            .device = 0});
  };
  event(512, kHuge);
  event(kHuge);
  event(-kHuge);
  event(std::numeric_limits<std::int64_t>::min());
  event(-512);
  // No sum may overflow either, however many events there are.
  for (int i = 0; i < 5000; ++i) event(std::int64_t{1} << 46);
  trace.devices.push_back({.bytes = kHuge});
  trace.segments.push_back({.address = ~std::uint64_t{0} - 5, .bytes = 512});
  trace.blocks.push_back({.bytes = 512});
  leave_out_huge_sizes(trace);
  std::int64_t sum = 0;
  for (const MemoryRecord& record : trace.memory) sum += std::abs(record.bytes);
  EXPECT_LE(sum, std::int64_t{1} << 56);
  EXPECT_EQ(trace.memory[0].bytes, 512);
  EXPECT_EQ(trace.memory[0].total_allocated, -1);
  EXPECT_EQ(trace.memory[1].bytes, -512);
  EXPECT_EQ(trace.devices[0].bytes, 0);
  EXPECT_TRUE(trace.segments.empty());
  EXPECT_TRUE(trace.blocks.empty());
  EXPECT_EQ(trace.notes.all().size(), 4U);
}

TEST(Limits, NumbersAtTheEndOfTheirRangeAreOnlyOdd) {
  const Folder folder;
  for (const std::string number : {"9223372036854775807", "-9223372036854775808",
                                   "18446744073709551615", "4611686018427387904", "1e300"}) {
    std::string text = R"json({"traceEvents": [
      {"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "dur": 9, "pid": N, "tid": N},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1, "pid": N,
       "tid": N, "args": {"correlation": N, "External id": N}},
      {"ph": "X", "cat": "kernel", "name": "k", "ts": 4, "dur": 2, "pid": N, "tid": N, "args":
       {"device": N, "stream": N, "correlation": N, "grid": [N, N, N], "block": [N, N, N]}},
      {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 7, "dur": 1, "pid": 0, "tid": 7,
       "args": {"device": 0, "stream": 7, "bytes": N, "memory bandwidth (GB/s)": N}},
      {"ph": "s", "cat": "fwdbwd", "id": N, "ts": 1, "pid": N, "tid": N},
      {"ph": "i", "name": "[memory]", "ts": 3, "pid": N, "tid": N, "args": {"Bytes": N, "Addr": N,
       "Device Type": 1, "Device Id": 0, "Total Allocated": N, "Total Reserved": N}}]})json";
    for (std::size_t at = 0; (at = text.find(" N", at)) != std::string::npos;)
      text.replace(at + 1, 1, number);
    for (std::size_t at = 0; (at = text.find("[N", at)) != std::string::npos;)
      text.replace(at + 1, 1, number);
    EXPECT_NO_THROW(infer(import_trace(folder.write("a.json", text)))) << number;
  }
}

}  // namespace
}  // namespace foretrace
