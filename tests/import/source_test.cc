#include "import/files/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "import/files/archive.h"
#include "import/files/trace_file.h"

namespace foretrace {
namespace {

struct Read {
  std::string text;
  std::string damage;
};

Read read_all(Source& source, std::size_t step) {
  Read read;
  std::string chunk(step, '\0');
  while (const std::size_t got = source.read(chunk.data(), chunk.size()))
    read.text.append(chunk, 0, got);
  read.damage = source.damage();
  return read;
}

/// Decompresses in steps of several sizes, and expects the same result from each.
Read decompress(const std::string& bytes) {
  Read first;
  for (const std::size_t step : {1, 7, 1000, 1 << 20}) {
    const auto source = decompressed(std::make_unique<TextSource>(bytes, step));
    const Read read = read_all(*source, step + 3);
    if (step != 1) {
      EXPECT_EQ(read.text, first.text) << step;
      EXPECT_EQ(read.damage, first.damage) << step;
    }
    first = read;
  }
  return first;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "event " + std::to_string(i * i) + "\n";
  return text;
}

TEST(Source, PlainBytesStayAsTheyAre) {
  EXPECT_EQ(decompress("hello").text, "hello");
  EXPECT_EQ(decompress("").text, "");
}

TEST(Source, GzipIsUndone) { EXPECT_EQ(decompress(gzip(long_text())).text, long_text()); }

TEST(Source, GzipMayTellItsNameWhereverItIsCut) {
  const auto named = [](std::string bytes, const std::string& name) {
    bytes[3] = 8;  // A name follows the first 10 bytes.
    return bytes.insert(10, name + '\0');
  };
  const std::string bytes =
      named(gzip("one "), "rank0.pt.trace.json") + named(gzip("two"), std::string(2000, 'n'));
  EXPECT_EQ(decompress(bytes).text, "one two");
  EXPECT_EQ(decompress(bytes).damage, "");
}

TEST(Source, AllMembersOfGzipAreRead) {
  const Read read = decompress(gzip("one ") + gzip("") + gzip(long_text()) + gzip("three"));
  EXPECT_EQ(read.text, "one " + long_text() + "three");
  EXPECT_EQ(read.damage, "");
}

TEST(Source, PaddingBehindGzipIsIgnored) {
  EXPECT_EQ(decompress(gzip("one") + std::string(512, '\0')).text, "one");
  EXPECT_EQ(decompress(gzip("one") + std::string(512, '\0')).damage, "");
}

TEST(Source, GzipThatEndsEarlyGivesWhatIsThere) {
  const std::string whole = gzip(long_text());
  const Read read = decompress(whole.substr(0, whole.size() / 2));
  EXPECT_GT(read.text.size(), 1000U);
  EXPECT_EQ(read.text, long_text().substr(0, read.text.size()));
  EXPECT_EQ(read.damage, "the gzip data ends in the middle");
}

TEST(Source, DamagedGzipIsNoticed) {
  std::string bytes = gzip(long_text());
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);
  EXPECT_EQ(decompress(bytes).damage, "the gzip data is damaged");
}

TEST(Source, ZstdFramesAreUndone) {
  const Read read = decompress(zstd("one ") + zstd(long_text()));
  EXPECT_EQ(read.text, "one " + long_text());
  EXPECT_EQ(read.damage, "");
}

TEST(Source, ZstdThatEndsEarlyIsNoticed) {
  const std::string whole = zstd(long_text());
  EXPECT_EQ(decompress(whole.substr(0, whole.size() - 3)).damage,
            "the zstd data ends in the middle");
}

TEST(Source, AGitLfsPointerIsNoTrace) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  try {
    decompressed(std::make_unique<TextSource>(pointer));
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_STREQ(error.what(),
                 "must be a trace, but is a Git LFS pointer to one; \"git lfs pull\" fetches the "
                 "file itself");
  }
}

TEST(Source, AMissingFileIsSaid) {
  EXPECT_EQ(failure([] { TraceFile("/nonexistent/x.json").open(); }),
            "/nonexistent/x.json: cannot be opened: No such file or directory");
}

TEST(Source, APipeIsRefusedInsteadOfWaitedFor) {
  const Folder folder;
  const std::string pipe = folder / "pipe.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const char* what = ": must be a file, but is a pipe or device; save its output to a file first";
  EXPECT_EQ(failure([&] { TraceFile(pipe).open(); }), pipe + what);
  EXPECT_EQ(failure([&] { import_trace(pipe); }), pipe + what);
  EXPECT_EQ(failure([] { TraceFile("/dev/null").open(); }), std::string("/dev/null") + what);
}

TEST(Archive, MembersAreReadInOrder) {
  const std::string bytes =
      tar({{"a.json", "first"}, {"folder/b.json", long_text()}, {"empty", ""}});
  TextSource source(bytes, 100);
  ArchiveReader reader(source);
  std::vector<std::string> names;
  std::vector<std::size_t> sizes;
  while (reader.next()) {
    names.push_back(reader.name());
    sizes.push_back(read_all(*member_source(reader), 50).text.size());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a.json", "folder/b.json", "empty"}));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, long_text().size(), 0}));
}

TEST(Archive, MembersMayBeSkipped) {
  const std::string bytes = tar({{"a.json", long_text()}, {"b.json", "second"}});
  TextSource source(bytes, 100);
  ArchiveReader reader(source);
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(read_all(*member_source(reader), 50).text, "second");
  EXPECT_FALSE(reader.next());
}

TEST(Archive, AnArchiveThatEndsEarlyIsNoticed) {
  const std::string bytes = tar({{"a.json", long_text()}});
  TextSource source(bytes.substr(0, 5000));
  ArchiveReader reader(source);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(read_all(*member_source(reader), 50).damage, "the archive ends in the middle");
}

/// The damage that an archive of two members reports after both were read.
std::string damage_of(const std::string& bytes) {
  TextSource source(bytes, 100);
  ArchiveReader reader(source);
  while (reader.next()) {
  }
  return reader.damage();
}

TEST(Archive, MembersThatMayBeMissingAreNoticed) {
  const std::string bytes = tar({{"a.json", "first"}, {"b.json", long_text()}});
  EXPECT_EQ(damage_of(bytes), "");
  EXPECT_EQ(damage_of(bytes.substr(0, 1024)), "");  // Nothing shows that there was a second one.
  for (const std::size_t size : {512 + 3, 1024 + 3, 1536 + 3, 1536 + 600})
    EXPECT_EQ(damage_of(bytes.substr(0, size)), "the archive ends in the middle") << size;
  std::string wrong = bytes;
  wrong[1024] ^= 1;  // In the name of the second member, whose checksum is then wrong.
  EXPECT_EQ(damage_of(wrong), "the archive is damaged");
}

TEST(Archive, AMissingMemberIsSaidOfTheTracesThatAreThere) {
  const Folder folder;
  const std::string events =
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7, "correlation": 1}}]})";
  const std::string whole = gzip(tar({{"rank0.json", events}, {"rank1.json", events}}));
  constexpr auto kNote = "the archive is cut off or damaged; everything after that is missing";
  const auto notes = [&](const std::string& bytes) {
    return import_all(folder.write("job.tar.gz", bytes)).front().notes.count(kNote);
  };
  EXPECT_EQ(notes(whole), 0);
  EXPECT_EQ(notes(whole.substr(0, whole.size() - 5)), 1);
}

TEST(Archive, AMemberIsNamedBehindAColon) {
  const Folder folder;
  const std::string archive =
      folder.write("x.tar.gz", gzip(tar({{"r/a.json", "first"}, {"b.json.gz", gzip("second")}})));
  EXPECT_EQ(read_all(*TraceFile(archive + ":r/a.json").open(), 50).text, "first");
  EXPECT_EQ(read_all(*TraceFile(archive + ":b.json.gz").open(), 50).text, "second");
  EXPECT_EQ(failure([&] { TraceFile(archive + ":c").open(); }),
            archive + ":c: the archive has no such member");
}

}  // namespace
}  // namespace foretrace
