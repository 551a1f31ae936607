#pragma once

// Records a played program as a user does, and returns everything that a test compares: what the
// program reports, the content of the spool, and the trace.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foretrace/trace.h"
#include "trace/spool.h"

namespace foretrace {

/// Variables on top of those of the test, in the manner of env(1).
using Environment = std::map<std::string, std::string>;

struct Ended {
  int status = -1;  ///< 128 plus the signal, if one ended it.
  std::string out;
  std::string err;
};

/// Runs a program to its end, with no signal ignored.
Ended run_program(const std::vector<std::string>& command, const Environment& environment);

/// Counts what the program says CUPTI did with records of one kind.
struct Emitted {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;
  std::uint64_t untimed = 0;
  std::uint64_t bytes = 0;
};

/// By its last report: "kernel", "copy", "peer_copy", "fill", "runtime", "driver", "sync", "event",
/// "memory", "pool", "overhead" ...
std::map<std::string, Emitted> emitted(const std::string& out);
/// The number after the last line that begins with `key` and a blank; -1 if there is none.
std::int64_t told(const std::string& out, const std::string& key);

/// Counts the rows of a spool, by the same names.
struct Spooled {
  spool::Header header;
  std::map<std::string, std::uint64_t> rows;
  std::uint64_t damaged_chunks = 0;
};
Spooled count_rows(const std::string& spool);

struct Recipe {
  std::vector<std::string> options = {};  ///< Options passed to `foretrace collect`.
  std::vector<std::string> program = {};  ///< Arguments of played_app.
  Environment environment = {};
  std::string app = {};    ///< The program to run instead of played_app.
  std::string cupti = {};  ///< Folder of libcupti; that of the stand-in for CUDA 13 if empty.
  std::string output = "out.ftrace";
};

class Recording {
 public:
  explicit Recording(const Recipe& recipe);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Ended ended;
  std::map<std::string, Emitted> emitted;
  std::vector<std::string> spools;  ///< Paths.

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// The trace of the one process that was recorded. Fails the test if there is none.
  const Trace& trace();
  Spooled spooled() const;  ///< Reads the first spool.
  bool has_trace() const;

 private:
  std::filesystem::path folder_;
  std::string output_;
  std::unique_ptr<Trace> trace_;
};

/// Expects that every record that CUPTI wrote, as the program reports it, is in the spool or
/// counted as lost, and that the spool has nothing else. Overhead is left out, because flushing
/// adds more of it.
void expect_all_accounted(const Recording& recording);
/// Expects the same, and that nothing was lost.
void expect_all_there(const Recording& recording);

/// The names of device records, with the number of each.
std::map<std::string, int> kernels_of(const Trace& trace);
std::map<std::string, int> host_names_of(const Trace& trace, HostKind kind);
/// The text and count of each note.
std::map<std::string, std::int64_t> notes_of(const Trace& trace);

}  // namespace foretrace
