#include "base/files/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files/packed_file.h"
#include "base/files/temporary_file.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  std::string in(const std::string& name) const { return folder_ / name; }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(in(name), std::ios::binary) << text;
    return in(name);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  static unsigned rights(const std::string& path) {
    struct stat found = {};
    ::stat(path.c_str(), &found);
    return found.st_mode & 07777;
  }

  Folder folder_;
};

std::string message(const std::function<void()>& action) {
  try {
    action();
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(NewFileTest, TheOldFileStaysUntilTheNewOneIsWhole) {
  const std::string path = put("x", "old");
  NewFile file(path);
  file.write("ne");
  file.write("w");
  EXPECT_EQ(contents_of(path), "old");
  file.commit();
  EXPECT_EQ(contents_of(path), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, WhatIsNotCommittedLeavesNothing) {
  const std::string path = put("x", "old");
  {
    NewFile file(path);
    file.write("new");
    EXPECT_EQ(files(), 2U);
  }
  EXPECT_EQ(contents_of(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, AnExceptionOfTheOneWhoWritesLeavesTheOldFile) {
  const std::string path = put("x", "old");
  EXPECT_EQ(message([&] {
              write_new_file(path, [](std::ostream& out) {
                out << std::string(1 << 20, 'n');
                throw Error("no more");
              });
            }),
            "no more");
  EXPECT_EQ(contents_of(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, ManyBlocksArriveInOrder) {
  std::string expected;
  write_new_file(in("x"), [&](std::ostream& out) {
    for (int i = 0; i < 50'000; ++i) {
      out << i << '\n';
      expected += std::to_string(i) + '\n';
    }
  });
  EXPECT_EQ(contents_of(in("x")), expected);
}

TEST_F(NewFileTest, KeepsRightsEvenWhileItIsWritten) {
  const std::string path = put("x", "old");
  ::chmod(path.c_str(), 0604);
  NewFile file(path);
  EXPECT_EQ(rights(file.temporary_path()), 0600U);
  file.commit();
  EXPECT_EQ(rights(path), 0604U);
}

// A user who is in no group 12345 cannot give the new file to it. The file is then of another
// group, which gets the rights of everybody, not those of group 12345.
TEST_F(NewFileTest, AnotherGroupGetsNoRightsOfTheOldOne) {
  constexpr ::uid_t kUser = 65534;
  constexpr ::gid_t kGroup = 12345;
  const std::string path = put("x", "old");
  ::chmod(folder_.path().c_str(), 0777);
  if (::chown(path.c_str(), kUser, kGroup) != 0 || ::seteuid(kUser) != 0)
    GTEST_SKIP() << "only root may give files away";
  for (const auto& [old, expected] : {std::pair(0674U, 0644U), std::pair(0660U, 0600U),
                                      std::pair(0627U, 0627U), std::pair(0606U, 0606U)}) {
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::chown(path.c_str(), kUser, kGroup), 0);
    ::chmod(path.c_str(), old);
    EXPECT_EQ(::seteuid(kUser), 0);
    write_new_file(path, "new");
    EXPECT_EQ(rights(path), expected) << std::oct << old;
  }
  EXPECT_EQ(::seteuid(0), 0);
}

TEST_F(NewFileTest, ANewFileFollowsTheMask) {
  const ::mode_t before = ::umask(027);
  write_new_file(in("x"), "new");
  write_new_file(in("y"), "new", {.is_private = true});
  ::umask(before);
  EXPECT_EQ(rights(in("x")), 0640U);
  EXPECT_EQ(rights(in("y")), 0600U);
}

TEST_F(NewFileTest, ReplacesWhatALinkLeadsTo) {
  fs::create_directory(in("far"));
  const std::string real = put("far/x", "old");
  fs::create_symlink("far/x", in("near"));
  fs::create_symlink("near", in("nearer"));
  write_new_file(in("nearer"), "new");
  EXPECT_TRUE(fs::is_symlink(in("nearer")));
  EXPECT_TRUE(fs::is_symlink(in("near")));
  EXPECT_EQ(contents_of(real), "new");
}

TEST_F(NewFileTest, ALinkToNothingYetStays) {
  fs::create_symlink("later", in("link"));
  write_new_file(in("link"), "new");
  EXPECT_TRUE(fs::is_symlink(in("link")));
  EXPECT_EQ(contents_of(in("later")), "new");
}

TEST_F(NewFileTest, ACycleOfLinksIsAnError) {
  fs::create_symlink("b", in("a"));
  fs::create_symlink("a", in("b"));
  EXPECT_EQ(message([&] { write_new_file(in("a"), "new"); }),
            "cannot write '" + in("a") + "': Too many levels of symbolic links");
}

TEST_F(NewFileTest, APrivateFileReplacesALink) {
  const std::string real = put("real", "old");
  fs::create_symlink("real", in("link"));
  write_new_file(in("link"), "new", {.is_private = true});
  EXPECT_FALSE(fs::is_symlink(in("link")));
  EXPECT_EQ(contents_of(real), "old");
  EXPECT_EQ(contents_of(in("link")), "new");
}

TEST_F(NewFileTest, SaysWhatIsWrong) {
  EXPECT_EQ(message([&] { NewFile(in("no/x")); }),
            "cannot write '" + in("no/x") + "': No such file or directory");
  EXPECT_EQ(message([&] { NewFile(folder_.path()); }),
            "cannot write '" + folder_.path() + "': Is a directory");
  EXPECT_EQ(message([&] { NewFile(folder_.path() + "/"); }),
            "cannot write '" + folder_.path() + "/': Is a directory");
  EXPECT_EQ(message([] { write_new_file("/dev/full", "new"); }),
            "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(message([] { write_new_file("/dev/full", [](std::ostream& out) { out << "new"; }); }),
            "cannot write '/dev/full': No space left on device");
}

TEST_F(NewFileTest, DescriptorsOfThisProcessAreWrittenWhereTheyAre) {
  const std::string path = put("x", "before ");
  const int opened = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  write_new_file("/dev/fd/" + std::to_string(opened), "after");
  ::close(opened);
  EXPECT_EQ(contents_of(path), "before after");
}

TEST_F(NewFileTest, ALongNameFits) {
  const std::string path = in(std::string(255, 'n'));
  write_new_file(path, "new");
  EXPECT_EQ(contents_of(path), "new");
}

TEST_F(NewFileTest, APackedFileIsReplacedWhenItIsClosed) {
  const std::string path = put("x.gz", "old");
  { PackedFile(path).write("lost"); }
  EXPECT_EQ(contents_of(path), "old");
  PackedFile file(path);
  file.write("new");
  file.close();
  EXPECT_EQ(contents_of(path).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, MoreTemporaryFilesThanAreListedForSignals) {
  std::vector<std::unique_ptr<TemporaryFile>> many;
  for (int i = 0; i < 100; ++i)
    many.push_back(std::make_unique<TemporaryFile>(folder_.path(), "x", 0600));
  EXPECT_EQ(files(), 100U);
  many.clear();
  EXPECT_EQ(files(), 0U);
}

TEST_F(NewFileTest, ASignalDeletesTemporaryFilesAndEndsTheProgramAsBefore) {
  EXPECT_EXIT(
      {
        std::signal(SIGTERM, SIG_DFL);  // Whatever the shell that runs the tests does.
        delete_temporaries_on_signals();
        const TemporaryFile one(folder_.path(), "one", 0600);
        const TemporaryFile two(folder_.path(), "two", 0600);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(files(), 0U);
}

TEST_F(NewFileTest, ALibraryLeavesSignalsAlone) {
  EXPECT_EXIT(
      {
        std::signal(SIGTERM, SIG_DFL);
        const TemporaryFile one(folder_.path(), "one", 0600);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace foretrace
