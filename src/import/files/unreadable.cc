#include "base/contains.h"
#include "import/files/sniff.h"

namespace foretrace {

namespace {

std::string describe_json(std::string_view head) {
  if (contains(head, "\"traceEvents\"") || contains(head, "\"schemaVersion\"")) return {};
  if (contains(head, "\"inspector_output_format_version\""))
    return "a log of NCCL Inspector, which has no timeline; ask foretrace collective auto "
           "--against FILE";
  if (contains(head, "\"communicators\"")) return "a list of communicators";
  if (contains(head, "\"dataDeps\"") || contains(head, "\"durationMicros\""))
    return "a Chakra execution trace as JSON; give the .et file that it was made from";
  if (head.starts_with("[[") && !head.starts_with("[[[[") && !contains(head, "{"))
    return "a PyTorch memory timeline, which has no tasks";
  return {};
}

/// Whether it is text in UTF-16, which begins with a mark or, as JSON does, with a sign of ASCII.
bool is_utf16(std::string_view head) {
  if (head.size() < 4) return false;
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  const std::size_t sign = head[0] == 0 ? 1 : 0;
  const bool is_json = head[sign] == '{' || head[sign] == '[';
  return is_json && head[1 - sign] == 0 && head[3 - sign] == 0;
}

/// Reports that the profilers of NVIDIA write for their own programs.
std::string describe_report(const std::string& path, std::string_view head) {
  const std::string_view name = path;
  if (name.ends_with(".ncu-rep"))
    return "an Nsight Compute report, which has no timeline; record with nsys profile";
  const bool of_nsys = head.starts_with("NVTX") || head.starts_with("NSYS") ||
                       name.ends_with(".nsys-rep") || name.ends_with(".qdrep") ||
                       name.ends_with(".qdstrm");
  return of_nsys ? "an Nsight Systems report; export it first: nsys export --type sqlite " + path
                 : std::string();
}

std::string describe_binary(std::string_view head) {
  if (head.starts_with("PK\x03\x04"))
    return "a zip archive; unpack it first, or rename it to end in .zip";
  if (head.size() > 512 && head.substr(257, 5) == "ustar")
    return "an archive inside another; unpack it first";
  if (head.starts_with("BZh")) return "bzip2 data; unpack it first";
  if (head.starts_with("\xfd"
                       "7zXZ"))
    return "xz data; unpack it first";
  if (head.starts_with("\x7f"
                       "ELF"))
    return "a program";
  return {};
}

std::string describe_database(const SqliteSniff& found) {
  switch (found.kind) {
    case SqliteKind::none:
    case SqliteKind::nsys:
    case SqliteKind::rocpd:
      return {};
    case SqliteKind::nvprof:
      return "a SQLite database of nvprof, the predecessor of Nsight Systems; record with nsys "
             "profile and export with nsys export --type sqlite";
    case SqliteKind::damaged:
      return "a SQLite database that cannot be read: " + found.damage;
    case SqliteKind::other:
      break;
  }
  return "a SQLite database without the tables of a profiler";
}

}  // namespace

std::string describe_unreadable(const Sniffed& file) {
  if (is_utf16(file.head))
    return "text in UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8 FILE > NEW";
  const std::size_t start = file.head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return file.head.empty() ? "empty" : "blank";
  const std::string_view head = file.head.substr(start);
  if (head[0] == '{' || head[0] == '[') return describe_json(head);
  if (head.starts_with("<!DOCTYPE") || head.starts_with("<html") || head.starts_with("<?xml")) {
    return "a web page or XML";
  }
  if (const std::string database = describe_database(file.database); !database.empty())
    return database;
  const std::string report = describe_report(file.file.path(), head);
  return report.empty() ? describe_binary(head) : report;
}

}  // namespace foretrace
