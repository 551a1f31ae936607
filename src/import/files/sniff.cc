#include "import/files/sniff.h"

#include <algorithm>
#include <set>

#include "foretrace/error.h"
#include "import/files/archive.h"
#include "import/files/unreadable.h"

namespace foretrace {

namespace {

/// macOS puts a file "._name" of attributes next to every file of an archive.
bool is_apple_double(const std::string& member) {
  const std::size_t slash = member.rfind('/');
  return member.compare(slash == std::string::npos ? 0 : slash + 1, 2, "._") == 0;
}

/// Visits the members of an archive and keeps what the first one is that is not a trace.
class Walk {
 public:
  Walk(const TraceFile& file, const std::function<void(const TraceFile&)>& visit)
      : file_(file), visit_(visit), bytes_(file.open()), archive_(*bytes_, file.budget()) {}

  ArchiveRest run() {
    while (next()) {
      if (is_apple_double(archive_.name())) continue;
      if (!names_.insert(archive_.name()).second) {
        note_other("a second member of the same name; only the first can be named");
        continue;
      }
      const TraceFile member = open_member();
      const std::string other = what_else_is(member);
      if (other.empty()) {
        visit_(member);
      } else {
        note_other(other);
      }
    }
    rest_.damage = bytes_->damage().empty() ? archive_.damage() : bytes_->damage();
    return std::move(rest_);
  }

 private:
  bool next() {
    return within(file_.path(), [&] {
      file_.budget()->begin_trace();
      return archive_.next();
    });
  }

  TraceFile open_member() {
    return {file_.path() + ":" + archive_.name(), file_.max_unpacked(),
            decompressed(member_source(archive_), file_.budget(), UnpackStage::member)};
  }

  /// Describes a member that is not a trace; empty if it is one.
  static std::string what_else_is(const TraceFile& member) {
    try {
      return importer_for(member) != nullptr ? std::string() : what_it_is(member);
    } catch (const TraceError& error) {
      return std::string("unreadable: ") + error.what();
    }
  }

  void note_other(const std::string& what) {
    if (rest_.first_other.empty()) rest_.first_other = archive_.name() + " is " + what;
  }

  const TraceFile& file_;
  const std::function<void(const TraceFile&)>& visit_;
  std::unique_ptr<PeekedSource> bytes_;
  ArchiveReader archive_;
  std::set<std::string> names_;
  ArchiveRest rest_;
};

}  // namespace

const ImporterEntry* importer_for(const TraceFile& file) {
  const Sniffed sniffed{file, file.head()};
  const auto found =
      std::find_if(importers().begin(), importers().end(),
                   [&](const ImporterEntry& importer) { return importer.recognizes(sniffed); });
  return found == importers().end() ? nullptr : &*found;
}

ArchiveRest walk_archive(const TraceFile& archive,
                         const std::function<void(const TraceFile& member)>& visit) {
  return Walk(archive, visit).run();
}

void note_damage(const ArchiveRest& rest, const std::string& archive, Notes& notes) {
  if (rest.damage.empty()) return;
  notes.add(Severity::warning,
            "the archive is cut off or damaged; everything after that is missing",
            archive + ": " + rest.damage);
}

std::string what_it_is(const TraceFile& file) {
  const Sniffed sniffed{file, file.head()};
  const std::string known = what_else_it_is(sniffed);
  if (!known.empty()) return known;
  std::string bytes;
  for (const char c : sniffed.head.substr(0, 4)) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += bytes.empty() ? "" : " ";
    bytes += "0123456789abcdef"[byte >> 4U];
    bytes += "0123456789abcdef"[byte & 15U];
  }
  return "of an unknown format (it starts with the bytes " + bytes + ")";
}

}  // namespace foretrace
